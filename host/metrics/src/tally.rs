//! Rows reduced to integer counts: the confusion counts, and for each distinct score the positives and negatives that
//! have it, in ascending order of score. Every metric is a function of a tally, which makes independence of row order
//! a property of the type: after this reduction the order is gone. The bootstrap builds tallies of resamples with
//! integer weights. It must not know any metric; it only keeps
//! what two of them share.

use std::sync::{Arc, OnceLock};

use crate::metric::ece::BINS;
use crate::recalibration::Recalibration;
use crate::value::Missing;

/// Counts of decisions against truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Confusion {
    /// Positive, decided positive.
    pub true_positive: u64,
    /// Negative, decided positive.
    pub false_positive: u64,
    /// Positive, decided negative.
    pub false_negative: u64,
    /// Negative, decided negative.
    pub true_negative: u64,
}

impl Confusion {
    /// Counts `times` rows with this label and this decision.
    pub(crate) fn add(&mut self, label: bool, predicted: bool, times: u64) {
        match (label, predicted) {
            (true, true) => self.true_positive += times,
            (false, true) => self.false_positive += times,
            (true, false) => self.false_negative += times,
            (false, false) => self.true_negative += times,
        }
    }

    /// n+.
    pub fn positives(&self) -> u64 {
        self.true_positive + self.false_negative
    }

    /// n-.
    pub fn negatives(&self) -> u64 {
        self.false_positive + self.true_negative
    }

    /// n.
    pub fn rows(&self) -> u64 {
        self.positives() + self.negatives()
    }
}

/// The rows that share one score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// The score, finite; zero is always `+0.0`.
    pub score: f64,
    /// Positive rows with this score.
    pub positives: u64,
    /// Negative rows with this score.
    pub negatives: u64,
}

impl Group {
    /// Rows with this score.
    pub fn rows(&self) -> u64 {
        self.positives + self.negatives
    }
}

/// The distinct scores of some rows, and what follows from them alone, so that resamples of the rows share it.
#[derive(Debug, Default)]
pub(crate) struct Scale {
    /// Strictly ascending.
    pub(crate) scores: Vec<f64>,
    /// Whether all of them are probabilities.
    pub(crate) probabilities: bool,
    logits: OnceLock<Vec<f64>>,
    starts: OnceLock<[usize; BINS + 1]>,
}

impl Scale {
    fn new(scores: Vec<f64>) -> Self {
        let within = |score: Option<&f64>| score.is_none_or(|score| (0.0..=1.0).contains(score));
        Self {
            probabilities: within(scores.first()) && within(scores.last()),
            scores,
            logits: OnceLock::new(),
            starts: OnceLock::new(),
        }
    }

    /// Where the scores of each bin start, and the end. `bin_of` never falls, and must always be the same function.
    pub(crate) fn starts(&self, bin_of: fn(f64) -> usize) -> &[usize; BINS + 1] {
        self.starts.get_or_init(|| {
            std::array::from_fn(|bin| self.scores.partition_point(|&score| bin_of(score) < bin))
        })
    }

    /// `logit` of each score, which must always be the same function.
    pub(crate) fn logits(&self, logit: fn(f64) -> f64) -> &[f64] {
        self.logits
            .get_or_init(|| self.scores.iter().map(|&score| logit(score)).collect())
    }
}

/// Integer counts of one cell's rows.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub(crate) confusion: Confusion,
    pub(crate) scale: Option<Arc<Scale>>,
    /// Negatives and positives that have each score of the scale. Both may be 0 in a resample.
    pub(crate) counts: Vec<[u32; 2]>,
    pub(crate) shared: Shared,
}

/// What several metrics are read from, found once and forgotten when the counts change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    pub(crate) recalibration: OnceLock<Result<Recalibration, Missing>>,
    pub(crate) squared_error: OnceLock<Result<f64, Missing>>,
}

impl PartialEq for Tally {
    fn eq(&self, other: &Self) -> bool {
        let scores = |it: &Self| it.scale.as_ref().map(|scale| scale.scores.clone());
        self.confusion == other.confusion
            && self.counts == other.counts
            && scores(self) == scores(other)
    }
}

impl Tally {
    /// Counts rows; lengths are equal and scores finite, as [`crate::Scored`] checks.
    pub(crate) fn of_rows(labels: &[bool], predicted: &[bool], scores: Option<&[f64]>) -> Self {
        let mut confusion = Confusion::default();
        for (&label, &decision) in labels.iter().zip(predicted) {
            confusion.add(label, decision, 1);
        }
        let groups = scores.map(|scores| groups(labels, scores));
        let (scores, counts) = groups.unzip();
        Self::new(confusion, scores, counts.unwrap_or_default())
    }

