//! A model's chat template: where it is kept, and a conversation rendered by it. Knows no token ids.

use super::environment::{self, NAME};
use super::{ChatError, files};
use fancy_regex::Regex;
use minijinja::{Environment, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Files that may hold the template, best first, as transformers looks for them.
const FILES: [&str; 3] = [
    "chat_template.jinja",
    "chat_template.json",
    "tokenizer_config.json",
];

/// A turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `user`, `assistant`, `system`.
    pub role: String,
    /// What is in it, in order.
    pub content: Vec<Part>,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A picture.
    Image,
    /// Words.
    Text(String),
}

/// A compiled template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    file: String,
    digest: String,
}

impl ChatTemplate {
    /// From a model's folder: `chat_template.jinja`, or field `chat_template` of `chat_template.json` or `tokenizer_config.json`, there a
    /// text or a list with one named `default`.
    pub fn open(folder: &Path) -> Result<Self, ChatError> {
        for file in FILES {
            let Some(text) = files::read(folder, file)? else {
                continue;
            };
            if !file.ends_with("json") {
                return Self::parse(file, text);
            }
            if let Some(template) = field(file, &text)? {
                return Self::parse(file, template);
            }
        }
        Err(ChatError::Missing {
            wanted: format!(
                "a chat template: `{}`, or `chat_template` in `{}` or `{}`",
                FILES[0], FILES[1], FILES[2]
            ),
        })
    }

    /// From its text; `file` is named in errors. The digest is of the text as it is given.
    pub fn parse(file: &str, template: impl Into<String>) -> Result<Self, ChatError> {
        let template = template.into();
        let digest = files::digest(&[&template]);
        let mut environment = environment::new();
        environment
            .add_template_owned(NAME, without_marks(&template))
            .map_err(|error| fault(file, &error))?;
        Ok(Self {
            environment,
            file: file.to_owned(),
            digest,
        })
    }

    /// Where the template is from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// `blake3:hex` of its text.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The conversation as text. `named` are variables that templates use (`bos_token`); `answer` opens the model's turn.
    pub fn render(
        &self,
        messages: &[Message],
        named: &BTreeMap<String, String>,
        answer: bool,
    ) -> Result<String, ChatError> {
        let part = |part: &Part| match part {
            Part::Image => Value::from_pairs([("type", "image")]),
            Part::Text(text) => Value::from_pairs([("type", "text"), ("text", text.as_str())]),
        };
        let message = |message: &Message| {
            let content: Vec<Value> = message.content.iter().map(part).collect();
            Value::from_pairs([
                ("role", Value::from(message.role.as_str())),
                ("content", content.into()),
            ])
        };
        let messages: Vec<Value> = messages.iter().map(message).collect();
        let mut variables: BTreeMap<&str, Value> = named
            .iter()
            .map(|(role, word)| (role.as_str(), Value::from(word.as_str())))
            .collect();
        variables.insert("messages", messages.into());
        variables.insert("add_generation_prompt", answer.into());
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(Value::from_pairs(variables)))
            .map_err(|error| fault(&self.file, &error))
    }
}

/// `{% generation %}` and its end mark what a model is trained on and say nothing in a prompt. They are transformers' own, unknown to
/// Jinja: blocks that always apply stand in, with the same dashes, so that blanks around them go as before.
fn without_marks(template: &str) -> String {
    let mark = |name: &str| {
        Regex::new(&format!(r"\{{%([-+]?)\s*{name}\s*([-+]?)%\}}")).expect("a pattern of our own")
    };
    let begun = mark("generation").replace_all(template, "{%${1} if true ${2}%}");
    mark("endgeneration")
        .replace_all(&begun, "{%${1} endif ${2}%}")
        .into_owned()
}

fn fault(file: &str, error: &minijinja::Error) -> ChatError {
    let detail = error.detail().map_or_else(
        || error.kind().to_string(),
        |detail| format!("{}: {detail}", error.kind()),
    );
    ChatError::Template {
        file: file.to_owned(),
        line: error.line().unwrap_or(0),
        reason: detail,
    }
}

/// `chat_template` of a JSON file.
fn field(file: &str, text: &str) -> Result<Option<String>, ChatError> {
    let fault = |reason: &str| ChatError::File {
        file: file.to_owned(),
        reason: reason.to_owned(),
    };
    let json = files::json(file, text)?;
    match &json["chat_template"] {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(template) => Ok(Some(template.clone())),
        serde_json::Value::Array(list) => list
            .iter()
            .find(|entry| entry["name"] == "default")
            .and_then(|entry| entry["template"].as_str())
            .map(|template| Some(template.to_owned()))
            .ok_or_else(|| fault("its list of chat templates has none named `default`")),
        _ => Err(fault("expected `chat_template` as a text or a list")),
    }
}
