//! Questions to token ids, answers back to text. Knows the template's tokens, no network.

use crate::config::Config;
use focus_nn::chat::{Chat, ChatError, Message, Part};
use focus_nn::lm::{ImageSpan, Prompt};

/// What stands around a picture in the text, and in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Marks {
    begin: String,
    row: String,
    end: String,
    row_id: u32,
}

/// Tokenizer, template, and how pictures stand in a prompt.
#[derive(Debug)]
pub struct Talk {
    chat: Chat,
    marks: Marks,
    rows: usize,
}

impl Talk {
    /// Check that tokenizer and configuration agree about pictures.
    pub fn new(chat: Chat, config: &Config) -> Result<Self, ChatError> {
        chat.tokenizer().check(config.decoder.vocab)?;
        let named = |role: &str, usual: &str| {
            let word = chat.tokenizer().named().get(role);
            word.map_or_else(|| usual.to_owned(), Clone::clone)
        };
        let marks = Marks {
            begin: named("boi_token", "<start_of_image>"),
            row: named("image_token", "<image_soft_token>"),
            end: named("eoi_token", "<end_of_image>"),
            row_id: config.image_id,
        };
        for token in [&marks.begin, &marks.row, &marks.end] {
            let id = chat.tokenizer().id(token);
            if id.is_none() || (token == &marks.row && id != Some(marks.row_id)) {
                return Err(ChatError::UnknownToken {
                    token: token.clone(),
                });
            }
        }
        Ok(Self {
            chat,
            marks,
            rows: config.image_tokens,
        })
    }

    /// Tokenizer and template.
    pub fn chat(&self) -> &Chat {
        &self.chat
    }

    /// One turn of the user's: pictures, then a question, up to where the answer begins. Each picture's slot in the rendered text becomes
    /// two line ends, a beginning, as many rows as the projector gives, an end, and two line ends, and only then is the text cut into
    /// tokens: line ends join with those before and after.
    pub fn prompt(&self, pictures: usize, text: &str) -> Result<Prompt, ChatError> {
        let Marks {
            begin,
            row,
            end,
            row_id,
        } = &self.marks;
        let mut content = vec![Part::Image; pictures];
        content.push(Part::Text(text.to_owned()));
        let message = Message {
            role: "user".into(),
            content,
        };
        let (tokenizer, template) = (self.chat.tokenizer(), self.chat.template());
        let rendered = template.render(&[message], tokenizer.named(), true)?;
        let found = rendered.matches(begin.as_str()).count();
        let slots = |found| ChatError::Slots {
            file: template.file().to_owned(),
            slot: begin.clone(),
            expected: pictures,
            found,
        };
        if found != pictures {
            return Err(slots(found));
        }
        let whole = format!("\n\n{begin}{}{end}\n\n", row.repeat(self.rows));
        let mut tokens = tokenizer.encode(&rendered.replace(begin.as_str(), &whole))?;
        if let Some(bos) = tokenizer.bos() {
            let printed = tokens.iter().take_while(|&&id| id == bos).count();
            tokens.splice(..printed, [bos]);
        }
        let images = self.spans(&tokens);
        let whole = images.iter().all(|span| span.length == self.rows);
        if images.len() != pictures || !whole || !tokens.contains(row_id) && pictures > 0 {
            return Err(slots(images.len()));
        }
        Ok(Prompt::on_one_axis(tokens, images))
    }

    /// Runs of rows.
    fn spans(&self, tokens: &[u32]) -> Vec<ImageSpan> {
        let mut spans: Vec<ImageSpan> = Vec::new();
        for (at, _) in tokens
            .iter()
            .enumerate()
            .filter(|(_, id)| **id == self.marks.row_id)
        {
            match spans.last_mut() {
                Some(span) if span.start + span.length == at => span.length += 1,
                _ => spans.push(ImageSpan {
                    start: at,
                    length: 1,
                    picture: spans.len(),
                }),
            }
        }
        spans
    }
}
