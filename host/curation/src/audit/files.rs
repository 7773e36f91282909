//! Findings from one look at each file: failures and duplicates. Reads no files itself.

use std::collections::BTreeMap;

use focus_images::ContentHash;
use focus_store::{Record, Records};

use super::finding::{FindingKind as K, Findings, Severity as S};
use super::fingerprint::Fingerprint;
use super::scan::{Failed, Seen};
use super::{AuditOptions, facts, near};

/// Files that are no usable photographs, by kind.
pub(super) fn failures(
    records: &Records,
    seen: &[Result<Seen, Failed>],
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

/// The same photograph more than once.
pub(super) fn duplicates(
    records: &Records,
    seen: &[Result<Seen, Failed>],
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
