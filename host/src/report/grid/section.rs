//! A table with its title and notes, before anybody decides how it looks; and how single values are worded.

pub(super) use crate::report::number::probability;

use focus_analysis::{Figure, GapEntry};

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// First column whose cells are numbers; they stand to the right.
    pub numbers_from: usize,
    pub notes: Vec<String>,
}

impl Section {
    pub fn new(title: impl Into<String>, head: &[&str], numbers_from: usize) -> Self {
        Self {
            title: title.into(),
            head: head.iter().map(|word| (*word).to_owned()).collect(),
            rows: Vec::new(),
            numbers_from,
            notes: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len(), "{}", self.title);
        self.rows.push(cells);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// Three decimals, `~` after a value that stands in for a missing one; `-` with the reason.
pub(super) fn figure(figure: &Figure) -> String {
    match figure.value {
        Some(value) => format!("{value:.3}{}", if figure.filled { "~" } else { "" }),
        None => format!("- ({})", figure.missing.unwrap_or("unknown")),
    }
}

/// Three decimals or `-`.
pub(super) fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.3}"))
}

/// Three decimals with a sign, or `-`.
pub(super) fn signed(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:+.3}"))
}

/// ` [low, high]`, with signs, or nothing.
pub(super) fn interval(ends: Option<[f64; 2]>) -> String {
    ends.map_or_else(String::new, |[low, high]| {
        format!(" [{low:+.3}, {high:+.3}]")
    })
}

/// A signed gap with its interval, else its size, else why there is none.
pub(super) fn gap(gap: &GapEntry) -> String {
    match (gap.signed, gap.absolute) {
        (Some(value), _) => format!("{value:+.3}{}", interval(gap.interval)),
        (None, Some(size)) => format!("{size:.3}"),
        (None, None) => format!("- ({})", gap.missing.unwrap_or("unknown")),
    }
}

/// A serialised word: `vm`, `out_of_domain`.
pub(super) fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_filled_and_tiny_values_are_not_plain_numbers() {
        assert_eq!(figure(&Figure::of(0.8126, 3)), "0.813");
        assert_eq!(figure(&Figure::missing("no_cells")), "- (no_cells)");
        let filled = Figure {
            filled: true,
            ..Figure::of(0.5, 0)
        };
        assert_eq!(figure(&filled), "0.500~");
        assert_eq!(probability(Some(2e-5)), "2.0e-5");
        assert_eq!(probability(Some(0.04)), "0.040");
        assert_eq!(signed(Some(0.0)), "+0.000");
    }
}
