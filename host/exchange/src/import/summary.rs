//! What an import read, left out and could not tell: for people, and for `import.json`. It must not know how it came
//! about.

use serde::Serialize;
use std::collections::BTreeMap;

/// Examples kept of a thing that is counted.
const EXAMPLES: usize = 5;

/// A number of things, and some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<String>,
}

impl Counted {
    pub(crate) fn add(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }
}

/// What an import did. Stored as `import.json` in the run folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// `focus-import`.
    pub schema: String,
    /// 1.
    pub schema_version: u32,
    /// Result files read.
    pub files: u64,
    /// Cells written.
    pub cells: u64,
    /// Prediction rows written.
    pub rows: u64,
    /// Images in the records.
    pub images: u64,
    /// Rows without a known label.
    pub unknown_labels: u64,
    /// Rows that cannot be scored in full, by `outcome` or `outcome:reason`.
    pub excluded: BTreeMap<String, u64>,
    /// Rows left out by `--on-bad-row drop`, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Files passed over by `--on-bad-row drop`: their names have no reading.
    pub skipped_files: Vec<String>,
    /// Cells of which no row was left.
    pub empty_cells: Vec<String>,
    /// Ids of result files that no known image bears (with metadata or a data folder).
    pub unmatched_ids: Counted,
    /// Test images of the metadata or data folder that no result file names.
    pub unmatched_images: Counted,
    /// Models whose names are not among the aliases, as written.
    pub unknown_models: Vec<String>,
    /// Rows with a text of which `prob_yes` and `prob_no` are both 0: what the published code writes when it finds none.
    pub both_zero: u64,
    /// Labels of the data folder (as published) that differ from `ground_truth`, which was kept.
    pub published_label_differs: Counted,
    /// Where the corrected and the published labels come from, in a sentence.
    pub labels: String,
    /// Columns that were not read, with the number of files that have them.
    pub unread_columns: BTreeMap<String, u64>,
    /// What else a reader should know.
    pub remarks: Vec<String>,
}
