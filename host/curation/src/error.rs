//! Why a split could not be made or a folder not be used: typed, with a hint for people. Findings of the audit are no errors and live there.

use std::path::PathBuf;

/// Result of curation.
pub type Result<T, E = CurationError> = std::result::Result<T, E>;

/// A split, an audit or a preparation could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CurationError {
    /// The operating system refused.
    #[error("Could not {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A split file larger than is read.
    #[error("`{}` is too large for a split file: expected at most {limit} bytes, found {bytes}", file.display())]
    SplitFileTooLarge {
        /// The file.
        file: PathBuf,
        /// Bytes found.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The header is none of the published shapes.
    #[error("`{}` is no published split file: expected the columns {expected}, found {found}", file.display())]
    SplitHeader {
        /// The file.
        file: PathBuf,
        /// The known headers, in words.
        expected: String,
        /// The header of the file.
        found: String,
    },
    /// A row of a split file breaks a rule.
    #[error("`{}`, line {line}: {rule}, found {found}", file.display())]
    SplitRow {
        /// The file.
        file: PathBuf,
        /// Line, from 1; the header is line 1.
        line: u64,
        /// The rule.
        rule: &'static str,
        /// What was found.
        found: String,
    },
    /// No records, or records of several datasets.
    #[error("A split is made for one dataset: expected 1, found {}", if found.is_empty() { "none".to_owned() } else { format!("`{}`", found.join("`, `")) })]
    Datasets {
        /// Datasets of the records.
        found: Vec<String>,
    },
    /// No row of the file names a photograph of the dataset.
    #[error("No row of `{}` names a photograph of the dataset `{dataset}`: expected matches for {rows} rows, found 0", file.display())]
    NoRowMatches {
        /// The file.
        file: PathBuf,
        /// The dataset of the records.
        dataset: String,
        /// Rows of the file.
        rows: u64,
    },
    /// Rows that fit several photographs.
    #[error("`{}` has {rows} rows that each fit several photographs, first line {line}: {example}", file.display())]
    AmbiguousRows {
        /// The file.
        file: PathBuf,
        /// How many.
        rows: u64,
        /// Line of the first.
        line: u64,
        /// The row's image and the photographs that fit it.
        example: String,
    },
    /// One photograph in two splits, where the corrected track forbids it.
    #[error("`{}` puts {images} photographs in two splits, first `{example}`", file.display())]
    ImageInTwoSplits {
        /// The file.
        file: PathBuf,
        /// How many.
        images: u64,
        /// Path of the first.
        example: String,
    },
    /// The source's split has a name that is not known.
    #[error(
        "Record `{id}` has an unknown source split: expected `train`, `validation` or `test`, found `{found}`"
    )]
    SourceSplit {
        /// The record.
        id: String,
        /// Its split.
        found: String,
    },
    /// The source offers no split.
    #[error(
        "Dataset `{dataset}` has no split of its source: expected one for some record, found none"
    )]
    NoSourceSplit {
        /// The dataset.
        dataset: String,
    },
    /// Shares that make no split.
    #[error(
        "Shares of a split must lie in [0, 1], those of train and test above 0, and sum to 1: found train {train}, validation {validation}, test {test}"
    )]
    Shares {
        /// Share of train.
        train: f64,
        /// Share of validation.
        validation: f64,
        /// Share of test.
        test: f64,
    },
    /// Two lists that belong together have different lengths.
    #[error("Expected one {what} for each of {expected} records, found {found}")]
    Lengths {
        /// What is listed.
        what: &'static str,
        /// Records.
        expected: usize,
        /// Entries.
        found: usize,
    },
    /// No worker threads.
    #[error("Could not start {threads} threads: {reason}")]
    Threads {
        /// How many were wanted.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}

impl CurationError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { .. } => "check that the file is there and may be read".into(),
            Self::SplitFileTooLarge { .. } | Self::SplitHeader { .. } => "give the dataset's split file of the published benchmark, unchanged".into(),
            Self::SplitRow { .. } => "correct the row, or fetch the split file again".into(),
            Self::Datasets { .. } => "map and split one dataset at a time".into(),
            Self::NoRowMatches { .. } => "the split file is of another dataset, or the photographs have other names than those published".into(),
            Self::AmbiguousRows { .. } => "names alone do not tell these photographs apart: keep the source's folders, so that its own splits are known, and leave out second copies".into(),
            Self::ImageInTwoSplits { .. } => "use the track `as_published` to see what the published code does with this file, or a split of our own".into(),
            Self::SourceSplit { .. } => "the mapper must name the source's splits in these words".into(),
            Self::NoSourceSplit { .. } => "use the published split file or a split of our own".into(),
            Self::Shares { .. } => "the default is 0.6 for train and 0.4 for test".into(),
            Self::Lengths { .. } | Self::Threads { .. } => return None,
        })
    }
}
