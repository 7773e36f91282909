//! What can be wrong with a catalogue file.

use std::path::PathBuf;

/// A catalogue file that cannot be used. Nothing of it is taken.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file cannot be read.
    #[error("Could not read `{}`: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not the form that is expected.
    #[error("`{}` is not a catalogue: {reason}", file.display())]
    Form {
        /// The file.
        file: PathBuf,
        /// What does not fit, with its line.
        reason: String,
    },
    /// It is of another version.
    #[error("`{}` has another version: expected {expected}, found {found}", file.display())]
    Version {
        /// The file.
        file: PathBuf,
        /// Version that this program reads.
        expected: u32,
        /// Version found.
        found: u32,
    },
    /// One name for two things.
    #[error("`{}` names `{name}` twice: {what}", file.display())]
    Twice {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
        /// What the two are.
        what: String,
    },
    /// A value outside its rule.
    #[error("`{}`, `{name}`: {rule}, found `{found}`", file.display())]
    Rule {
        /// The file.
        file: PathBuf,
        /// Which entry.
        name: String,
        /// The rule.
        rule: &'static str,
        /// What was there instead.
        found: String,
    },
}

impl CatalogueError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { .. } => return None,
            Self::Form { .. } => {
                "entries are `[[model]]` (id, family, group, aliases, pretraining, source) and `[[dataset]]` (id, title, country, device, published, corrected, splits, fine_tuning, source)".into()
            }
            Self::Version { .. } => "write `version = 1` at the top of the file".into(),
            Self::Twice { .. } => "give each model and alias once; an entry with the id of a known one replaces it".into(),
            Self::Rule { .. } => "ids hold no blanks and no `+`, which begins a variation".into(),
        })
    }
}
