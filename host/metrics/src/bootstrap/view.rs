//! The rows of one arm that one tally counts, ready to be weighted by how often their units were drawn. It must not know
//! random numbers or metrics.

use crate::scored::Scored;
use crate::tally::{Confusion, Shared, Tally, key};

/// Some rows of one arm.
pub(crate) struct View {
    /// Units of the rows, ordered by confusion cell: 2 label + decision.
    by_cell: Vec<u32>,
    /// Where each confusion cell's units end in `by_cell`.
    ends: [usize; 4],
    /// Units of the rows, ordered by place; empty where scores are absent or not asked for.
    by_place: Vec<u32>,
    /// The rows' places among the counts, ascending: 2 (index of score) + label. Written in order, so that memory streams.
    place: Vec<u32>,
    /// The rows' tally, whose scale a resample's tally shares.
    pub(crate) tally: Tally,
}

impl View {
    /// The rows of `arm` that `keep` keeps; `unit` holds each row's unit.
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
        let distinct = tally.scale.as_ref().map_or(&[][..], |scale| &scale.scores);
        let keys: Vec<u64> = distinct.iter().map(|&score| key(score)).collect();
        let place = |(score, &label): (&f64, &bool)| {
            let found = keys.binary_search(&key(*score));
            let found = found.expect("every score has a group in its own tally") as u32;
            2 * found + u32::from(label)
        };
        let units = || rows.iter().map(|&row| unit[row]);
        let mut places: Vec<(u32, u32)> = kept
            .iter()
            .flatten()
            .zip(&labels)
            .map(place)
            .zip(units())
            .collect();
        places.sort_unstable();
        let cells = labels
            .iter()
            .zip(&predicted)
            .map(|(&label, &decision)| u8::from(label) * 2 + u8::from(decision));
        let mut cells: Vec<(u8, u32)> = cells.zip(units()).collect();
        cells.sort_unstable();
        Self {
            by_cell: cells.iter().map(|&(_, unit)| unit).collect(),
            ends: [0, 1, 2, 3].map(|cell| cells.partition_point(|&(other, _)| other <= cell)),
            by_place: places.iter().map(|&(_, unit)| unit).collect(),
            place: places.iter().map(|&(place, _)| place).collect(),
            tally,
        }
    }

    /// Fills `tally`, which began as a copy of this view's, with the rows, each counted as often as its unit was drawn.
    pub(crate) fn weigh(&self, weights: &[u32], tally: &mut Tally) {
        let drawn = |from: usize, to: usize| {
            let units = self.by_cell[from..to].iter();
            units
                .map(|&unit| u64::from(weights[unit as usize]))
                .sum::<u64>()
        };
        let [negative, false_positive, false_negative, positive] = self.ends;
        tally.confusion = Confusion {
            true_negative: drawn(0, negative),
            false_positive: drawn(negative, false_positive),
            false_negative: drawn(false_positive, false_negative),
            true_positive: drawn(false_negative, positive),
        };
        tally.shared = Shared::default();
        let counts = tally.counts.as_flattened_mut();
        counts.fill(0);
        for (&unit, &place) in self.by_place.iter().zip(&self.place) {
            counts[place as usize] += weights[unit as usize];
        }
    }
}