    fn new(confusion: Confusion, scores: Option<Vec<f64>>, counts: Vec<[u32; 2]>) -> Self {
        Self {
            confusion,
            scale: scores.map(|scores| Arc::new(Scale::new(scores))),
            counts,
            shared: Shared::default(),
        }
    }

    /// Makes this the rows of `whole` that are not in `part`; all three share their scale.
    pub(crate) fn fill_rest(&mut self, whole: &Self, part: &Self) {
        let (whole_counts, part_counts) = (&whole.confusion, &part.confusion);
        self.confusion = Confusion {
            true_positive: whole_counts.true_positive - part_counts.true_positive,
            false_positive: whole_counts.false_positive - part_counts.false_positive,
            false_negative: whole_counts.false_negative - part_counts.false_negative,
            true_negative: whole_counts.true_negative - part_counts.true_negative,
        };
        self.shared = Shared::default();
        for ((own, whole), part) in self.counts.iter_mut().zip(&whole.counts).zip(&part.counts) {
            *own = [whole[0] - part[0], whole[1] - part[1]];
        }
    }

    /// Decisions against truth.
    pub fn confusion(&self) -> &Confusion {
        &self.confusion
    }

    /// These rows with their scores moved to the prior of a training split, as [`crate::prior_shifted`] does it; every
    /// metric of the result is prior-corrected, `ece` and `brier` above all. To resample it, make the shifted scores an
    /// arm of their own ([`crate::prior_shifted`], then [`crate::Scored::new`]) beside the unshifted one.
    ///
    /// # Errors
    /// [`Missing::Empty`], [`Missing::NoScores`], [`Missing::ScoreOutOfRange`], and [`Missing::TrainingOneClass`] when
    /// `positives` or `negatives` of the training split is 0.
    pub fn prior_shifted(&self, positives: u64, negatives: u64) -> Result<Self, Missing> {
        let groups = self.scored_groups()?.probabilities()?;
        let shifted = crate::score::prior_shifted(groups.scores(), positives, negatives)
            .map_err(|_| Missing::TrainingOneClass)?;
        let (mut scores, mut counts): (Vec<f64>, Vec<[u32; 2]>) = (Vec::new(), Vec::new());
        for (score, count) in shifted.into_iter().zip(groups.counts) {
            match (scores.last(), counts.last_mut()) {
                // The shift never swaps two scores, but rounding can make neighbours equal.
                (Some(last), Some(merged)) if *last == score => {
                    *merged = [merged[0] + count[0], merged[1] + count[1]];
                }
                _ => {
                    scores.push(score);
                    counts.push(*count);
                }
            }
        }
        Ok(Self::new(self.confusion, Some(scores), counts))
    }

    /// The score groups in ascending order, for metrics that need no second class.
    ///
    /// # Errors
    /// [`Missing::Empty`] without rows, [`Missing::NoScores`] without scores.
    pub fn scored_groups(&self) -> Result<Groups<'_>, Missing> {
        if self.confusion.rows() == 0 {
            return Err(Missing::Empty);
        }
        let scale = self.scale.as_deref().ok_or(Missing::NoScores)?;
        Ok(Groups {
            scale,
            counts: &self.counts,
        })
    }

    /// The score groups in ascending order, for metrics that compare the classes.
    ///
    /// # Errors
    /// As [`Tally::scored_groups`], and [`Missing::OneClass`].
    pub fn two_class_groups(&self) -> Result<Groups<'_>, Missing> {
        let groups = self.scored_groups()?;
        if self.confusion.positives() == 0 || self.confusion.negatives() == 0 {
            return Err(Missing::OneClass);
        }
        Ok(groups)
    }
}

/// The score groups of a tally, in ascending order of score.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    pub(crate) scale: &'a Scale,
    /// Negatives and positives of each score.
    pub(crate) counts: &'a [[u32; 2]],
}

