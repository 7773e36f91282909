//! The body of a request: the model's name, the pictures, the prompt, and what to tell of tokens. Nothing else leaves this machine.

use serde::Serialize;
use serde_json::{Map, Value};

/// What is the same for every question of a call.
#[derive(Debug, Clone)]
pub struct Manner<'a> {
    /// Name at the server.
    pub model: &'a str,
    /// Most tokens to generate, at least 1.
    pub max_tokens: u32,
    /// The limit's field: `max_completion_tokens` in place of `max_tokens`.
    pub max_completion_tokens: bool,
    /// Length of the list of log-probabilities; `None`: not asked for.
    pub top_logprobs: Option<u32>,
    /// Tokens by id (vLLM), and which of them are scored, sorted; `None`: tokens by text.
    pub ids: Option<&'a [u32]>,
    /// Sent where given.
    pub seed: Option<i64>,
    /// Of pictures, sent where given.
    pub detail: Option<&'a str>,
    /// Further fields.
    pub extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: [Message<'a>; 1],
    temperature: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprob_token_ids: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_tokens_as_token_ids: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_token_ids: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    ImageUrl { image_url: ImageUrl<'a> },
    Text { text: &'a str },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

impl Manner<'_> {
    /// The body of one question: one user turn, the pictures (data URIs), then the prompt.
    pub fn body(&self, pictures: &[&str], prompt: &str) -> Vec<u8> {
        let mut content: Vec<Part<'_>> = pictures
            .iter()
            .map(|url| Part::ImageUrl {
                image_url: ImageUrl {
                    url,
                    detail: self.detail,
                },
            })
            .collect();
        content.push(Part::Text { text: prompt });
        let asked_by_id = self.ids.is_some();
        let body = Body {
            model: self.model,
            messages: [Message {
                role: "user",
                content,
            }],
            temperature: 0,
            max_tokens: (!self.max_completion_tokens).then_some(self.max_tokens),
            max_completion_tokens: self.max_completion_tokens.then_some(self.max_tokens),
            logprobs: self.top_logprobs.map(|_| true),
            top_logprobs: self.top_logprobs,
            logprob_token_ids: self
                .ids
                .filter(|ids| !ids.is_empty() && self.top_logprobs.is_some()),
            return_tokens_as_token_ids: (asked_by_id && self.top_logprobs.is_some())
                .then_some(true),
            return_token_ids: asked_by_id.then_some(true),
            seed: self.seed,
            extra: self.extra,
        };
        serde_json::to_vec(&body).expect("texts and numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_is_sent_that_was_not_asked_for() {
        let extra = Map::new();
        let mut manner = Manner {
            model: "m",
            max_tokens: 8,
            max_completion_tokens: false,
            top_logprobs: None,
            ids: None,
            seed: None,
            detail: None,
            extra: &extra,
        };
        let read = |manner: &Manner<'_>| -> Value {
            serde_json::from_slice(&manner.body(&["data:a", "data:b"], "Q \"?\"\n")).expect("JSON")
        };
        assert_eq!(
            read(&manner),
            json!({
                "model": "m", "temperature": 0, "max_tokens": 8,
                "messages": [{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:a"}},
                    {"type": "image_url", "image_url": {"url": "data:b"}},
                    {"type": "text", "text": "Q \"?\"\n"}]}],
            })
        );
        let extra = json!({"chat_template_kwargs": {"enable_thinking": false}});
        let Value::Object(extra) = extra else {
            unreachable!("an object")
        };
        manner = Manner {
            max_completion_tokens: true,
            top_logprobs: Some(20),
            ids: Some(&[3, 9]),
            seed: Some(-1),
            detail: Some("high"),
            extra: &extra,
            ..manner
        };
        assert_eq!(
            read(&manner),
            json!({
                "model": "m", "temperature": 0, "max_completion_tokens": 8, "seed": -1,
                "logprobs": true, "top_logprobs": 20, "logprob_token_ids": [3, 9],
                "return_tokens_as_token_ids": true, "return_token_ids": true,
                "chat_template_kwargs": {"enable_thinking": false},
                "messages": [{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:a", "detail": "high"}},
                    {"type": "image_url", "image_url": {"url": "data:b", "detail": "high"}},
                    {"type": "text", "text": "Q \"?\"\n"}]}],
            })
        );
    }
}
