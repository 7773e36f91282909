//! What a chat model is told, from a question to token ids: the model's own tokenizer and chat template, read from the files beside its
//! weights. Must not know any model; which token stands for a picture, and how many places a picture takes, is a family's.

mod environment;
mod error;
mod files;
mod template;
mod tokenizer;

#[cfg(test)]
mod tests;

pub use environment::FROZEN_DATE;
pub use error::ChatError;
pub use template::{ChatTemplate, Message, Part};
pub use tokenizer::Tokenizer;

use std::collections::BTreeMap;
use std::path::Path;

/// A tokenizer and the template that goes with it.
#[derive(Debug)]
pub struct Chat {
    tokenizer: Tokenizer,
    template: ChatTemplate,
}

impl Chat {
    /// Both from a model's folder: `tokenizer.json`, `tokenizer_config.json`, and the template wherever it is.
    pub fn open(folder: &Path) -> Result<Self, ChatError> {
        Ok(Self {
            tokenizer: Tokenizer::open(folder)?,
            template: ChatTemplate::open(folder)?,
        })
    }

    /// From its parts.
    pub fn new(tokenizer: Tokenizer, template: ChatTemplate) -> Self {
        Self {
            tokenizer,
            template,
        }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Ids of one turn of the user's, ready for the answer: `pictures` pictures, then `text`. `slot` is what the template prints for a
    /// picture; in the ids it stands exactly `pictures` times, not yet expanded, and one BOS stands at the beginning where the model
    /// has one.
    pub fn question(&self, pictures: usize, text: &str, slot: &str) -> Result<Vec<u32>, ChatError> {
        let mut content = vec![Part::Image; pictures];
        content.push(Part::Text(text.to_owned()));
        let message = Message {
            role: "user".into(),
            content,
        };
        let ids = self.encode(&[message], true)?;
        let id = self
            .tokenizer
            .id(slot)
            .ok_or_else(|| ChatError::UnknownToken { token: slot.into() })?;
        let found = ids.iter().filter(|&&other| other == id).count();
        if found != pictures {
            return Err(ChatError::Slots {
                file: self.template.file().into(),
                slot: slot.into(),
                expected: pictures,
                found,
            });
        }
        Ok(ids)
    }

    /// Ids of a conversation, with exactly one BOS whichever of template and tokenizer adds it. `answer` opens the model's turn.
    pub fn encode(&self, messages: &[Message], answer: bool) -> Result<Vec<u32>, ChatError> {
        let rendered = self
            .template
            .render(messages, self.tokenizer.named(), answer)?;
        let mut ids = self.tokenizer.encode(&rendered)?;
        if let Some(bos) = self.tokenizer.bos() {
            let printed = ids.iter().take_while(|&&id| id == bos).count();
            if printed > 0 || self.tokenizer.adds_bos() {
                ids.splice(..printed, [bos]);
            }
        }
        Ok(ids)
    }

    /// Digests of both, and the day that templates are told it is: for `OpenedModel::facts`.
    pub fn facts(&self) -> BTreeMap<String, String> {
        [
            ("chat_template", self.template.digest()),
            ("template_date", FROZEN_DATE),
            ("tokenizer", self.tokenizer.digest()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
    }
}
