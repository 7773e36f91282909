//! Rows of one or several arms in an order that follows from their content, ready to be weighted. Owns the canonical
//! order. It must not know random numbers or metrics.

use crate::bootstrap::Units;
use crate::error::MetricError;
use crate::scored::Scored;
use crate::tally::{Tally, key};

/// One arm's rows in canonical order.
pub(crate) struct Arm {
    /// Index of the confusion cell: 2 label + decision.
    pub(crate) cell: Vec<u8>,
    /// Index of the row's score group; empty without scores.
    pub(crate) group: Vec<u32>,
    /// The arm's tally, whose group scores a resample's tally shares.
    pub(crate) tally: Tally,
}

/// All arms, and where each unit's rows lie.
pub(crate) struct Layout {
    /// Unit u owns rows `offsets[u]..offsets[u + 1]`; none when every row is its own unit.
    pub(crate) offsets: Option<Vec<u32>>,
    /// Number of units, at least 1.
    pub(crate) units: usize,
    pub(crate) arms: Vec<Arm>,
}

impl Layout {
    pub(crate) fn new(arms: &[&Scored<'_>], units: Units<'_>) -> Result<Self, MetricError> {
        let labels = arms.first().map_or(&[][..], |arm| arm.labels());
        if labels.is_empty() {
            return Err(MetricError::NoRows);
        }
        for arm in arms {
            same_labels(labels, arm.labels())?;
        }
        let (order, offsets) = match units {
            Units::Images => (rows_by_content(arms), None),
            Units::Patients(patients) => {
                if patients.len() != labels.len() {
                    let (expected, found) = (labels.len(), patients.len());
                    return Err(MetricError::Length {
                        column: "patients",
                        expected,
                        found,
                    });
                }
                let (order, offsets) = patients_by_content(arms, patients);
                (order, Some(offsets))
            }
        };
        let units = offsets
            .as_ref()
            .map_or(order.len(), |offsets| offsets.len() - 1);
        let arms = arms.iter().map(|arm| arrange(arm, &order)).collect();
        Ok(Self {
            offsets,
            units,
            arms,
        })
    }
}

fn same_labels(expected: &[bool], found: &[bool]) -> Result<(), MetricError> {
    if expected.len() != found.len() {
        let (expected, found) = (expected.len(), found.len());
        return Err(MetricError::Length {
            column: "arm",
            expected,
            found,
        });
    }
    match expected.iter().zip(found).position(|(a, b)| a != b) {
        Some(row) => Err(MetricError::LabelMismatch {
            row,
            expected: expected[row],
            found: found[row],
        }),
        None => Ok(()),
    }
}

/// What a row holds, as integers that compare the same everywhere: label, then decision and score of each arm.
fn contents(arms: &[&Scored<'_>]) -> (Vec<u64>, usize) {
    let rows = arms[0].len();
    let width = 1 + 2 * arms.len();
    let mut contents = Vec::with_capacity(rows * width);
    for row in 0..rows {
        contents.push(u64::from(arms[0].labels()[row]));
        for arm in arms {
            contents.push(arm.scores().map_or(0, |scores| key(scores[row])));
            contents.push(u64::from(arm.predicted()[row]));
        }
    }
    (contents, width)
}

fn rows_by_content(arms: &[&Scored<'_>]) -> Vec<u32> {
    let (contents, width) = contents(arms);
    let mut order: Vec<u32> = (0..arms[0].len() as u32).collect();
    order.sort_unstable_by_key(|&row| &contents[row as usize * width..][..width]);
    order
}

/// Row order and offsets: rows sorted within each patient, patients sorted by their rows. Two patients that compare
/// equal hold the same rows, so it does not matter which of them is drawn; their numbers play no part.
fn patients_by_content(arms: &[&Scored<'_>], patients: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (contents, width) = contents(arms);
    let content = |&row: &u32| &contents[row as usize * width..][..width];
    let mut order: Vec<u32> = (0..patients.len() as u32).collect();
    order.sort_unstable_by_key(|row| (patients[*row as usize], content(row)));
    let mut blocks: Vec<&[u32]> = order
        .chunk_by(|&a, &b| patients[a as usize] == patients[b as usize])
        .collect();
    blocks.sort_unstable_by(|a, b| a.iter().map(content).cmp(b.iter().map(content)));
    let mut offsets = Vec::with_capacity(blocks.len() + 1);
    offsets.push(0);
    let mut end = 0;
    for block in &blocks {
        end += block.len() as u32;
        offsets.push(end);
    }
    (blocks.concat(), offsets)
}

fn arrange(arm: &Scored<'_>, order: &[u32]) -> Arm {
    let (labels, predicted, tally) = (arm.labels(), arm.predicted(), arm.tally().clone());
    let cell = order
        .iter()
        .map(|&row| u8::from(labels[row as usize]) * 2 + u8::from(predicted[row as usize]));
    let keys: Vec<u64> = tally
        .groups
        .iter()
        .flatten()
        .map(|group| key(group.score))
        .collect();
    let group = arm.scores().map_or_else(Vec::new, |scores| {
        let find = |&row: &u32| {
            let found = keys.binary_search(&key(scores[row as usize]));
            found.expect("every score has a group in its own tally") as u32
        };
        order.iter().map(find).collect()
    });
    Arm {
        cell: cell.collect(),
        group,
        tally,
    }
}
