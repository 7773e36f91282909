//! The rows of one arm that one tally counts, ready to be weighted by how often their units were drawn. It must not know
//! random numbers or metrics.

use crate::scored::Scored;
use crate::tally::{Confusion, Tally, key};

/// Some rows of one arm.
pub(crate) struct View {
    /// Unit of each row.
    unit: Vec<u32>,
    /// Index of each row's confusion cell: 2 label + decision.
    cell: Vec<u8>,
    /// Index of each row's score group; empty where scores are absent or not asked for.
    group: Vec<u32>,
    /// The rows' tally, whose group scores a resample's tally shares.
    pub(crate) tally: Tally,
}

impl View {
    /// The rows of `arm` that `keep` keeps.
    pub(crate) fn new(
        arm: &Scored<'_>,
        unit: &[u32],
        keep: impl Fn(usize) -> bool,
        scores: bool,
    ) -> Self {
        let rows: Vec<usize> = (0..arm.len()).filter(|&row| keep(row)).collect();
        let pick = |column: &[bool]| rows.iter().map(|&row| column[row]).collect::<Vec<bool>>();
        let (labels, predicted) = (pick(arm.labels()), pick(arm.predicted()));
        let kept: Option<Vec<f64>> = arm
            .scores()
            .filter(|_| scores)
            .map(|scores| rows.iter().map(|&row| scores[row]).collect());
        let tally = Tally::of_rows(&labels, &predicted, kept.as_deref());
        let keys: Vec<u64> = tally
            .groups
            .iter()
            .flatten()
            .map(|group| key(group.score))
            .collect();
        let find = |score: &f64| {
            let found = keys.binary_search(&key(*score));
            found.expect("every score has a group in its own tally") as u32
        };
        Self {
            unit: rows.iter().map(|&row| unit[row]).collect(),
            cell: labels
                .iter()
                .zip(&predicted)
                .map(|(&label, &decision)| u8::from(label) * 2 + u8::from(decision))
                .collect(),
            group: kept.iter().flatten().map(find).collect(),
            tally,
        }
    }

    /// Fills `tally`, which began as a copy of this view's, with the rows, each counted as often as its unit was drawn.
    pub(crate) fn weigh(&self, weights: &[u32], tally: &mut Tally) {
        let mut cells = [0_u64; 4];
        for (&unit, &cell) in self.unit.iter().zip(&self.cell) {
            cells[usize::from(cell & 3)] += u64::from(weights[unit as usize]);
        }
        let [true_negative, false_positive, false_negative, true_positive] = cells;
        tally.confusion = Confusion {
            true_positive,
            false_positive,
            false_negative,
            true_negative,
        };
        let Some(groups) = &mut tally.groups else {
            return;
        };
        for group in groups.iter_mut() {
            (group.positives, group.negatives) = (0, 0);
        }
        for ((&unit, &cell), &group) in self.unit.iter().zip(&self.cell).zip(&self.group) {
            let (weight, group) = (
                u64::from(weights[unit as usize]),
                &mut groups[group as usize],
            );
            *(if cell >= 2 {
                &mut group.positives
            } else {
                &mut group.negatives
            }) += weight;
        }
    }
}
