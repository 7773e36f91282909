//! Which photograph is trained on and which is tested: the published files, the source's own split, and a drawn one. Reads no pixels.
//!
//! A plan is made from records and never changes them until `apply`. The rules are in `docs/curation.md`.

mod account;
mod defects;
mod file;
mod matching;
mod own;
mod published;
mod source;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use focus_store::Records;
use serde::{Deserialize, Serialize};

pub use account::{
    Action, Defect, EXAMPLES, LabelCounts, SPLIT_VERSION, SplitAccount, SplitCounts, SplitKind,
    SplitNote, SplitSource, Track,
};
pub use file::{
    FileShape, MAX_SPLIT_FILE, PublishedFile, PublishedRow, parse_published, read_published,
};
pub use own::{OwnSplit, own};
pub use published::published;
pub use source::source;

use crate::{CurationError, Result};

/// A split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Trained on.
    Train,
    /// Chosen on.
    Validation,
    /// Tested on.
    Test,
}

impl Split {
    /// All, in the order of lists and ties.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }

    /// From the word in records.
    pub fn from_record(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|split| split.as_str() == word)
    }
}

impl fmt::Display for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How often the published code works on a photograph: in which split, with which labels, in how many rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// Index of the record.
    pub sample: u32,
    /// The split of these rows.
    pub split: Split,
    /// Labels by task that these rows bring; `None`: the record's published ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, bool>>,
    /// Rows after the merge of rows and labels: those that are fitted on.
    pub rows: u64,
    /// Rows after the second merge, or the join by position: those that are analysed. 0 outside test.
    pub analysed: u64,
}

/// A split for each record, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitPlan {
    /// By record index; `None` is in no split.
    pub splits: Vec<Option<Split>>,
    /// Track `as_published` only, else empty: every use of every photograph, sorted. A photograph in two splits is here twice and in `splits` under test.
    pub uses: Vec<Use>,
    /// How it came about.
    pub account: SplitAccount,
}

impl SplitPlan {
    /// Write the splits into the records that the plan was made from.
    pub fn apply(&self, records: &mut Records) -> Result<()> {
        if records.rows.len() != self.splits.len() {
            return Err(CurationError::Lengths {
                what: "split",
                expected: records.rows.len(),
                found: self.splits.len(),
            });
        }
        for (record, split) in records.rows.iter_mut().zip(&self.splits) {
            record.split = split.map(|split| split.as_str().to_owned());
        }
        Ok(())
    }

    /// `blake3:` and a hash over rules, source and every record's split: for a run's identity. The same for any order of the records.
    pub fn digest(&self, records: &Records) -> String {
        let account = &self.account;
        let head = serde_json::json!([
            account.version,
            account.dataset,
            account.kind,
            account.track,
            account.file.as_ref().map(|file| &file.digest),
            account.seed,
            account.shares,
        ]);
        let mut lines: Vec<String> = records
            .rows
            .iter()
            .zip(&self.splits)
            .map(|(record, split)| {
                serde_json::json!([record.dataset, record.id, split]).to_string()
            })
            .collect();
        lines.sort_unstable();
        let mut hasher = blake3::Hasher::new();
        hasher.update(head.to_string().as_bytes());
        for line in &lines {
            hasher.update(b"\n").update(line.as_bytes());
        }
        format!("blake3:{}", hasher.finalize().to_hex())
    }
}

/// The one dataset of the records.
fn dataset_of(records: &Records) -> Result<String> {
    let found: BTreeSet<&str> = records.rows.iter().map(|r| r.dataset.as_str()).collect();
    match found.iter().next() {
        Some(one) if found.len() == 1 => Ok((*one).to_owned()),
        _ => Err(CurationError::Datasets {
            found: found.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// How a record is named in notes: its path below the dataset's folder, else its id.
fn name_of(record: &focus_store::Record) -> String {
    record.path.clone().unwrap_or_else(|| record.id.clone())
}
