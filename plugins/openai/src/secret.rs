//! The key: read from the environment, sent as a header, kept out of every text. Knows no server.

use focus_plugin_sdk::Error;
use std::fmt;

/// Variable read unless `api_key_env` names another.
pub const DEFAULT_VARIABLE: &str = "OPENAI_API_KEY";

/// Most characters of a server's text that go into a message.
const EXCERPT: usize = 300;

/// A key. Cannot be shown.
#[derive(Clone)]
pub struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The key in the variable that was named, or in [`DEFAULT_VARIABLE`] if that is set. Servers without keys need none.
    pub fn find(
        named: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Error> {
        let name = named.unwrap_or(DEFAULT_VARIABLE);
        let value = variable(name).filter(|value| !value.trim().is_empty());
        let Some(value) = value else {
            return match named {
                None => Ok(None),
                Some(name) => Err(Error::invalid_request(format!(
                    "Environment variable `{name}` holds no key"
                ))
                .with_hint(format!(
                    "Set it, and let the sidecar pass it on: see docs/openai.md. Setting `api_key_env` names a variable, never a key; without it `{DEFAULT_VARIABLE}` is read"
                ))),
            };
        };
        let value = value.trim();
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::invalid_request(format!(
                "Environment variable `{name}` holds no key: expected visible ASCII characters only"
            )));
        }
        Ok(Some(Self(value.to_owned())))
    }

    /// Value of the `Authorization` header.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// A server's text for a message: the key and whatever looks like one replaced, cut, without control characters.
pub(crate) fn quoted(text: &str, key: Option<&Key>) -> String {
    let whole = match key {
        Some(Key(key)) => text.replace(key.as_str(), "[key]"),
        None => text.to_owned(),
    };
    let mut out = String::new();
    let mut length = 0;
    for word in whole.split_inclusive([' ', '\n', '\t', '"', '\'', ',', ':', '<', '>']) {
        // Servers repeat keys in part (`sk-ab***yz`), and proxies those of others.
        let bare = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        if bare.starts_with("sk-") || bare.starts_with("hf_") {
            out.push_str("[key]");
            length += 5;
            if let Some(last) = word.chars().last().filter(|c| !c.is_ascii_alphanumeric()) {
                out.push(last);
            }
        } else {
            for c in word.chars() {
                out.push(if c.is_control() { ' ' } else { c });
                length += 1;
                if length > EXCERPT {
                    break;
                }
            }
        }
        if length > EXCERPT {
            out.push('…');
            break;
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: &str) -> Key {
        Key::find(None, &|_| Some(value.into()))
            .expect("good")
            .expect("there")
    }

    #[test]
    fn the_key_is_the_named_variables() {
        let variables = |name: &str| match name {
            "OPENAI_API_KEY" => Some("first\n".to_owned()),
            "MINE" => Some("second".to_owned()),
            "EMPTY" => Some(" ".to_owned()),
            "ODD" => Some("a\nb".to_owned()),
            _ => None,
        };
        let header = |named| {
            Key::find(named, &variables)
                .expect("good")
                .expect("there")
                .header()
        };
        assert_eq!(header(None), "Bearer first");
        assert_eq!(header(Some("MINE")), "Bearer second");
        assert!(Key::find(None, &|_| None).expect("allowed").is_none());
        for name in ["EMPTY", "ABSENT", "ODD"] {
            let error = Key::find(Some(name), &variables).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn keys_do_not_show() {
        let key = key("abcDEF123");
        assert_eq!(format!("{key:?}"), "Key(..)");
        let text = quoted("Bad key abcDEF123, xabcDEF123x", Some(&key));
        assert_eq!(text, "Bad key [key], x[key]x");
        let partly =
            r#"{"message": "Incorrect API key provided: sk-pr***xyz. See", "x":"sk-1234"}"#;
        let shown = quoted(partly, None);
        assert!(!shown.contains("sk-") && !shown.contains("1234"), "{shown}");
        assert!(
            shown.contains("Incorrect API key provided: [key] See"),
            "{shown}"
        );
    }

    #[test]
    fn texts_are_cut_and_plain() {
        let long = quoted(&"é".repeat(5000), None);
        assert_eq!(long.chars().count(), EXCERPT + 2);
        assert!(!quoted("a\u{1b}[31mb\r\nc", None).contains(|c: char| c.is_control()));
        let spaced = quoted(&"ab ".repeat(5000), None);
        assert!(spaced.chars().count() <= EXCERPT + 3);
    }
}
