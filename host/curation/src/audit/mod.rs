//! What is wrong with a dataset before a model sees it. One pass over the files, then questions to records and fingerprints.
//!
//! Every finding has a rule in `docs/curation.md`. Must not know mappers, models' code or how output is printed.

mod facts;
mod finding;
mod fingerprint;
mod leak;
mod near;
mod prompt;
mod render;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use focus_images::{ContentHash, Limits};
use focus_store::{Record, Records};
use serde::{Deserialize, Serialize};

pub use finding::{AUDIT_VERSION, AuditReport, EXIT_POLICY, Finding, FindingKind, Severity};
pub use prompt::{Prompt, prompt_findings};
pub use render::{markdown, text};
pub use scan::Progress;

use crate::splits::SplitAccount;
use crate::{CurationError, Result};
use finding::{FindingKind as K, Findings, Severity as S};
use fingerprint::Fingerprint;
use scan::{Failed, Seen};

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
    let images_failed = failures(records, &seen, &mut out);
    pool.install(|| duplicates(records, &seen, options, &mut out));
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

fn failures(
    records: &Records,
    seen: &[std::result::Result<Seen, Failed>],
    out: &mut Findings,
) -> BTreeMap<String, u64> {
    let mut by_kind: BTreeMap<&str, Vec<(usize, &Failed)>> = BTreeMap::new();
    for (i, seen) in seen.iter().enumerate() {
        if let Err(failed) = seen {
            by_kind.entry(failed.kind).or_default().push((i, failed));
        }
    }
    for (kind, failed) in &by_kind {
        // The message of a missing file is its path, which the record's name says without the machine's folders.
        let examples = failed.iter().map(|(i, f)| {
            let name = facts::name(&records.rows[*i]);
            if *kind == "missing" {
                name
            } else {
                format!("{name}: {}", f.message)
            }
        });
        if *kind == "missing" {
            out.add(
                K::ImageMissing,
                S::Error,
                failed.len(),
                "photographs that are not there",
                examples,
                "check the data folder; where the source lacks them too, leave the rows out",
            );
        } else {
            out.add(
                K::ImageUnreadable,
                S::Error,
                failed.len(),
                format!("photographs that cannot be used: {kind}"),
                examples,
                "fetch them again; where the source is damaged too, leave the rows out",
            );
        }
    }
    by_kind
        .into_iter()
        .map(|(kind, failed)| (kind.to_owned(), failed.len() as u64))
        .collect()
}

fn duplicates(
    records: &Records,
    seen: &[std::result::Result<Seen, Failed>],
    options: &AuditOptions,
    out: &mut Findings,
) {
    let rows = &records.rows;
    let mut by_content: BTreeMap<ContentHash, (Vec<usize>, &Fingerprint)> = BTreeMap::new();
    for (i, seen) in seen.iter().enumerate() {
        if let Ok(seen) = seen {
            let group = by_content.entry(seen.content);
            group.or_insert_with(|| (Vec::new(), &seen.print)).0.push(i);
        }
    }
    // In record order, whatever the hashes are.
    let mut by_content: Vec<(Vec<usize>, &Fingerprint)> = by_content.into_values().collect();
    by_content.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let (groups, prints): (Vec<Vec<usize>>, Vec<&Fingerprint>) = by_content.into_iter().unzip();
    let of = |members: &[usize]| -> Vec<&Record> { members.iter().map(|&i| &rows[i]).collect() };
    let names = |members: &[&Record]| -> String {
        members
            .iter()
            .take(4)
            .map(|r| facts::name(r))
            .collect::<Vec<_>>()
            .join(" = ")
    };
    let (mut across, mut within, mut two_labels) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups.iter().filter(|group| group.len() > 1) {
        let members = of(group);
        let list = if facts::in_two_splits(members.iter().copied()) {
            &mut across
        } else {
            &mut within
        };
        list.push(names(&members));
        let tasks = facts::two_labels(members.iter().copied());
        if !tasks.is_empty() {
            two_labels.push(format!("{}: `{}`", names(&members), tasks.join("`, `")));
        }
    }
    out.add(
        K::SameFileAcrossSplits,
        S::Error,
        across.len(),
        "files that stand in more than one split",
        across,
        "keep each photograph in one split",
    );
    out.add(
        K::SameFile,
        S::Warning,
        within.len(),
        "files that several records share, within a split or outside all",
        within,
        "count each photograph once",
    );

    let featureless: Vec<String> = groups
        .iter()
        .zip(&prints)
        .filter(|(_, print)| print.shape.is_none())
        .map(|(group, _)| facts::name(&rows[group[0]]))
        .collect();
    out.add(
        K::Featureless,
        S::Warning,
        featureless.len(),
        "pictures without structure, which the search for near-duplicates leaves out",
        featureless,
        "look at them: black or blank pictures are failed exports",
    );

    let search = near::Search {
        max_distance: options.max_distance,
        min_similarity: options.min_similarity as f32,
        max_comparisons: options.max_comparisons,
        max_pairs: options.max_pairs,
    };
    let (pairs, complete) = near::search(&prints, &search);
    let (mut across, mut within) = (Vec::new(), Vec::new());
    for pair in &pairs {
        let (a, b) = (of(&groups[pair.a]), of(&groups[pair.b]));
        let both = || a.iter().chain(&b).copied();
        let shown = format!(
            "{} ~ {} ({} bits, similarity {:.4})",
            facts::name(a[0]),
            facts::name(b[0]),
            pair.distance,
            pair.similarity
        );
        let tasks = facts::two_labels(both());
        if !tasks.is_empty() {
            two_labels.push(format!("{shown}: `{}`", tasks.join("`, `")));
        }
        if facts::in_two_splits(both()) {
            across.push(shown);
        } else {
            within.push(shown);
        }
    }
    out.add(
        K::NearDuplicateAcrossSplits,
        S::Error,
        across.len(),
        "pairs of pictures that look the same, in two splits",
        across,
        "look at the pairs; keep each photograph in one split",
    );
    out.add(
        K::NearDuplicate,
        S::Warning,
        within.len(),
        "pairs of pictures that look the same, within a split or outside all",
        within,
        "look at the pairs; count each photograph once",
    );
    out.add(
        K::DuplicateWithTwoLabels,
        S::Error,
        two_labels.len(),
        "the same photograph with both labels of a task",
        two_labels,
        "find out which label is right, or leave both out",
    );
    out.add(
        K::NearSearchIncomplete,
        S::Warning,
        usize::from(!complete),
        "the search for near-duplicates stopped at its limit",
        [],
        "raise the limit, or lower the number of bits that may differ",
    );
}
