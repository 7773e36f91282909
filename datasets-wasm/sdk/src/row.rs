//! One row, read by column name. The readers accept a code or a blank and refuse everything else: an unknown code is
//! the sign of another version of the file, and a guess would be a wrong label.

use std::ops::RangeInclusive;

use crate::bindings::exports::focus::mapper::mapping as wit;
use crate::{Age, Drop, Failure, Fate, RowRef, Sample};

/// A row of a table with the names of its columns.
pub struct Row<'a> {
    reference: RowRef,
    table: &'a str,
    columns: &'a [String],
    cells: &'a [Option<String>],
}

impl<'a> Row<'a> {
    pub(crate) fn new(
        reference: RowRef,
        table: &'a str,
        columns: &'a [String],
        row: &'a wit::Row,
    ) -> Self {
        Self {
            reference,
            table,
            columns,
            cells: &row.cells,
        }
    }

    /// Id of the row's table.
    pub fn table(&self) -> &'a str {
        self.table
    }

    /// Which row this is.
    pub fn reference(&self) -> RowRef {
        self.reference
    }

    /// The text of a cell; `None` where it is blank. A column of a joined table is named `table.column`.
    ///
    /// # Panics
    /// If the descriptor declares no such column: a mistake of the mapper, not of the data.
    pub fn text(&self, column: &str) -> Option<&'a str> {
        let index = self.columns.iter().position(|name| name == column);
        let index =
            index.unwrap_or_else(|| panic!("table `{}` declares no column `{column}`", self.table));
        self.cells.get(index).and_then(|cell| cell.as_deref())
    }

    /// A whole number in a range. `1.0` counts as 1: numeric columns that passed through a table library look so.
    pub fn whole(&self, column: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, Failure> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        let digits = match text.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|b| b == b'0') => whole,
            Some(_) => "",
            None => text,
        };
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match digits.parse::<u32>() {
            Ok(number) if plain && range.contains(&number) => Ok(Some(number)),
            _ => Err(self.refuse(
                column,
                format!("a whole number from {} to {}", range.start(), range.end()),
            )),
        }
    }

    /// A finite number in a range, with a decimal point.
    pub fn number(&self, column: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, Failure> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        // Rust also reads `inf`, `nan` and `1e5`: digits, a point and a sign are enough for a table.
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+'));
        match text.parse::<f64>() {
            Ok(number) if plain && range.contains(&number) => Ok(Some(number)),
            _ => Err(self.refuse(
                column,
                format!("a number from {} to {}", range.start(), range.end()),
            )),
        }
    }

    /// One of a list of codes.
    pub fn code<T: Copy>(&self, column: &str, codes: &[(&str, T)]) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        let known = codes.iter().find(|(code, _)| *code == text);
        known.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let known: Vec<String> = codes.iter().map(|(code, _)| format!("`{code}`")).collect();
            self.refuse(column, format!("one of {}", known.join(", ")))
        })
    }

    /// One of a list of whole numbers; `1.0` counts as 1.
    pub fn number_code<T: Copy>(
        &self,
        column: &str,
        codes: &[(u32, T)],
    ) -> Result<Option<T>, Failure> {
        if self.text(column).is_none() {
            return Ok(None);
        }
        let number = self.whole(column, 0..=u32::MAX).ok().flatten();
        let known = codes.iter().find(|(code, _)| Some(*code) == number);
        known.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let known: Vec<String> = codes.iter().map(|(code, _)| format!("`{code}`")).collect();
            self.refuse(column, format!("one of {}", known.join(", ")))
        })
    }

    /// 0 or 1; `1.0` counts as 1.
    pub fn flag(&self, column: &str) -> Result<Option<bool>, Failure> {
        self.number_code(column, &[(0, false), (1, true)])
    }

    /// Yes or no, in any case; also true or false, and 1 or 0.
    pub fn yes_no(&self, column: &str) -> Result<Option<bool>, Failure> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "1" | "1.0" => Ok(Some(true)),
            "no" | "false" | "0" | "0.0" => Ok(Some(false)),
            _ => Err(self.refuse(column, "`yes` or `no`")),
        }
    }

    /// An age in years, as tables write it: `63`, `63.5`, `63,5` (a decimal comma), `90+` (this or more), and the letter
    /// O typed for a zero (`6O`).
    pub fn age(&self, column: &str) -> Result<Option<Age>, Failure> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        let (digits, at_least) = match text.strip_suffix('+') {
            Some(digits) => (digits.trim_end(), true),
            None => (text, false),
        };
        let plain = digits.replace(['O', 'o'], "0").replacen(',', ".", 1);
        let written = digits.starts_with(|c: char| c.is_ascii_digit())
            && plain.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match plain.parse::<f64>() {
            Ok(years) if written && (0.0..=120.0).contains(&years) => {
                Ok(Some(Age { years, at_least }))
            }
            _ => Err(self.refuse(column, "an age from 0 to 120, such as `63` or `90+`")),
        }
    }

    /// The error for a cell that breaks a rule, with what the cell holds.
    pub fn refuse(&self, column: &str, rule: impl Into<String>) -> Failure {
        Failure {
            row: Some(self.reference),
            column: Some(column.into()),
            rule: rule.into(),
            found: self.text(column).unwrap_or("a blank").into(),
        }
    }

    /// This row describes one image.
    pub fn mapped(sample: Sample) -> Fate {
        Fate::Mapped(vec![sample])
    }

    /// This row is left out, for a reason that is the same for all such rows.
    pub fn dropped(reason: &str, detail: Option<String>) -> Fate {
        Fate::Dropped(Drop {
            reason: reason.into(),
            detail,
        })
    }
}
