//! An answer read: what the server must have said, and what it said instead. Knows no connection.

use focus_plugin_sdk::Finish;
use serde::Deserialize;
use serde_json::Value;

/// A text that is not what was asked for. `found` may repeat the server's words: quote it before it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Misread {
    /// From what should be there and what is.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// An error that the server reports in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Its words, uncut.
    pub said: String,
    /// Its code, where that is an HTTP status.
    pub status: Option<u16>,
    /// The account is used up.
    pub exhausted: bool,
}

impl Complaint {
    /// The error in `value`, if there is one: `{"error": ..}`, vLLM's older `{"object": "error", ..}`, or a list of either.
    pub fn find(value: &Value) -> Option<Self> {
        let error = match value {
            Value::Array(items) => return items.iter().find_map(Self::find),
            Value::Object(fields) => match fields.get("error") {
                Some(Value::Null) | None => {
                    if fields.get("object").and_then(Value::as_str) != Some("error") {
                        return None;
                    }
                    value
                }
                Some(error) => error,
            },
            _ => return None,
        };
        let text = |key: &str| error.get(key).and_then(Value::as_str);
        let code = error.get("code");
        let number = code.and_then(|code| {
            code.as_u64()
                .or_else(|| code.as_str().and_then(|text| text.parse().ok()))
        });
        let said = match (error.as_str(), text("message")) {
            (Some(said), _) | (None, Some(said)) => said.to_owned(),
            (None, None) => error.to_string(),
        };
        let words = [text("code"), text("type")];
        Some(Self {
            said: match text("code").or_else(|| text("type")) {
                Some(word) if !said.contains(word) => format!("{said} ({word})"),
                _ => said,
            },
            status: number
                .and_then(|n| u16::try_from(n).ok())
                .filter(|n| (400..600).contains(n)),
            exhausted: words
                .iter()
                .flatten()
                .any(|word| ["insufficient_quota", "billing_hard_limit_reached"].contains(word)),
        })
    }
}

/// Tokens of a request, as the server counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// Of the prompt, pictures too.
    pub prompt_tokens: u32,
    /// Generated.
    #[serde(default)]
    pub completion_tokens: u32,
}

/// A generated token and its rivals.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Position {
    /// The token that was generated.
    #[serde(flatten)]
    pub chosen: Entry,
    /// The likeliest, or those asked for.
    #[serde(default)]
    pub top_logprobs: Vec<Entry>,
}

/// A token with its log-probability.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// Its text, or `token_id:N`.
    pub token: String,
    /// Natural logarithm of its probability; absent or -9999: not told.
    #[serde(default)]
    pub logprob: Option<f64>,
    /// Its bytes; a token need not be whole characters.
    #[serde(default)]
    pub bytes: Option<Vec<u8>>,
}

/// One choice, as this plugin wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What was generated, verbatim.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// The words of a refusal.
    pub refusal: Option<String>,
    /// The first generated token, where the server tells of it.
    pub first: Option<Position>,
    /// Counts, where the server tells them.
    pub usage: Option<Usage>,
    /// Ids of the rendered prompt, where the server tells them.
    pub prompt_tokens: Vec<u32>,
    /// Ids of what was generated, where the server tells them.
    pub new_tokens: Vec<u32>,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    prompt_token_ids: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u32,
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    logprobs: Option<Logprobs>,
    #[serde(default)]
    token_ids: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Logprobs {
    #[serde(default)]
    content: Option<Vec<Position>>,
}

impl Reply {
    /// Read a chat completion.
    pub fn read(value: Value) -> Result<Self, Misread> {
        const WHAT: &str = "a chat completion with one choice";
        let completion: Completion = read(value, WHAT)?;
        let count = completion.choices.len();
        let Ok([choice]) = <[Choice; 1]>::try_from(completion.choices) else {
            return Err(Misread::new(WHAT, format!("{count} choices")));
        };
        if choice.index != 0 {
            return Err(Misread::new("choice 0", format!("choice {}", choice.index)));
        }
        if let Some(role) = choice.message.role.filter(|role| role != "assistant") {
            return Err(Misread::new(
                "a message of role `assistant`",
                format!("role `{role}`"),
            ));
        }
        let refusal = choice.message.refusal.filter(|words| !words.is_empty());
        let finish = match choice.finish_reason.as_deref() {
            Some("stop" | "length" | "content_filter") if refusal.is_some() => Finish::Refused,
            Some("stop") => Finish::End,
            Some("length") => Finish::Length,
            Some("content_filter") => Finish::Refused,
            other => {
                return Err(Misread::new(
                    "finish reason `stop`, `length` or `content_filter`",
                    other.map_or_else(|| "none".to_owned(), |word| format!("`{word}`")),
                ));
            }
        };
        Ok(Self {
            text: choice.message.content.unwrap_or_default(),
            finish,
            refusal,
            first: choice
                .logprobs
                .and_then(|logprobs| logprobs.content)
                .and_then(|positions| positions.into_iter().next()),
            usage: completion.usage,
            prompt_tokens: completion.prompt_token_ids.unwrap_or_default(),
            new_tokens: choice.token_ids.unwrap_or_default(),
        })
    }
}

/// Names of the models served, from `/models`.
pub fn models(value: Value) -> Result<Vec<String>, Misread> {
    #[derive(Deserialize)]
    struct List {
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        id: String,
    }
    let list: List = read(value, "a list of models")?;
    Ok(list.data.into_iter().map(|model| model.id).collect())
}

