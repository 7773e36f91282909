//! File names for things whose names are not ours. Total and injective; it touches no file.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// Longest stem `file_stem` gives, in bytes: room is left for an extension and a temporary file's decoration.
const LONGEST: usize = 200;

/// Ends the method's name in a cell of the published reading: its labels follow the published code where they differ.
pub const AS_PUBLISHED_SUFFIX: &str = "+as_published";

/// One cell of the grid: which model answered which task of which dataset, and how.
///
/// A variation that changes predictions is part of the method's or the model's name after a `+`
/// (`linear_probing+unweighted`, `google/medgemma-4b-it+lora-brset-binary_dr`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellKey {
    /// Dataset id (`idrid`).
    pub dataset: String,
    /// Task id (`referable_dr`).
    pub task: String,
    /// Method id (`linear_probing`).
    pub method: String,
    /// Model id (`facebook/dinov2-large`).
    pub model: String,
}

impl CellKey {
    /// A cell's key from its four names.
    pub fn new(dataset: &str, task: &str, method: &str, model: &str) -> Self {
        Self {
            dataset: dataset.into(),
            task: task.into(),
            method: method.into(),
            model: model.into(),
        }
    }

    /// Whether the cell is the published reading, which may label a photograph otherwise than its record: its merges bring labels of
    /// other photographs.
    pub fn is_published_reading(&self) -> bool {
        self.method.ends_with(AS_PUBLISHED_SUFFIX)
    }

    /// File name without its extension: the four names, escaped and joined by `~`.
    pub fn file_stem(&self) -> String {
        file_stem(&[&self.dataset, &self.task, &self.method, &self.model])
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {}",
            self.dataset, self.task, self.method, self.model
        )
    }
}

/// A file name without its extension for `parts`: letters, digits, `_`, `-`, `+` and inner `.` stay, other bytes become `%XX`,
/// parts are joined by `~`. Different parts give different names; a name over 200 bytes is cut and ends in a hash.
pub fn file_stem(parts: &[&str]) -> String {
    let mut stem = String::new();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            stem.push('~');
        }
        for (at, byte) in part.bytes().enumerate() {
            let plain = byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'-' | b'+')
                || (byte == b'.' && at > 0);
            if plain {
                stem.push(char::from(byte));
            } else {
                write!(stem, "%{byte:02X}").expect("text takes text");
            }
        }
    }
    if stem.len() > LONGEST {
        let hash = blake3::hash(stem.as_bytes()).to_hex();
        stem.truncate(LONGEST - 33);
        // No escaped name holds `%_`, so a cut name is never another name's whole form.
        stem = format!("{stem}%_{}", &hash[..31]);
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cells_file_is_readable() {
        let cell = CellKey::new(
            "idrid",
            "binary_dr",
            "linear_probing",
            "google/vit-large-patch16-224",
        );
        assert_eq!(
            cell.file_stem(),
            "idrid~binary_dr~linear_probing~google%2Fvit-large-patch16-224"
        );
        assert_eq!(file_stem(&["..", "a~b", ""]), "%2E.~a%7Eb~");
    }

    proptest! {
        #[test]
        fn names_are_plain_and_differ(a in proptest::collection::vec(".{0,90}", 1..4), b in proptest::collection::vec(".{0,90}", 1..4)) {
            let stem = |parts: &[String]| file_stem(&parts.iter().map(String::as_str).collect::<Vec<_>>());
            let name = stem(&a);
            prop_assert!(name.len() <= LONGEST);
            prop_assert!(name.bytes().all(|c| c.is_ascii_graphic() && c != b'/'));
            prop_assert!(!name.starts_with('.'));
            prop_assert_eq!(a == b, name == stem(&b));
        }
    }
}