impl<'a> Groups<'a> {
    /// The groups, those without rows included.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Group> + ExactSizeIterator + use<'a> {
        let pairs = self.scale.scores.iter().zip(self.counts);
        pairs.map(|(&score, &[negatives, positives])| Group {
            score,
            positives: u64::from(positives),
            negatives: u64::from(negatives),
        })
    }

    pub(crate) fn scores(&self) -> &'a [f64] {
        &self.scale.scores
    }

    /// These groups, if all scores that occur are probabilities.
    ///
    /// # Errors
    /// [`Missing::ScoreOutOfRange`] otherwise.
    pub fn probabilities(self) -> Result<Self, Missing> {
        let outside = |group: &Group| group.rows() > 0 && !(0.0..=1.0).contains(&group.score);
        if self.scale.probabilities || !self.iter().any(|group| outside(&group)) {
            Ok(self)
        } else {
            Err(Missing::ScoreOutOfRange)
        }
    }
}

/// Order-preserving integer key of a finite score. `-0.0` and `+0.0` tie.
pub(crate) fn key(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// Inverse of [`key`].
pub(crate) fn score_of(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 {
        key & !(1 << 63)
    } else {
        !key
    })
}

/// The distinct scores in ascending order, and the negatives and positives that have each.
fn groups(labels: &[bool], scores: &[f64]) -> (Vec<f64>, Vec<[u32; 2]>) {
    // Each class sorted on its own as integers, then merged: half the work of sorting (score, label) pairs.
    let sorted = |class: bool| {
        let of_class = labels
            .iter()
            .zip(scores)
            .filter(|&(&label, _)| label == class);
        let mut keys: Vec<u64> = of_class.map(|(_, &score)| key(score)).collect();
        keys.sort_unstable();
        keys
    };
    let (positives, negatives) = (sorted(true), sorted(false));
    let (mut p, mut n) = (0, 0);
    let (mut distinct, mut counts) = (Vec::new(), Vec::new());
    while p < positives.len() || n < negatives.len() {
        let next = match (positives.get(p), negatives.get(n)) {
            (Some(&a), Some(&b)) => a.min(b),
            (Some(&a), None) => a,
            (None, Some(&b)) => b,
            (None, None) => break,
        };
        let (p0, n0) = (p, n);
        while positives.get(p) == Some(&next) {
            p += 1;
        }
        while negatives.get(n) == Some(&next) {
            n += 1;
        }
        distinct.push(score_of(next));
        counts.push([(n - n0) as u32, (p - p0) as u32]);
    }
    (distinct, counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_order_and_come_back() {
        let ascending = [
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            0.1,
            f64::MAX,
        ];
        for pair in ascending.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
        }
        for score in ascending {
            assert_eq!(score_of(key(score)).to_bits(), score.to_bits());
        }
        assert_eq!(key(-0.0), key(0.0));
    }

    #[test]
    fn equal_scores_are_one_group_and_signed_zeros_tie() {
        let tally = Tally::of_rows(&[true, false, true], &[true; 3], Some(&[0.0, -0.0, -1.0]));
        let groups = tally.two_class_groups().unwrap();
        let groups: Vec<Group> = groups.iter().collect();
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[1].positives, groups[1].negatives), (1, 1));
        assert_eq!(tally.confusion().false_positive, 1);
    }

    #[test]
    fn shifting_groups_is_shifting_rows() {
        let (labels, scores) = (
            [true, false, true, false],
            [0.5, 0.1, 1.0, 0.1 + f64::EPSILON / 16.0],
        );
        let tally = Tally::of_rows(&labels, &labels, Some(&scores));
        let rows = crate::score::prior_shifted(&scores, 3, 9).unwrap();
        assert_eq!(
            tally.prior_shifted(3, 9),
            Ok(Tally::of_rows(&labels, &labels, Some(&rows)))
        );
        assert_eq!(tally.prior_shifted(0, 9), Err(Missing::TrainingOneClass));
        let outside = Tally::of_rows(&[true], &[true], Some(&[1.5]));
        assert_eq!(outside.prior_shifted(3, 9), Err(Missing::ScoreOutOfRange));
    }

    #[test]
    fn reasons_come_in_a_fixed_order() {
        assert_eq!(
            Tally::of_rows(&[], &[], None).two_class_groups().err(),
            Some(Missing::Empty)
        );
        assert_eq!(
            Tally::of_rows(&[true], &[true], None)
                .two_class_groups()
                .err(),
            Some(Missing::NoScores)
        );
        let one = Tally::of_rows(&[true], &[true], Some(&[7.0]));
        assert_eq!(one.two_class_groups().err(), Some(Missing::OneClass));
        assert!(one.scored_groups().is_ok());
    }
}
