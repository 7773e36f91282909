//! The counts of an account that any plan has: photographs, patients, labels. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use focus_store::{Record, Records};

use super::account::{LabelCounts, SPLIT_VERSION, SplitAccount, SplitCounts, SplitKind};
use super::{Split, dataset_of};
use crate::Result;

/// Patients with photographs in more than one split, sorted.
pub(super) fn straddling(records: &Records, splits: &[Option<Split>]) -> Vec<String> {
    let mut seen: BTreeMap<&str, BTreeSet<Split>> = BTreeMap::new();
    for (record, split) in records.rows.iter().zip(splits) {
        if let (Some(patient), Some(split)) = (&record.patient, split) {
            seen.entry(patient).or_default().insert(*split);
        }
    }
    let found = seen.into_iter().filter(|(_, splits)| splits.len() > 1);
    found.map(|(patient, _)| patient.to_owned()).collect()
}

fn labels_by_task(
    records: &Records,
    splits: &[Option<Split>],
    labels: fn(&Record) -> &BTreeMap<String, bool>,
) -> BTreeMap<String, BTreeMap<Split, LabelCounts>> {
    let mut tasks: BTreeMap<String, BTreeMap<Split, LabelCounts>> = BTreeMap::new();
    for task in &records.tasks {
        let counts = tasks.entry(task.clone()).or_default();
        for (record, split) in records.rows.iter().zip(splits) {
            let Some(split) = split else { continue };
            let count = counts.entry(*split).or_default();
            *match labels(record).get(task) {
                Some(true) => &mut count.positive,
                Some(false) => &mut count.negative,
                None => &mut count.unknown,
            } += 1;
        }
    }
    tasks
}

/// An account with its counts, no notes.
pub(super) fn account(
    records: &Records,
    splits: &[Option<Split>],
    kind: SplitKind,
    rule: String,
) -> Result<SplitAccount> {
    let mut counts = SplitCounts::default();
    for split in splits.iter().flatten() {
        counts.add(*split, 1);
    }
    let used = || {
        let rows = records.rows.iter().zip(splits);
        rows.filter(|(_, split)| split.is_some())
    };
    let patients: BTreeSet<&str> = used().filter_map(|(r, _)| r.patient.as_deref()).collect();
    Ok(SplitAccount {
        version: SPLIT_VERSION,
        dataset: dataset_of(records)?,
        kind,
        track: None,
        rule,
        file: None,
        file_counts: None,
        effective_counts: None,
        analysed_rows: None,
        counts,
        without_split: splits.iter().filter(|split| split.is_none()).count() as u64,
        patients: patients.len() as u64,
        straddling_patients: straddling(records, splits).len() as u64,
        without_patient: used().filter(|(r, _)| r.patient.is_none()).count() as u64,
        seed: None,
        shares: None,
        labels: labels_by_task(records, splits, |r| &r.labels),
        published_labels: labels_by_task(records, splits, |r| &r.published_labels),
        notes: Vec::new(),
    })
}
