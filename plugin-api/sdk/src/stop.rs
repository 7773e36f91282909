//! [`StopRule`] on text that is still growing. Must not know of tokens.

use crate::StopRule;

/// Whether generation can stop here by `rule`, what a generating model asks after each token: see [`first_word`].
pub fn stops(rule: &StopRule, text: &str, finished: bool) -> bool {
    match rule {
        StopRule::End => false,
        StopRule::FirstWord { words } => first_word(text, words, finished),
    }
}

/// Whether `text` holds one of the words standing alone, whatever its ASCII case, and what follows shows that it stands alone: the
/// borders are those of a regular expression's `\b` over ASCII letters, digits and `_`. A word at the end of `text` stands alone
/// only if the text is `finished`, for more letters could follow. Empty words are never found.
///
/// ```
/// use focus_plugin_sdk::stop::first_word;
///
/// let words = ["yes".to_owned(), "no".to_owned()];
/// assert!(first_word("No, there", &words, false));
/// assert!(!first_word("No", &words, false), "`None` may come of it");
/// assert!(first_word("No", &words, true));
/// assert!(!first_word("nope", &words, true));
/// ```
pub fn first_word(text: &str, words: &[String], finished: bool) -> bool {
    let bytes = text.as_bytes();
    // A border lies where word characters begin or end; the word itself may begin with any character.
    let border = |at: usize| {
        let inside = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(is_word);
        inside(at.checked_sub(1)) != inside(Some(at))
    };
    words.iter().map(String::as_bytes).any(|word| {
        !word.is_empty()
            && bytes.windows(word.len()).enumerate().any(|(start, found)| {
                let end = start + word.len();
                found.eq_ignore_ascii_case(word)
                    && border(start)
                    && border(end)
                    && (finished || end < bytes.len())
            })
    })
}

/// A byte of a character beyond ASCII is no word character.
fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, finished: bool) -> bool {
        first_word(text, &["yes".to_owned(), "no".to_owned()], finished)
    }

    #[test]
    fn words_must_stand_alone() {
        for text in [
            "nope",
            "none",
            "know",
            "No_",
            "no1",
            "1no",
            "yesterday",
            "",
            " ",
            "n o",
            "eyes",
        ] {
            assert!(!found(text, false) && !found(text, true), "{text}");
        }
        for text in [
            "No.",
            "no, ",
            "Answer: YES!",
            "\nno\n",
            "(yes)",
            "nope, no.",
            "nón-no ",
            "n'no'",
            "no\u{e9}",
            "\u{e9}no ",
        ] {
            assert!(found(text, false) && found(text, true), "{text}");
        }
    }

    #[test]
    fn at_the_end_a_word_stands_alone_only_when_nothing_follows() {
        for text in ["no", "NO", "I say yes", "nope no"] {
            assert!(!found(text, false) && found(text, true), "{text}");
        }
    }

    #[test]
    fn rules_ask_the_same() {
        let rule = StopRule::FirstWord {
            words: vec!["grade 2".into(), String::new()],
        };
        assert!(stops(&rule, "Grade 2.", false) && !stops(&rule, "grade 21", true));
        assert!(!stops(&StopRule::End, "no.", true));
    }
}
