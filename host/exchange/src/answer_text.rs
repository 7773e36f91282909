//! Yes or no, from the text that a model generated: the first stand-alone of the two words counts, in any case. It must
//! not know who asked or what.

/// The answer in `text`: `Some(true)` for yes, `Some(false)` for no, `None` where neither word stands alone.
///
/// A word stands alone when the characters beside it are no letters, digits or underscores (of any script), as with
/// `\b(yes|no)\b` and case ignored. Source: spec/focus-benchmark.md, section 4.
pub fn parse_yes_no(text: &str) -> Option<bool> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .find_map(|word| match word {
            _ if word.eq_ignore_ascii_case("yes") => Some(true),
            _ if word.eq_ignore_ascii_case("no") => Some(false),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_cases_of_the_specification() {
        for (text, answer) in [
            ("Yes.", Some(true)),
            ("**no**", Some(false)),
            ("No, it is not; but for the other eye, yes", Some(false)),
            ("not", None),
            ("nope", None),
            ("I know", None),
            ("YES!", Some(true)),
            ("yes/no", Some(true)),
            ("", None),
            ("no-DR", Some(false)),
            ("yes_no", None),
            ("éyes no", Some(false)),
            ("<pad>yes</s>", Some(true)),
            ("\u{a0}Yes\u{a0}", Some(true)),
            ("ERROR", None),
        ] {
            assert_eq!(parse_yes_no(text), answer, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn words_before_the_answer_do_not_matter(before in "[a-mA-M ,.*\"\n]{0,40}", yes in any::<bool>(), after in "[^a-z0-9_]\\PC{0,40}|") {
            let word = if yes { "yEs" } else { "nO" };
            prop_assume!(!after.starts_with(|c: char| c.is_alphanumeric()));
            prop_assert_eq!(parse_yes_no(&format!("{before} {word}{after}")), Some(yes));
        }
    }
}
