//! Expected calibration error of the positive class, and the reliability bins behind it: 10 equal-width bins, the last
//! one closed; sum over bins of n_m / n |mean score - mean label|. A score outside [0, 1] is an error here, not
//! something to clip. Scores computed in f32 go through [`crate::shortest_decimal`] first. Missing with one class.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

/// Number of bins.
pub const BINS: usize = 10;

register!(MetricSpec {
    id: "ece",
    title: "ECE",
    order: 70,
    direction: Direction::LowerIsBetter,
    as_published: true,
    role: Role::Headline,
    input: Input::Scores,
    share: None,
    from_tally: ece,
});

/// One bin of the reliability diagram: scores in [index / 10, (index + 1) / 10), the last bin also holding 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Bin {
    /// Rows in the bin.
    pub rows: u64,
    /// Positive rows in the bin.
    pub positives: u64,
    /// Sum of the bin's scores.
    pub score_sum: f64,
}

impl Bin {
    /// Mean score, where the bin holds rows.
    pub fn mean_score(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.score_sum / self.rows as f64)
    }

    /// Share of positives, where the bin holds rows.
    pub fn positive_rate(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.positives as f64 / self.rows as f64)
    }
}

/// Index of the bin that holds this probability.
pub(crate) fn bin_of(score: f64) -> usize {
    ((10.0 * score) as usize).min(BINS - 1)
}

/// The reliability diagram. Sums run over ascending scores, so that they do not depend on row order.
///
/// # Errors
/// [`Missing::Empty`], [`Missing::NoScores`], [`Missing::ScoreOutOfRange`]. One class is fine here.
pub fn reliability_bins(tally: &Tally) -> Result<[Bin; BINS], Missing> {
    let groups = tally.scored_groups()?.probabilities()?;
    let mut bins = [Bin::default(); BINS];
    let starts = groups.scale.starts(bin_of);
    for (bin, ends) in bins.iter_mut().zip(starts.windows(2)) {
        let range = ends[0]..ends[1];
        // Groups without rows occur in resamples and may lie outside [0, 1]; they add 0 to an end bin.
        for (&score, &[negatives, positives]) in groups.scores()[range.clone()]
            .iter()
            .zip(&groups.counts[range])
        {
            bin.rows += u64::from(negatives) + u64::from(positives);
            bin.positives += u64::from(positives);
            bin.score_sum += (f64::from(negatives) + f64::from(positives)) * score;
        }
    }
    Ok(bins)
}

fn ece(tally: &Tally) -> MetricValue {
    error(tally).into()
}

fn error(tally: &Tally) -> Result<f64, Missing> {
    tally.two_class_groups()?;
    let bins = reliability_bins(tally)?;
    let gaps = bins
        .iter()
        .map(|bin| (bin.score_sum - bin.positives as f64).abs());
    Ok(gaps.sum::<f64>() / tally.confusion().rows() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::shortest_decimal;

    fn bin_holding(score: f64) -> usize {
        let tally = Tally::of_rows(&[true], &[true], Some(&[score]));
        let bins = reliability_bins(&tally).unwrap();
        bins.iter().position(|bin| bin.rows == 1).unwrap()
    }

    #[test]
    fn tenths_open_their_bin_and_one_closes_the_last() {
        for tenth in 0..10_u8 {
            let decimal: f64 = format!("0.{tenth}").parse().unwrap();
            assert_eq!(bin_holding(decimal), usize::from(tenth));
            let single: f32 = format!("0.{tenth}").parse().unwrap();
            assert_eq!(bin_holding(shortest_decimal(single)), usize::from(tenth));
        }
        assert_eq!(bin_holding(1.0), 9);
        assert_eq!(
            bin_holding(f64::from(0.7_f32)),
            6,
            "the trap: promotion moves 0.7 below its edge"
        );
    }

    #[test]
    fn a_score_outside_is_an_error_and_is_never_clipped() {
        for outside in [1.0 + f64::EPSILON, -5e-324, 2.0] {
            let tally = Tally::of_rows(&[true, false], &[true; 2], Some(&[outside, 0.5]));
            assert_eq!(ece(&tally).missing(), Some(Missing::ScoreOutOfRange));
        }
        let tally = Tally::of_rows(&[true, false], &[true; 2], Some(&[1.0, -0.0]));
        assert_eq!(ece(&tally).value(), Some(0.0));
    }
}
