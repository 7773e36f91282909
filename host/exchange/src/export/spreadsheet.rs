//! Cells for spreadsheets and back: exact numbers, and text that no spreadsheet takes for a formula. It must not know
//! tables.

use std::borrow::Cow;

/// `text` as a cell: what begins with `=`, `+`, `-`, `@`, a tab, a carriage return or `'`, and the empty text, gets a
/// `'` before it. A spreadsheet then shows text where it would compute, and an empty cell can mean "missing".
pub fn protect_text(text: &str) -> Cow<'_, str> {
    match text.chars().next() {
        None | Some('=' | '+' | '-' | '@' | '\t' | '\r' | '\'') => Cow::Owned(format!("'{text}")),
        Some(_) => Cow::Borrowed(text),
    }
}

/// The text of a cell: `None` for an empty one; one leading `'` is taken off. The inverse of [`protect_text`].
pub fn unprotect_text(cell: &str) -> Option<&str> {
    (!cell.is_empty()).then(|| cell.strip_prefix('\'').unwrap_or(cell))
}

/// The shortest decimal that reads back as `number`.
pub(super) fn number(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-5..1e16).contains(&size) {
        format!("{number:e}")
    } else {
        format!("{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_become_text() {
        for text in [
            "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'quoted", "",
        ] {
            assert_eq!(protect_text(text), format!("'{text}"));
        }
        assert_eq!(protect_text("img01"), "img01");
        assert_eq!(unprotect_text(""), None);
    }

    proptest! {
        #[test]
        fn any_text_and_number_comes_back(text in any::<String>(), value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO) {
            let cell = protect_text(&text);
            prop_assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']));
            prop_assert_eq!(unprotect_text(&cell), Some(text.as_str()));
            prop_assert_eq!(number(value).parse::<f64>().map(f64::to_bits), Ok(value.to_bits()));
        }
    }
}
