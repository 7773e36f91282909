//! What goes wrong between a question and token ids.

/// A tokenizer or a template that cannot be used, or cannot be used so.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// A file is not there.
    #[error("The weights folder lacks {wanted}")]
    Missing {
        /// Names looked for.
        wanted: String,
    },
    /// A file cannot be used.
    #[error("`{file}` cannot be used: {reason}")]
    File {
        /// Its name.
        file: String,
        /// Why.
        reason: String,
    },
    /// The template fails on a conversation.
    #[error("Chat template `{file}` failed at line {line}: {reason}")]
    Template {
        /// The file it is from.
        file: String,
        /// Line of the template, from 1; 0: not known.
        line: usize,
        /// What it said.
        reason: String,
    },
    /// The template prints another number of picture slots than there are pictures.
    #[error(
        "Chat template `{file}` has no place for the pictures: expected {expected} times `{slot}`, found {found}"
    )]
    Slots {
        /// The file it is from.
        file: String,
        /// What stands for a picture.
        slot: String,
        /// Pictures.
        expected: usize,
        /// Slots printed, those in the question's own text too.
        found: usize,
    },
    /// A token that the family needs is not in the vocabulary.
    #[error("The tokenizer does not know `{token}`")]
    UnknownToken {
        /// The token.
        token: String,
    },
    /// The tokenizer knows more ids than the model has rows.
    #[error("The tokenizer does not fit the weights: expected ids below {rows}, found {id}")]
    Beyond {
        /// An id.
        id: u32,
        /// Rows of the token table.
        rows: usize,
    },
    /// The tokenizer failed on a text.
    #[error("Text `{text}` cannot be tokenized: {reason}")]
    Text {
        /// The text.
        text: String,
        /// Why.
        reason: String,
    },
}

impl ChatError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => {
                Some("These files are published beside the weights; put them into the folder".into())
            }
            Self::Slots {
                expected, found, ..
            } if found > expected => {
                Some("Take the picture's token out of the prompt's text".into())
            }
            Self::Slots { .. } => Some(
                "The template is of a model for text alone, or takes pictures in another form; use the one published with the weights"
                    .into(),
            ),
            Self::UnknownToken { .. } | Self::Beyond { .. } => {
                Some("Check that tokenizer, config.json and weights belong together".into())
            }
            _ => None,
        }
    }
}
