//! Why an analysis stops. Bad data is an error that names run, image and rule; what is merely missing is typed in the
//! results instead.

use crate::name::NameError;
use focus_metrics::MetricError;
use focus_store::{CellKey, StoreError};
use std::path::PathBuf;

/// Result of an analysis.
pub type Result<T, E = AnalysisError> = std::result::Result<T, E>;

/// An analysis that cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A stored table.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A model's name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A stored JSON file.
    #[error("`{}` cannot be read: {reason}", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A value that a metric refuses.
    #[error("Cell `{cell}`: {source}")]
    Metric {
        /// Which cell.
        cell: Box<CellKey>,
        /// What is wrong.
        source: MetricError,
    },
    /// A computation over several cells that a metric refuses.
    #[error("{what}: {source}")]
    Computation {
        /// What was computed.
        what: String,
        /// What is wrong.
        source: MetricError,
    },
    /// Predictions about images that the records do not have.
    #[error(
        "Cell `{cell}`: expected a record for each of {rows} test images, found none for {missing}, the first being `{first}`"
    )]
    Join {
        /// Which cell.
        cell: Box<CellKey>,
        /// Test rows.
        rows: usize,
        /// Of these, without a record.
        missing: usize,
        /// Id of the first of them.
        first: String,
    },
    /// An image that occurs twice where it must occur once.
    #[error("{place}: expected each image once, found `{image}` again")]
    Duplicate {
        /// Which cell, or which run's records.
        place: String,
        /// Id of the image.
        image: String,
    },
    /// Two runs that say different things about one image.
    #[error(
        "Image `{image}` of `{dataset}`: {what} is {first} in {first_run} and {second} in {second_run}"
    )]
    Disagree {
        /// Dataset id.
        dataset: Box<str>,
        /// Id of the image.
        image: Box<str>,
        /// What they disagree about: "label `binary_dr`", "age".
        what: Box<str>,
        /// In the first.
        first: Box<str>,
        /// The first run.
        first_run: Box<str>,
        /// In the second.
        second: Box<str>,
        /// The second run.
        second_run: Box<str>,
    },
    /// One cell in two runs, with different predictions.
    #[error("Cell `{cell}` is in `{first}` and in `{second}`, with different predictions")]
    TwoRuns {
        /// Which cell.
        cell: Box<CellKey>,
        /// The first run.
        first: String,
        /// The second run.
        second: String,
    },
    /// Cells that cannot be paired.
    #[error("Nothing to compare: {what}")]
    NothingToPair {
        /// Why.
        what: String,
    },
}

impl AnalysisError {
    /// Names the cell in which a metric failed.
    pub(crate) fn in_cell(cell: &CellKey) -> impl FnOnce(MetricError) -> Self {
        let cell = Box::new(cell.clone());
        move |source| Self::Metric { cell, source }
    }

    /// Names the computation in which a metric failed.
    pub(crate) fn during(what: impl Into<String>) -> impl FnOnce(MetricError) -> Self {
        let what = what.into();
        move |source| Self::Computation { what, source }
    }

    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Name(error) => error.hint(),
            Self::Metric { source, .. } | Self::Computation { source, .. } => source.hint(),
            Self::Json { .. } => {
                Some("the run may not be finished: repeat its `eval` command to resume it".into())
            }
            Self::Join { .. } => Some(
                "predictions and records must be of one run: `focus-host verify` checks a folder"
                    .into(),
            ),
            Self::Duplicate { .. } => {
                Some("an image's id must be unique within its dataset and fold".into())
            }
            Self::Disagree { .. } => Some(
                "the two runs read different label files, or read them with different mappers: evaluate both on the same ones".into(),
            ),
            Self::TwoRuns { .. } => Some("leave one of the two runs out".into()),
            Self::NothingToPair { .. } => Some(
                "name the method and the model of each side where they differ".into(),
            ),
        }
    }
}
