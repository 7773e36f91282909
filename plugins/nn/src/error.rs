//! What goes wrong on the way from files to weights. Must not know any model.

use std::path::PathBuf;

/// Names shown in a message before it says how many more there are.
const SHOWN: usize = 8;

/// A checkpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be opened or read.
    #[error("Cannot read `{}`: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A folder without a checkpoint.
    #[error("No weights in `{}`: expected one of {wanted}", folder.display())]
    NoCheckpoint {
        /// The folder.
        folder: PathBuf,
        /// File names that were looked for.
        wanted: String,
    },
    /// Several files that may be the checkpoint.
    #[error("Several files in `{}` may be the weights: expected one, found {}", folder.display(), list(found))]
    Ambiguous {
        /// The folder.
        folder: PathBuf,
        /// File names.
        found: Vec<String>,
    },
    /// A file that is not what its name says, or is cut short.
    #[error("`{file}` is not a readable checkpoint: {reason}")]
    Format {
        /// The file's name.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A pickle that asks for code, or for more than a checkpoint needs.
    #[error("`{file}` was refused at byte {at} of its pickle: {reason}")]
    Refused {
        /// The file's name.
        file: String,
        /// Offset in the pickle.
        at: usize,
        /// Why.
        reason: String,
    },
    /// The dictionary with the tensors is not where it should be.
    #[error(
        "No weights under {} in `{file}`: found {}",
        quoted(wanted),
        list(found)
    )]
    NoStateDict {
        /// The file's name.
        file: String,
        /// Keys looked for.
        wanted: Vec<String>,
        /// Keys at the top of the file.
        found: Vec<String>,
    },
    /// Two tensors have one name once prefixes are taken off.
    #[error(
        "Two tensors are called `{name}` once prefixes are taken off: `{first}` and `{second}`"
    )]
    SameName {
        /// The name.
        name: String,
        /// One full name.
        first: String,
        /// The other.
        second: String,
    },
    /// Tensors and architecture do not agree.
    #[error("{}", mismatch(missing, unexpected, shapes, *wanted))]
    Mismatch {
        /// Tensors of the architecture that the checkpoint lacks.
        missing: Vec<String>,
        /// Tensors of the checkpoint that the architecture lacks.
        unexpected: Vec<String>,
        /// Tensors of another shape or kind, each in words.
        shapes: Vec<String>,
        /// Tensors the architecture wants.
        wanted: usize,
    },
    /// Two tensors that must be one.
    #[error("`{copy}` and `{of}` differ: expected the same values, since they are tied")]
    Tied {
        /// The name of what repeats.
        copy: String,
        /// The name of what it should repeat.
        of: String,
    },
    /// A tensor's values cannot be had.
    #[error("Tensor `{name}` cannot be read: {reason}")]
    Tensor {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A configuration file that cannot be used.
    #[error("`{file}` cannot be used: {reason}")]
    Config {
        /// The file's name.
        file: String,
        /// Why.
        reason: String,
    },
    /// The tensor library failed.
    #[error("Weights could not be placed: {0}")]
    Compute(#[from] candle_core::Error),
}

impl LoadError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoCheckpoint { .. } => Some("Give the folder that holds the model's files as published".into()),
            Self::Ambiguous { .. } => Some("Leave one checkpoint in the folder".into()),
            Self::Refused { .. } => Some(
                "A checkpoint holds numbers; one that asks for code is damaged or hostile. Get it from its publisher again, or ask for a safetensors file"
                    .into(),
            ),
            Self::Mismatch { missing, wanted, .. } if missing.len() * 2 > *wanted => Some(
                "More than half of the tensors are missing: this is the checkpoint of another architecture, or its names carry a prefix that is not known here"
                    .into(),
            ),
            Self::Mismatch { .. } => Some("Check that checkpoint and config.json belong together and are complete".into()),
            Self::Tied { .. } => Some("A head that was trained by itself needs `tie_word_embeddings` false in config.json".into()),
            Self::Format { .. } => Some("Fetch the file again: it may be cut short, or a page of the server in place of the file".into()),
            _ => None,
        }
    }
}

fn quoted(words: &[String]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn list(words: &[String]) -> String {
    if words.is_empty() {
        return "none".into();
    }
    let shown = quoted(&words[..words.len().min(SHOWN)]);
    match words.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn mismatch(missing: &[String], unexpected: &[String], shapes: &[String], wanted: usize) -> String {
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!(
            "missing {} of {wanted}: {}",
            missing.len(),
            list(missing)
        ));
    }
    if !unexpected.is_empty() {
        parts.push(format!(
            "unexpected {}: {}",
            unexpected.len(),
            list(unexpected)
        ));
    }
    if !shapes.is_empty() {
        let shown = shapes[..shapes.len().min(SHOWN)].join("; ");
        parts.push(match shapes.len().saturating_sub(SHOWN) {
            0 => shown,
            more => format!("{shown}; and {more} more"),
        });
    }
    format!("Weights do not fit the architecture: {}", parts.join("; "))
}