/// Ids of a text, from vLLM's `/tokenize`.
pub fn tokens(value: Value) -> Result<Vec<u32>, Misread> {
    #[derive(Deserialize)]
    struct Tokens {
        tokens: Vec<u32>,
    }
    const WHAT: &str = "a list of token ids";
    let list: Tokens = read(value, WHAT)?;
    if list.tokens.is_empty() {
        return Err(Misread::new(WHAT, "none for a text that is not empty"));
    }
    Ok(list.tokens)
}

fn read<T: for<'de> Deserialize<'de>>(value: Value, what: &str) -> Result<T, Misread> {
    T::deserialize(&value).map_err(|error| Misread::new(what, format!("{error}: {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn choice(message: Value, finish: Value) -> Value {
        json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})
    }

    #[test]
    fn endings_are_told_apart() {
        let said = |text: &str| json!({"role": "assistant", "content": text});
        for (message, finish, wanted, text) in [
            (said(" Yes.\n"), "stop", Finish::End, " Yes.\n"),
            (said("Yes, bec"), "length", Finish::Length, "Yes, bec"),
            (said(""), "stop", Finish::End, ""),
            (json!({"content": null}), "stop", Finish::End, ""),
            (json!({}), "stop", Finish::End, ""),
            (said("I"), "content_filter", Finish::Refused, "I"),
            (
                json!({"content": null, "refusal": "I cannot"}),
                "stop",
                Finish::Refused,
                "",
            ),
            (
                json!({"content": "Yes", "refusal": ""}),
                "stop",
                Finish::End,
                "Yes",
            ),
        ] {
            let reply = Reply::read(choice(message, json!(finish))).expect("reads");
            assert_eq!((reply.finish, reply.text.as_str()), (wanted, text));
        }
    }

    #[test]
    fn what_is_no_completion_says_what_it_is() {
        let message = json!({"role": "assistant", "content": "Yes"});
        for (value, expected, found) in [
            (json!({}), "chat completion", "choices"),
            (json!({"choices": []}), "one choice", "0 choices"),
            (json!({"choices": null}), "one choice", "null"),
            (json!([]), "chat completion", "[]"),
            (json!("Yes"), "chat completion", "Yes"),
            (
                json!({"choices": [
                    {"message": message, "finish_reason": "stop"},
                    {"message": message, "finish_reason": "stop"}]}),
                "one choice",
                "2 choices",
            ),
            (
                json!({"choices": [{"index": 3, "message": message, "finish_reason": "stop"}]}),
                "choice 0",
                "choice 3",
            ),
            (
                choice(message.clone(), json!(null)),
                "finish reason",
                "none",
            ),
            (
                choice(message.clone(), json!("tool_calls")),
                "finish reason",
                "tool_calls",
            ),
            (
                choice(json!({"role": "user", "content": "x"}), json!("stop")),
                "assistant",
                "user",
            ),
            (
                choice(json!({"content": ["x"]}), json!("stop")),
                "chat completion",
                "string",
            ),
            (
                json!({"choices": [{"finish_reason": "stop"}]}),
                "chat completion",
                "message",
            ),
        ] {
            let error = Reply::read(value).expect_err(found);
            assert!(
                error.expected.contains(expected) && error.found.contains(found),
                "{error:?}"
            );
        }
    }

    #[test]
    fn complaints_are_found_in_every_dress() {
        let find = |value: Value| Complaint::find(&value);
        let plain = find(json!({"error": {"message": "No", "type": "server_error", "code": 503}}))
            .expect("a complaint");
        assert_eq!(plain.status, Some(503));
        assert_eq!(plain.said, "No (server_error)");
        let quota = find(json!({"error": {"message": "Pay", "code": "insufficient_quota"}}));
        assert!(quota.expect("a complaint").exhausted);
        let older = find(json!({"object": "error", "message": "No such model", "code": 404}));
        assert_eq!(older.expect("a complaint").status, Some(404));
        let list = find(json!([{"error": {"message": "Bad", "code": 400, "status": "X"}}]));
        assert_eq!(list.expect("a complaint").status, Some(400));
        let text = find(json!({"error": "out of order"}));
        assert_eq!(text.expect("a complaint").said, "out of order");
        let odd = find(json!({"error": {"code": "70000000000000000000", "x": [1]}}));
        assert_eq!(odd.expect("a complaint").status, None);
        assert!(find(json!({"error": null, "choices": []})).is_none());
        assert!(find(json!({"choices": []})).is_none());
    }

    #[test]
    fn lists_of_tokens_and_models_are_read() {
        assert_eq!(tokens(json!({"tokens": [7], "count": 1})), Ok(vec![7]));
        assert!(tokens(json!({"tokens": []})).is_err());
        assert!(tokens(json!({"tokens": ["yes"]})).is_err());
        assert_eq!(
            models(json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]})),
            Ok(vec!["a".to_owned(), "b".to_owned()])
        );
        assert!(models(json!({"models": []})).is_err());
    }

    proptest! {
        #[test]
        fn no_text_brings_it_down(text in ".{0,200}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let _ = Complaint::find(&value);
                let _ = Reply::read(value.clone());
                let _ = tokens(value);
            }
        }
    }
}
