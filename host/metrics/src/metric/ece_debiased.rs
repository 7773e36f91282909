//! Expected calibration error without the upward bias of the plain one, on the same ten bins.
//!
//! The plain error is sum over bins of |D_b| / n with D_b = sum of (score - label) over the bin: the largest value that
//! sum over rows of e_b (score - label) / n takes over signs e_b = +-1. Choosing the signs on the rows that they are then
//! applied to is what inflates it: a perfectly calibrated model gets about 0.094 at n = 103 (on the bias: Roelofs et al.,
//! "Mitigating bias in calibration error estimation", AISTATS 2022; Kumar, Liang and Ma, "Verified uncertainty
//! calibration", NeurIPS 2019). Here each row takes its bin's sign from the other rows of the bin (leave-one-out
//! cross-validation; Stone, "Cross-validatory choice and assessment of statistical predictions", 1974):
//!
//! sum over rows i of sign(D_b - (s_i - y_i)) (s_i - y_i) / n, sign(0) = 0.
//!
//! Labels are independent given scores, so under perfect calibration the expectation is exactly 0; where every |D_b| > 1
//! both estimates agree; in between this one leans low, by at most about a third of a standard deviation of D_b / n in
//! each bin (2 x times the normal tail beyond x, at its largest). It may be negative: it is an estimate, and clipping at
//! 0 would bring the bias back. A bin of one row says nothing and adds 0. Missing where the plain error is.

use crate::metric::ece::{BINS, bin_of, reliability_bins};
use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "ece_debiased",
    title: "ECE, debiased",
    order: 75,
    direction: Direction::LowerIsBetter,
    as_published: false,
    role: Role::Calibration,
    input: Input::Scores,
    share: None,
    from_tally: ece_debiased,
});

/// Rounding of sums of scores: a left-out sum below this is an exact zero that decimals cannot show.
const ROUNDING: f64 = 1e-9;

fn ece_debiased(tally: &Tally) -> MetricValue {
    left_out(tally).into()
}

fn left_out(tally: &Tally) -> Result<f64, Missing> {
    let groups = tally.two_class_groups()?;
    let bins = reliability_bins(tally)?;
    let excess = bins.map(|bin| bin.score_sum - bin.positives as f64);
    // A row moves its bin's sum by at most 1, so beyond that every left-out sign is the bin's own.
    let mut sums: [f64; BINS] = excess.map(|excess| {
        if excess.abs() > 1.0 + ROUNDING {
            excess.abs()
        } else {
            0.0
        }
    });
    let starts = groups.scale.starts(bin_of);
    for ((sum, excess), ends) in sums.iter_mut().zip(excess).zip(starts.windows(2)) {
        if excess.abs() > 1.0 + ROUNDING {
            continue;
        }
        let range = ends[0]..ends[1];
        for (&score, &[negatives, positives]) in groups.scores()[range.clone()]
            .iter()
            .zip(&groups.counts[range])
        {
            let (of_positive, of_negative) = (score - 1.0, score);
            *sum += f64::from(positives) * of_positive * sign(excess - of_positive)
                + f64::from(negatives) * of_negative * sign(excess - of_negative);
        }
    }
    Ok(sums.iter().sum::<f64>() / tally.confusion().rows() as f64)
}

fn sign(sum: f64) -> f64 {
    if sum.abs() <= ROUNDING {
        0.0
    } else {
        1.0_f64.copysign(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn of(labels: &[bool], scores: &[f64]) -> MetricValue {
        ece_debiased(&Tally::of_rows(labels, labels, Some(scores)))
    }

    #[test]
    fn far_from_calibrated_it_is_the_plain_error() {
        let labels: Vec<bool> = (0..40).map(|i| i % 4 == 0).collect();
        let value = of(&labels, &[0.85; 40]).value().unwrap();
        assert!((value - 0.6).abs() < 1e-12, "{value}");
    }

    #[test]
    fn the_definition_row_by_row() {
        let labels = [true, false, true, true, false, false, true];
        let scores = [0.12, 0.18, 0.15, 0.95, 0.91, 0.55, 1.0];
        let mut sum = 0.0;
        for i in 0..labels.len() {
            let residual = |j: usize| scores[j] - f64::from(u8::from(labels[j]));
            let others =
                (0..labels.len()).filter(|&j| j != i && bin_of(scores[j]) == bin_of(scores[i]));
            let rest: f64 = others.map(residual).sum();
            sum += residual(i) * if rest == 0.0 { 0.0 } else { rest.signum() };
        }
        let value = of(&labels, &scores).value().unwrap();
        assert!((value - sum / 7.0).abs() < 1e-15, "{value}");
    }

    #[test]
    fn single_rows_say_nothing() {
        assert_eq!(of(&[true, false], &[0.95, 0.35]).value(), Some(0.0));
        assert_eq!(
            of(&[true, true], &[0.9, 0.3]).missing(),
            Some(Missing::OneClass)
        );
        assert_eq!(
            of(&[true, false], &[0.9, 1.3]).missing(),
            Some(Missing::ScoreOutOfRange)
        );
    }

    #[test]
    fn perfect_calibration_averages_zero_where_the_plain_error_does_not() {
        let unit = |stream: &mut Stream| stream.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        let (mut plain, mut corrected) = (0.0, 0.0);
        let repeats = 4000;
        for repeat in 0..repeats {
            let mut stream = Stream::new(2026, repeat);
            let scores: Vec<f64> = (0..103).map(|_| unit(&mut stream)).collect();
            let labels: Vec<bool> = scores
                .iter()
                .map(|&score| unit(&mut stream) < score)
                .collect();
            let tally = Tally::of_rows(&labels, &labels, Some(&scores));
            plain += (crate::registry::metric("ece").unwrap().from_tally)(&tally)
                .value()
                .unwrap();
            corrected += ece_debiased(&tally).value().unwrap();
        }
        let (plain, corrected) = (plain / repeats as f64, corrected / repeats as f64);
        // One value of the corrected error spreads by about 0.06, so its mean by about 0.001.
        assert!((plain - 0.094).abs() < 0.005, "{plain}");
        assert!(corrected.abs() < 0.004, "{corrected}");
    }
}
