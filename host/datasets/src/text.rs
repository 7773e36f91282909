//! Text that came from outside: trimming of cells, and capping of what a guest or a file says before it is quoted.

/// What counts as blank around a cell: white space (the non-breaking space of cp1252 files too), byte order marks and
/// zero-width spaces that spreadsheets leave behind.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}')
}

/// The text without blanks around it.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// Text of a guest or a file, fit for a message: at most `limit` characters, control characters escaped.
pub(crate) fn quote(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        // Escapes would otherwise reach a terminal; a bidirectional override would turn the message round.
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Names in back quotes, at most `limit` of them.
pub(crate) fn list<S: AsRef<str>>(names: &[S], limit: usize) -> String {
    let mut out: Vec<String> = names
        .iter()
        .take(limit)
        .map(|n| format!("`{}`", quote(n.as_ref(), 120)))
        .collect();
    if names.len() > limit {
        out.push(format!("{} more", names.len() - limit));
    }
    if out.is_empty() {
        "nothing".into()
    } else {
        out.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_of_every_kind_are_trimmed() {
        assert_eq!(trim("\u{feff}\u{a0} a\u{a0}b \t\u{200b}\r"), "a\u{a0}b");
        assert_eq!(trim(" \u{a0} "), "");
    }

    #[test]
    fn quoted_text_is_capped_and_harmless() {
        assert_eq!(quote("abc", 3), "abc");
        assert_eq!(quote("abcd", 3), "abc…");
        assert_eq!(
            quote("\u{1b}[31mred\n\u{202e}", 50),
            "\\u{1b}[31mred\\n\\u{202e}"
        );
    }

    #[test]
    fn lists_are_capped() {
        assert_eq!(list(&["a", "b", "c"], 2), "`a`, `b`, 1 more");
        assert_eq!(list::<&str>(&[], 2), "nothing");
    }
}
