//! What was done to make a split, in counts and words: goes into the run's records and reports. Decides nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Split;

/// Version of every rule that decides a split here; raised when a plan could change.
pub const SPLIT_VERSION: u32 = 1;

/// Most examples that a note keeps.
pub const EXAMPLES: usize = 5;

/// Where a split comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitKind {
    /// The benchmark's published split file.
    Published,
    /// The source's own folders or columns.
    Source,
    /// Drawn here: seeded, by patient, stratified.
    Own,
}

/// The two readings of the published benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Track {
    /// What the published code makes of the file.
    AsPublished,
    /// What a statistician signs.
    Corrected,
}

/// Rows or photographs in each split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SplitCounts {
    /// In train.
    pub train: u64,
    /// In validation.
    pub validation: u64,
    /// In test.
    pub test: u64,
}

impl SplitCounts {
    /// Add `n` to a split.
    pub fn add(&mut self, split: Split, n: u64) {
        *match split {
            Split::Train => &mut self.train,
            Split::Validation => &mut self.validation,
            Split::Test => &mut self.test,
        } += n;
    }

    /// The count of a split.
    pub fn of(&self, split: Split) -> u64 {
        match split {
            Split::Train => self.train,
            Split::Validation => self.validation,
            Split::Test => self.test,
        }
    }

    /// All three together.
    pub fn total(&self) -> u64 {
        self.train + self.validation + self.test
    }
}

/// Known labels of a task in a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LabelCounts {
    /// Positive photographs.
    pub positive: u64,
    /// Negative photographs.
    pub negative: u64,
    /// Photographs without a known label.
    pub unknown: u64,
}

/// A named fault of a split file, of the code that reads it, or of the match between file and photographs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Defect {
    /// A row's path names a photograph of another split of the source than the row's own (IDRiD).
    PathNamesOtherSplit,
    /// One path in two splits.
    PathInTwoSplits,
    /// One path whose rows disagree on a task's label.
    PathWithTwoLabels,
    /// Labelled photographs of the source that no row's path names.
    PhotographNeverUsed,
    /// A merge on the path makes more rows than the file has.
    RowsDoubledByMerge,
    /// Results joined to labels by row position (mBRSET).
    JoinByPosition,
    /// A patient with photographs in two splits.
    PatientInTwoSplits,
    /// Photographs without a patient key: leaks between splits cannot be excluded.
    NoPatientKey,
    /// Image ids that name several photographs, so that only the path or the split tells them apart (RFMiD, IDRiD).
    ImageIdRepeats,
    /// The id in a row is not the name in its path.
    IdDiffersFromPath,
    /// Paths of the machine that the file was made on; matched by their last parts.
    ForeignAbsolutePaths,
    /// Rows whose photograph is not there.
    RowWithoutPhotograph,
    /// Photographs that the file does not name (BRSET without diabetes, disc views of mBRSET).
    PhotographNotInFile,
    /// The same photograph twice in one split.
    RepeatedRow,
    /// The file's label is not the published label derived from the label table.
    LabelDiffersFromTable,
    /// A label of the published reading where the corrected one knows none (RFMiD referable, blanks as 0, JSIEC's ambiguous classes).
    LabelOnlyAsPublished,
    /// The published and the corrected label contradict each other.
    LabelDiffersFromCorrected,
    /// A task with positives but no negatives, or the reverse, in a split that is trained or tested on.
    OneClassOnly,
    /// The patient of a row is not the record's.
    PatientDiffers,
    /// The file names its dataset differently.
    DatasetNameDiffers,
}

/// What the plan does about a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Kept as it is, and counted.
    Kept,
    /// Put right in the plan.
    Repaired,
    /// What is concerned has no split.
    LeftOut,
}

/// One defect, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitNote {
    /// Which.
    pub defect: Defect,
    /// Rows, photographs or patients concerned, as `detail` says.
    pub count: u64,
    /// What was done.
    pub action: Action,
    /// In words, with the task where it is one task's.
    pub detail: String,
    /// The first few, in order. Names below the dataset's folder and patient keys only, never paths of a machine.
    pub examples: Vec<String>,
}

/// The file that a published split was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSource {
    /// File name without folders.
    pub name: String,
    /// `blake3:` and the hexadecimal hash of its bytes.
    pub digest: String,
    /// Its shape.
    pub shape: super::FileShape,
    /// Rows, header and empty lines excepted.
    pub rows: u64,
}

/// How a plan was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitAccount {
    /// [`SPLIT_VERSION`].
    pub version: u32,
    /// Dataset.
    pub dataset: String,
    /// Where the split comes from.
    pub kind: SplitKind,
    /// Reading of the published file.
    pub track: Option<Track>,
    /// The rule that gave the splits, in words.
    pub rule: String,
    /// The published file.
    pub file: Option<SplitSource>,
    /// Rows of the file by split.
    pub file_counts: Option<SplitCounts>,
    /// Rows that the published code works on: after its merge on the path.
    pub effective_counts: Option<SplitCounts>,
    /// Test rows that the published analysis keeps: after its second merge, or after its join by position.
    pub analysed_rows: Option<u64>,
    /// Photographs in each split of this plan.
    pub counts: SplitCounts,
    /// Records without a split in this plan.
    pub without_split: u64,
    /// Patients with a photograph in some split, where keys are known.
    pub patients: u64,
    /// Of these, with photographs in more than one split.
    pub straddling_patients: u64,
    /// Photographs in some split without a patient key.
    pub without_patient: u64,
    /// Seed, where something was drawn.
    pub seed: Option<u64>,
    /// Shares asked for, where something was drawn: train, validation, test.
    pub shares: Option<[f64; 3]>,
    /// Corrected labels by task and split.
    pub labels: BTreeMap<String, BTreeMap<Split, LabelCounts>>,
    /// The same of the published labels.
    pub published_labels: BTreeMap<String, BTreeMap<Split, LabelCounts>>,
    /// Defects met, in the order of [`Defect`].
    pub notes: Vec<SplitNote>,
}

impl SplitAccount {
    /// Count of a defect over its notes; 0 where it was not met.
    pub fn count(&self, defect: Defect) -> u64 {
        self.notes
            .iter()
            .filter(|note| note.defect == defect)
            .map(|note| note.count)
            .sum()
    }
}

/// Gathers notes; a note of nothing is not kept.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<SplitNote>);

impl Notes {
    pub(super) fn add(
        &mut self,
        defect: Defect,
        action: Action,
        count: usize,
        detail: impl Into<String>,
        examples: impl IntoIterator<Item = String>,
    ) {
        if count > 0 {
            self.0.push(SplitNote {
                defect,
                count: count as u64,
                action,
                detail: detail.into(),
                examples: examples.into_iter().take(EXAMPLES).collect(),
            });
        }
    }

    pub(super) fn sorted(mut self) -> Vec<SplitNote> {
        self.0
            .sort_by(|a, b| (a.defect, &a.detail).cmp(&(b.defect, &b.detail)));
        self.0
    }
}
