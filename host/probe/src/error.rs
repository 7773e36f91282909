//! What can go wrong in a probe, and what to do about it. It must not know who shows the message.

/// Why a probe could not be fitted or applied.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is no row to fit on.
    #[error("Expected at least one embedding, found none")]
    NoRows,
    /// The rows have no columns.
    #[error("Expected embeddings of at least one value each, found width 0 for {rows} rows")]
    NoColumns {
        /// How many labels came with them.
        rows: usize,
    },
    /// The values do not fill whole rows, or rows and labels differ in number.
    #[error(
        "Expected a whole number of embedding values per row for {rows} rows, found {values} values"
    )]
    Ragged {
        /// Number of rows (labels).
        rows: usize,
        /// Number of embedding values given.
        values: usize,
    },
    /// The labels do not match the prepared features in number.
    #[error("Expected one label for each of {rows} embeddings, found {labels}")]
    LabelCount {
        /// Rows of the features.
        rows: usize,
        /// Labels given.
        labels: usize,
    },
    /// Embeddings to score have another width than those the probe was fitted on.
    #[error(
        "Expected embeddings of width {expected}, found {values} values, which is not a multiple of it"
    )]
    Width {
        /// Width of the training embeddings.
        expected: usize,
        /// Number of values given.
        values: usize,
    },
    /// All labels are equal.
    #[error(
        "Expected both classes among {rows} labels, found {positives} positives and {negatives} negatives"
    )]
    OneClass {
        /// Number of labels.
        rows: usize,
        /// How many are positive.
        positives: usize,
        /// How many are negative.
        negatives: usize,
    },
    /// An embedding holds a NaN or an infinity.
    #[error("Expected finite embeddings, found `{value}` in row {row}, column {column}")]
    NotFinite {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The offending value.
        value: f32,
    },
    /// More values than this crate accepts.
    #[error("Expected at most {limit} embedding values, found {values}")]
    TooLarge {
        /// `MAX_VALUES`.
        limit: usize,
        /// Number of values given.
        values: usize,
    },
    /// A setting is outside its range.
    #[error("Expected `{name}` {range}, found {found}")]
    Setting {
        /// Field of `ProbeSpec`.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// What was given.
        found: f64,
    },
    /// The objective left the finite numbers at the starting point.
    #[error("Expected a finite objective, found loss {loss} and gradient norm {gradient_norm}")]
    Overflow {
        /// Loss at the starting point.
        loss: f64,
        /// Norm of the gradient there.
        gradient_norm: f64,
    },
    /// The text is not a device.
    #[error("Expected a device `cpu`, `cuda` or `cuda:N`, found `{found}`")]
    DeviceName {
        /// The text.
        found: String,
    },
    /// A CUDA device was asked of a build without CUDA.
    #[error("Expected a build with the `cuda` feature for device `{found}`, found one without")]
    NoCuda {
        /// The text.
        found: String,
    },
    /// Candle or the device failed.
    #[error("Tensor operation failed: {0}")]
    Tensor(#[from] candle_core::Error),
}

impl ProbeError {
    /// Advice for the person who meets the error, if there is any.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::OneClass { .. } => {
                "a probe needs images with and without the condition in the training split"
            }
            Self::NotFinite { .. } => {
                "the model returned a NaN or an infinity: look at that image and at the dtype the model ran in"
            }
            Self::TooLarge { .. } => "fit on a subset of the rows, or on a narrower embedding",
            Self::Width { .. } => {
                "training and test embeddings must come from the same model and the same output"
            }
            Self::NoCuda { .. } => "use `cpu`, or build with `--features cuda`",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_open_with_a_capital_and_carry_no_full_stop() {
        let all = [
            ProbeError::NoRows,
            ProbeError::NoColumns { rows: 3 },
            ProbeError::Ragged { rows: 3, values: 7 },
            ProbeError::LabelCount { rows: 3, labels: 4 },
            ProbeError::Width {
                expected: 3,
                values: 7,
            },
            ProbeError::OneClass {
                rows: 3,
                positives: 3,
                negatives: 0,
            },
            ProbeError::NotFinite {
                row: 1,
                column: 2,
                value: f32::NAN,
            },
            ProbeError::TooLarge {
                limit: 1,
                values: 2,
            },
            ProbeError::Setting {
                name: "c",
                range: "above 0",
                found: -1.0,
            },
            ProbeError::Overflow {
                loss: f64::NAN,
                gradient_norm: 0.0,
            },
            ProbeError::DeviceName {
                found: "gpu".to_owned(),
            },
            ProbeError::NoCuda {
                found: "cuda:0".to_owned(),
            },
        ];
        for error in all {
            let text = error.to_string();
            assert!(
                text.starts_with(char::is_uppercase) && !text.ends_with('.'),
                "{text}"
            );
        }
        assert!(
            ProbeError::NoCuda {
                found: "cuda".to_owned()
            }
            .hint()
            .is_some_and(|hint| hint.contains("--features cuda"))
        );
    }
}
