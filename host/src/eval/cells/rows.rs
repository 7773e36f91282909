//! Which rows a cell is fitted and scored on: one for each labelled image of the split, or, as published with a published split
//! file, one for each row that the published code's merges leave. Knows no embedding.

use super::CellInputs;
use crate::task::Track;
use focus_curation::splits::{Split, Use};
use focus_store::Fold;
use std::collections::BTreeMap;

/// A row of a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    /// Index in the records.
    pub sample: u32,
    /// Which of the image's rows in this fold, from 0.
    pub copy: u32,
    /// Its label in the track.
    pub label: bool,
}

/// One row for each image of the split with a label in the track.
pub(super) fn plain(inputs: &CellInputs<'_>, task: &str, track: Track, fold: Fold) -> Vec<Listed> {
    let row = |sample: &u32| {
        let record = &inputs.records.rows[*sample as usize];
        let labels = match track {
            Track::Corrected => &record.labels,
            Track::AsPublished => &record.published_labels,
        };
        let label = *labels.get(task)?;
        (record.split.as_deref() == Some(fold.as_str())).then_some(Listed {
            sample: *sample,
            copy: 0,
            label,
        })
    };
    inputs.asked.iter().filter_map(row).collect()
}

/// As many rows for each image as the published code works on, with the labels that its merges give them.
pub(super) fn published(
    inputs: &CellInputs<'_>,
    uses: &[Use],
    task: &str,
    fold: Fold,
) -> Vec<Listed> {
    let mut copies: BTreeMap<u32, u32> = BTreeMap::new();
    let mut rows = Vec::new();
    for used in uses {
        let (split, times) = match fold {
            Fold::Train => (Split::Train, used.rows),
            Fold::Test => (Split::Test, used.analysed),
        };
        let record = &inputs.records.rows[used.sample as usize];
        let labels = used.labels.as_ref().unwrap_or(&record.published_labels);
        let (true, true, Some(label)) = (
            used.split == split,
            inputs.asked.contains(&used.sample),
            labels.get(task),
        ) else {
            continue;
        };
        for _ in 0..times {
            let copy = copies.entry(used.sample).or_default();
            rows.push(Listed {
                sample: used.sample,
                copy: *copy,
                label: *label,
            });
            *copy += 1;
        }
    }
    rows
}
