//! What goes wrong between texts and ids.

/// Texts that cannot become ids.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// No file describes the tokenizer.
    #[error("No tokenizer in the weights folder: expected `tokenizer.json`{}", if *vocab { " or `vocab.txt`" } else { "" })]
    Missing {
        /// Whether `vocab.txt` would do.
        vocab: bool,
    },
    /// A file cannot be used.
    #[error("`{file}` cannot be used: {reason}")]
    File {
        /// Its name.
        file: &'static str,
        /// Why.
        reason: String,
    },
    /// The tokenizer knows more ids than the model has rows.
    #[error("The tokenizer does not fit the weights: expected ids below {rows}, found {id}")]
    Beyond {
        /// An id.
        id: u32,
        /// Rows of the token table.
        rows: usize,
    },
    /// No text at all.
    #[error("No texts: expected one or more")]
    Empty,
    /// The tokenizer failed on a text.
    #[error("Text `{text}` cannot be tokenized: {reason}")]
    Text {
        /// The text.
        text: String,
        /// Why.
        reason: String,
    },
}

impl TokenizerError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => Some(
                "The tokenizer's files are published beside the weights, or beside those of the model they were trained from; put them into the folder"
                    .into(),
            ),
            Self::Beyond { .. } => Some("Check that tokenizer and checkpoint belong together".into()),
            _ => None,
        }
    }
}
