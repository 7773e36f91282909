//! What is wrong with a dataset before a model sees it. One pass over the files, then questions to records and fingerprints.
//!
//! Every finding has a rule in `docs/curation.md`. Must not know mappers, models' code or how output is printed.

mod facts;
mod files;
mod finding;
mod fingerprint;
mod leak;
mod near;
mod prompt;
mod render;
mod scan;

use std::collections::BTreeSet;
use std::path::PathBuf;

use focus_images::Limits;
use focus_store::Records;
use serde::{Deserialize, Serialize};

pub use finding::{AUDIT_VERSION, AuditReport, EXIT_POLICY, Finding, FindingKind, Severity};
pub use prompt::{Prompt, prompt_findings};
pub use render::{markdown, text};
pub use scan::Progress;

use crate::splits::SplitAccount;
use crate::{CurationError, Result};
use finding::Findings;

/// A size that a model takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Model, for the report.
    pub model: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// How a dataset is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Anyone may fetch it.
    Open,
    /// After registration.
    Registration,
    /// Training and an agreement.
    Credentialed,
    /// A form or a letter to its owners.
    Form,
}

/// Licence and access of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Dataset id of the records.
    pub dataset: String,
    /// Licence, where it is known.
    pub licence: Option<String>,
    /// How it is had.
    pub access: Access,
    /// Where it is had: an address or a sentence.
    pub route: String,
}

/// What is audited.
#[derive(Debug, Clone, Copy)]
pub struct AuditInput<'a> {
    /// Records, of one or several datasets, with the splits that will be used.
    pub records: &'a Records,
    /// The file of each record, in their order.
    pub files: &'a [PathBuf],
    /// Accounts of the split plans, whose defects become findings.
    pub accounts: &'a [SplitAccount],
    /// Sizes that the chosen models take.
    pub wanted: &'a [Wanted],
    /// Licence and access of the datasets.
    pub terms: &'a [Terms],
}

/// Thresholds and bounds. The defaults are those of `docs/curation.md`.
#[derive(Debug, Clone, Copy)]
pub struct AuditOptions {
    /// Threads, 0 for one a core.
    pub threads: usize,
    /// Caps on files and pictures.
    pub limits: Limits,
    /// Photographs of a class in a split under which there is a warning.
    pub floor: u64,
    /// Bits of the perceptual hash that may differ between near-duplicates, at most 31.
    pub max_distance: u32,
    /// Least similarity of the shapes of near-duplicates, up to 1.
    pub min_similarity: f64,
    /// Comparisons that the search for near-duplicates may cost.
    pub max_comparisons: u64,
    /// Pairs of near-duplicates that are kept.
    pub max_pairs: u64,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            threads: 0,
            limits: Limits::default(),
            floor: 10,
            max_distance: 6,
            min_similarity: 0.995,
            max_comparisons: 20_000_000_000,
            max_pairs: 1_000_000,
        }
    }
}

/// A pool of so many threads, 0 for one a core.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    built.map_err(|error| CurationError::Threads {
        threads,
        reason: error.to_string(),
    })
}

/// Audits records and their files. `progress` is called from any thread after each file.
pub fn audit(
    input: &AuditInput<'_>,
    options: &AuditOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<AuditReport> {
    let records = input.records;
    if input.files.len() != records.rows.len() {
        return Err(CurationError::Lengths {
            what: "file",
            expected: records.rows.len(),
            found: input.files.len(),
        });
    }
    let pool = pool(options.threads)?;
    let seen = pool.install(|| scan::scan(input.files, &options.limits, progress));
    let sizes: Vec<Option<(u32, u32)>> = seen
        .iter()
        .map(|s| s.as_ref().ok().map(|s| s.size))
        .collect();
    let mut out = Findings::default();
    let images_failed = files::failures(records, &seen, &mut out);
    pool.install(|| files::duplicates(records, &seen, options, &mut out));
    facts::paths(records, &mut out);
    let patients = facts::patients(records, &mut out);
    facts::conflicts(records, &mut out);
    let labels = facts::labels(records);
    facts::classes(&labels, options.floor, &mut out);
    facts::resolution(records, &sizes, input.wanted, &mut out);
    facts::terms(records, input.terms, &mut out);
    leak::leaks(records, &sizes, &mut out);
    for account in input.accounts {
        facts::account(account, &mut out);
    }
    let datasets: BTreeSet<&str> = records.rows.iter().map(|r| r.dataset.as_str()).collect();
    Ok(AuditReport {
        version: AUDIT_VERSION,
        datasets: datasets.into_iter().map(str::to_owned).collect(),
        records: records.rows.len() as u64,
        images_read: seen.iter().filter(|s| s.is_ok()).count() as u64,
        images_failed,
        patients,
        labels,
        thresholds: [
            ("class_floor", options.floor as f64),
            ("hash_bits_that_may_differ", f64::from(options.max_distance)),
            ("least_shape_similarity", options.min_similarity),
            ("least_name_correlation", leak::MIN_PHI),
            ("least_name_chi_square", leak::MIN_CHI_SQUARE),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
        findings: out.sorted(),
        exit_policy: EXIT_POLICY.into(),
    })
}
