//! When a text holds one of the wanted words standing alone. Knows no tokens.

use focus_plugin_sdk::StopRule;

/// Whether generation may stop: the text holds a word of the rule, and what follows shows that it stands alone.
pub fn reached(rule: &StopRule, text: &str) -> bool {
    match rule {
        StopRule::End => false,
        StopRule::FirstWord { words } => first_word(text, words).is_some(),
    }
}

/// The first of the lower-case `words` that stands alone in `text`, whatever its case, and is followed by something that is no letter, digit
/// or underscore. A word at the very end may still grow, and so may one before a character whose bytes are not all there yet.
pub fn first_word<'a>(text: &str, words: &'a [String]) -> Option<&'a str> {
    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let mut rest = whole;
    while let Some(start) = rest.find(is_part) {
        let tail = &rest[start..];
        let end = tail.find(|c| !is_part(c))?;
        let found = tail[..end].to_lowercase();
        if let Some(word) = words.iter().find(|word| **word == found) {
            return Some(word);
        }
        rest = &tail[end..];
    }
    None
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_once_they_stand_alone() {
        let words = ["yes".to_owned(), "no".to_owned()];
        for (text, wanted) in [
            ("Yes.", Some("yes")),
            ("**no**", Some("no")),
            ("No, the answer is yes", Some("no")),
            ("YES!", Some("yes")),
            ("yes/no", Some("yes")),
            ("no-DR", Some("no")),
            ("no\n", Some("no")),
            ("yes", None),
            ("not", None),
            ("nope.", None),
            ("I know.", None),
            ("no_", None),
            ("", None),
            ("yes\u{fffd}", None),
            ("\u{fffd} yes ", Some("yes")),
            ("ja, yes?", Some("yes")),
        ] {
            assert_eq!(first_word(text, &words), wanted, "{text:?}");
        }
        assert!(!reached(&StopRule::End, "yes."));
    }
}
