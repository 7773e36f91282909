//! What an audit found, as data: kinds, severities, the report and its exit policy. Looks for nothing and formats nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::splits::{LabelCounts, Split};

/// Version of the report's fields and of the findings' rules.
pub const AUDIT_VERSION: u32 = 1;

/// Most examples that a finding keeps.
pub const EXAMPLES: usize = 5;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Numbers from this data would be wrong, or images cannot be used.
    Error,
    /// Numbers may mislead; look before trusting them.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// All, worst first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident => $word:literal),+ $(,)?) => {
        /// What was found. Words are never changed, only added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FindingKind {
            $($(#[$doc])* #[serde(rename = $word)] $variant),+
        }

        impl FindingKind {
            /// The word in reports.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

kinds! {
    /// No file where a record's photograph should be.
    ImageMissing => "image_missing",
    /// A file that is no usable photograph.
    ImageUnreadable => "image_unreadable",
    /// Byte for byte the same file in two splits.
    SameFileAcrossSplits => "same_file_across_splits",
    /// The same file more than once, not across splits.
    SameFile => "same_file",
    /// The same photograph stored differently, in two splits.
    NearDuplicateAcrossSplits => "near_duplicate_across_splits",
    /// The same photograph stored differently, not across splits.
    NearDuplicate => "near_duplicate",
    /// The same photograph with two labels of one task.
    DuplicateWithTwoLabels => "duplicate_with_two_labels",
    /// The search for near-duplicates reached its limit.
    NearSearchIncomplete => "near_search_incomplete",
    /// Pictures without structure: black, blank.
    Featureless => "featureless",
    /// One path whose records have two labels of one task.
    PathWithTwoLabels => "path_with_two_labels",
    /// One path in two splits.
    PathInTwoSplits => "path_in_two_splits",
    /// A patient in two splits.
    PatientInTwoSplits => "patient_in_two_splits",
    /// Split photographs without a patient key.
    NoPatientKey => "no_patient_key",
    /// Labels that contradict the grade or edema they derive from.
    LabelConflict => "label_conflict",
    /// A class with fewer photographs in a split than the floor.
    FewOfClass => "few_of_class",
    /// A class that is absent from train or test.
    ClassAbsent => "class_absent",
    /// A file name's token that goes with a label.
    NameLeaksLabel => "name_leaks_label",
    /// A folder that goes with a label.
    FolderLeaksLabel => "folder_leaks_label",
    /// An image id's token that goes with a label.
    IdLeaksLabel => "id_leaks_label",
    /// A picture size that goes with a label.
    SizeGoesWithLabel => "size_goes_with_label",
    /// A prompt that holds values of label columns.
    PromptHoldsLabel => "prompt_holds_label",
    /// A prompt that differs between images.
    PromptVaries => "prompt_varies",
    /// Pictures smaller than a model wants.
    LowResolution => "low_resolution",
    /// Licence and access of a dataset.
    Terms => "terms",
    /// A dataset without a known licence.
    LicenceUnknown => "licence_unknown",
    /// A defect of a split file or plan.
    SplitDefect => "split_defect",
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// How bad.
    pub severity: Severity,
    /// How many of what `detail` says.
    pub count: u64,
    /// In words.
    pub detail: String,
    /// The first few, in record order.
    pub examples: Vec<String>,
    /// What to do.
    pub advice: String,
}

/// What an audit saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditReport {
    /// [`AUDIT_VERSION`].
    pub version: u32,
    /// Datasets of the records.
    pub datasets: Vec<String>,
    /// Records.
    pub records: u64,
    /// Files that were read and decoded.
    pub images_read: u64,
    /// Files that were not, by kind of image error.
    pub images_failed: BTreeMap<String, u64>,
    /// Patient keys.
    pub patients: u64,
    /// Labels by task and split; records without a split under `none`.
    pub labels: BTreeMap<String, BTreeMap<String, LabelCounts>>,
    /// Thresholds in force, by name.
    pub thresholds: BTreeMap<String, f64>,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// When a command that made this report fails, in words.
    pub exit_policy: String,
}

/// The policy that every report states.
pub const EXIT_POLICY: &str = "The exit code is 6 if any finding is an error, or, where warnings were asked to fail, a warning; else 0. Notes never fail.";

impl AuditReport {
    /// Findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        let findings = self.findings.iter();
        findings.filter(|f| f.severity == severity).count()
    }

    /// Findings of a kind.
    pub fn of(&self, kind: FindingKind) -> Vec<&Finding> {
        self.findings.iter().filter(|f| f.kind == kind).collect()
    }

    /// Adds findings from elsewhere, such as [`super::prompt_findings`], in their places.
    pub fn add(&mut self, findings: Vec<Finding>) {
        let mut all = Findings(std::mem::take(&mut self.findings));
        all.0.extend(findings);
        self.findings = all.sorted();
    }

    /// Whether the command should fail, as `exit_policy` says.
    pub fn fails(&self, warnings_fail: bool) -> bool {
        self.count(Severity::Error) > 0 || (warnings_fail && self.count(Severity::Warning) > 0)
    }
}

/// Gathers findings; one of nothing is not kept.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn add(
        &mut self,
        kind: FindingKind,
        severity: Severity,
        count: usize,
        detail: impl Into<String>,
        examples: impl IntoIterator<Item = String>,
        advice: &str,
    ) {
        if count > 0 {
            self.0.push(Finding {
                kind,
                severity,
                count: count as u64,
                detail: detail.into(),
                examples: examples.into_iter().take(EXAMPLES).collect(),
                advice: advice.into(),
            });
        }
    }

    pub(super) fn sorted(mut self) -> Vec<Finding> {
        self.0
            .sort_by(|a, b| (a.severity, a.kind, &a.detail).cmp(&(b.severity, b.kind, &b.detail)));
        self.0
    }
}

/// The split of a record by word, `none` without one.
pub(super) fn split_word(split: Option<Split>) -> &'static str {
    split.map_or("none", Split::as_str)
}
