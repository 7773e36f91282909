//! Scores as numbers: the decimal a single-precision score stands for, the shift to another prior, and the squared
//! error that two metrics share. It must not know which metric asks.

use crate::error::MetricError;
use crate::tally::Tally;
use crate::value::Missing;

/// The f64 nearest to the shortest decimal that identifies `score` among f32 values: 0.7f32 becomes 0.7, where plain
/// promotion would give 0.699999988079071 and another calibration bin. Exact for 0 and 1; NaN and infinities stay.
pub fn shortest_decimal(score: f32) -> f64 {
    shortest_decimals(&[score])[0]
}

/// [`shortest_decimal`] of each score.
pub fn shortest_decimals(scores: &[f32]) -> Vec<f64> {
    use std::fmt::Write;
    let mut text = String::with_capacity(24);
    let one = |&score: &f32| {
        text.clear();
        write!(text, "{score:e}").expect("writing to a String cannot fail");
        text.parse().expect("a printed float parses")
    };
    scores.iter().map(one).collect()
}

/// Scores of a probe that was trained with balanced class weights, moved back to the prior of its training split: the
/// logit is shifted by log(n+ / n-). `scores` are probabilities, `positives` and `negatives` the counts of the training
/// split. Decisions do not move with the scores: the probe's own threshold stays.
///
/// Written as 1 / (1 + ((1 - s) / s) (n- / n+)), which is the same without logarithms, is exact at 0 and 1, and never
/// swaps two scores, because each rounded step is monotone.
///
/// # Errors
/// A training split with one class; a score outside [0, 1] (the row is named).
pub fn prior_shifted(
    scores: &[f64],
    positives: u64,
    negatives: u64,
) -> Result<Vec<f64>, MetricError> {
    if positives == 0 || negatives == 0 {
        return Err(MetricError::DegeneratePrior {
            positives,
            negatives,
        });
    }
    let odds = negatives as f64 / positives as f64;
    let shift = |(row, &score): (usize, &f64)| {
        if (0.0..=1.0).contains(&score) {
            // +0.0: a negative zero would divide to minus infinity.
            let score = score + 0.0;
            Ok(1.0 / (1.0 + (1.0 - score) / score * odds))
        } else {
            Err(MetricError::NotAProbability { row, score })
        }
    };
    scores.iter().enumerate().map(shift).collect()
}

/// Mean of (score - label)^2 over the rows, summed in ascending order of score.
pub(crate) fn mean_squared_error(tally: &Tally) -> Result<f64, Missing> {
    let found = &tally.shared.squared_error;
    *found.get_or_init(|| squared_error(tally))
}

fn squared_error(tally: &Tally) -> Result<f64, Missing> {
    let groups = tally.scored_groups()?.probabilities()?;
    let mut sum = 0.0;
    for (&score, &[negatives, positives]) in groups.scores().iter().zip(groups.counts) {
        // Groups without rows occur in resamples and may lie outside [0, 1]; clamped, their square cannot overflow.
        let score = score.clamp(0.0, 1.0);
        let (to_one, to_zero) = (1.0 - score, score);
        sum +=
            f64::from(positives) * (to_one * to_one) + f64::from(negatives) * (to_zero * to_zero);
    }
    Ok(sum / tally.confusion().rows() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_scores_are_read_as_people_write_them() {
        let cases = [
            (0.7, 0.7),
            (0.9, 0.9),
            (0.0, 0.0),
            (1.0, 1.0),
            (1e-45, 1e-45),
            (-0.1, -0.1),
        ];
        for (single, double) in cases {
            assert_eq!(shortest_decimal(single), double);
        }
        assert!(shortest_decimal(f32::NAN).is_nan());
        assert_eq!(shortest_decimal(f32::INFINITY), f64::INFINITY);
    }

    #[test]
    fn the_shift_is_a_logit_shift() {
        let scores = [0.001, 0.2, 0.5, 0.97];
        for (shifted, score) in prior_shifted(&scores, 30, 170)
            .unwrap()
            .into_iter()
            .zip(scores)
        {
            let logit = (score / (1.0 - score)).ln() + (30.0_f64 / 170.0).ln();
            assert!((shifted - 1.0 / (1.0 + (-logit).exp())).abs() < 1e-15);
        }
        assert_eq!(
            prior_shifted(&[0.0, -0.0, 1.0], 3, 8).unwrap(),
            [0.0, 0.0, 1.0]
        );
        assert_eq!(prior_shifted(&[0.5], 2, 8).unwrap(), [0.2]);
    }

    #[test]
    fn a_shift_refuses_what_it_cannot_shift() {
        assert!(matches!(
            prior_shifted(&[0.5], 0, 8),
            Err(MetricError::DegeneratePrior {
                positives: 0,
                negatives: 8
            })
        ));
        let error = prior_shifted(&[0.5, 1.2], 1, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Score in row 1 is not a probability: expected a value in [0, 1], found 1.2"
        );
        assert!(prior_shifted(&[f64::NAN], 1, 1).is_err());
    }
}
