//! What the caller can get wrong, as typed errors. Owns no computation. A metric that is undefined on valid input is
//! no error: see [`crate::Missing`].

use thiserror::Error;

/// Input that no metric can be computed on.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MetricError {
    /// Two columns of one table have different lengths.
    #[error("Column `{column}` has the wrong length: expected {expected} rows, found {found}")]
    Length {
        /// Name of the offending column.
        column: &'static str,
        /// Rows of the label column.
        expected: usize,
        /// Rows of the offending column.
        found: usize,
    },
    /// A score is NaN or infinite.
    #[error("Score in row {row} is not finite: expected a number, found {score}")]
    NonFiniteScore {
        /// Zero-based row.
        row: usize,
        /// The score as given.
        score: f64,
    },
    /// A number to be averaged is NaN or infinite.
    #[error("Value at position {position} is not finite: expected a number, found {found}")]
    NonFiniteValue {
        /// Zero-based position.
        position: usize,
        /// The value as given.
        found: f64,
    },
    /// Two arms of a paired comparison disagree about a row's label.
    #[error("Label in row {row} differs between arms: expected {expected}, found {found}")]
    LabelMismatch {
        /// Zero-based row.
        row: usize,
        /// Label in the first arm.
        expected: bool,
        /// Label in the other arm.
        found: bool,
    },
    /// A table with more rows than row numbers of 32 bits can name.
    #[error("Table is too long: expected at most {limit} rows, found {found}")]
    TooManyRows {
        /// Largest length taken.
        limit: usize,
        /// Length found.
        found: usize,
    },
    /// A bootstrap without rows.
    #[error("Nothing to resample: expected at least 1 row, found 0")]
    NoRows,
    /// A bootstrap without resamples.
    #[error("Nothing to resample: expected at least 1 resample, found 0")]
    NoResamples,
    /// Resampled series of unequal length.
    #[error("Series cannot be combined: expected {expected} resamples, found {found}")]
    ResampleCount {
        /// Resamples of the first series.
        expected: u32,
        /// Resamples of the offending series.
        found: u32,
    },
    /// A unit number beyond the number of units.
    #[error("Unit of row {row} is out of range: expected a number below {count}, found {found}")]
    UnitNumber {
        /// Zero-based row.
        row: usize,
        /// Number of units.
        count: u32,
        /// The number as given.
        found: u32,
    },
    /// A permutation test without permutations.
    #[error("Nothing to permute: expected at least 1 permutation, found 0")]
    NoPermutations,
    /// A metric that cannot be standardised by strata.
    #[error(
        "Metric `{metric}` cannot be standardised: expected a share of rows, found another form"
    )]
    NotAShare {
        /// Id of the metric.
        metric: &'static str,
    },
    /// A ranking by a metric of which neither more nor less is better.
    #[error(
        "Nothing can be ranked: expected a metric with a better direction, found a neutral one"
    )]
    NoDirection,
    /// A prior or a training split with one class only.
    #[error(
        "Training prior is degenerate: expected positives and negatives, found {positives} and {negatives}"
    )]
    DegeneratePrior {
        /// Positives of the training split.
        positives: u64,
        /// Negatives of the training split.
        negatives: u64,
    },
    /// A score that should be a probability.
    #[error("Score in row {row} is not a probability: expected a value in [0, 1], found {score}")]
    NotAProbability {
        /// Zero-based row.
        row: usize,
        /// The score as given.
        score: f64,
    },
    /// A p-value outside its range.
    #[error(
        "P-value at position {position} is out of range: expected a value in [0, 1], found {found}"
    )]
    PValue {
        /// Zero-based position.
        position: usize,
        /// The value as given.
        found: f64,
    },
}

impl MetricError {
    /// Advice for the user, where there is any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NonFiniteScore { .. } => Some(
                "record the row as score-unavailable instead of giving it a placeholder score"
                    .into(),
            ),
            Self::LabelMismatch { .. } => {
                Some("align both arms by image id, and compare runs on the same labels only".into())
            }
            Self::NotAProbability { .. } => Some(
                "rank metrics take any finite score; only calibration needs probabilities".into(),
            ),
            Self::ResampleCount { .. } => {
                Some("draw every test set with the same number of resamples".into())
            }
            Self::NotAShare { .. } => {
                Some("standardise accuracy and the rates; AUROC compares rows across strata".into())
            }
            _ => None,
        }
    }
}
