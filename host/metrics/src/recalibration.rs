//! Logistic recalibration of scores (Cox, "Two further applications of a model for binary regression", Biometrika 1958):
//! P(y = 1) = logistic(a + b logit(score)), fitted by maximum likelihood without penalty. Owns the clipping, the test
//! for a maximum at infinity, and Newton's method. It must not know which metric asks.

use crate::tally::{Confusion, Tally};
use crate::value::Missing;

/// Scores are clipped to [`SCORE_CLIP`, 1 - `SCORE_CLIP`] before their logit is taken, which is infinite at 0 and 1.
pub const SCORE_CLIP: f64 = 1e-6;

/// Newton steps, halvings included, before the fit is given up.
const STEPS: usize = 200;
/// Squared length of a Newton step, in standard errors of the fit, below which the next would change nothing.
const TOLERANCE: f64 = 1e-16;

/// The fitted line on the logit scale.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Recalibration {
    /// b; 1 where the scores are calibrated.
    pub slope: f64,
    /// a; 0 where the scores are calibrated.
    pub intercept: f64,
}

/// Fits the line to these rows.
///
/// # Errors
/// [`Missing::Empty`], [`Missing::NoScores`], [`Missing::OneClass`], [`Missing::ScoreOutOfRange`];
/// [`Missing::ConstantScores`] and [`Missing::Separated`] where no finite maximum exists; [`Missing::NotConverged`].
pub fn recalibrate(tally: &Tally) -> Result<Recalibration, Missing> {
    *tally.shared.recalibration.get_or_init(|| fit(tally))
}

fn fit(tally: &Tally) -> Result<Recalibration, Missing> {
    let groups = tally.two_class_groups()?.probabilities()?;
    let logits = groups.scale.logits(logit);
    let present = logits
        .iter()
        .zip(groups.counts)
        .filter(|(_, count)| **count != [0, 0]);
    let mut points: Vec<Point> = present.map(|(&x, &count)| Point::of(x, count)).collect();
    overlap(&points)?;
    let rows = tally.confusion().rows() as f64;
    let mean = points.iter().map(|point| point.rows * point.x).sum::<f64>() / rows;
    let squares = points
        .iter()
        .map(|point| point.rows * (point.x - mean) * (point.x - mean));
    let deviation = (squares.sum::<f64>() / rows).sqrt();
    // Centred and scaled, the two coefficients hardly depend on each other, whatever the scores.
    for point in &mut points {
        point.x = (point.x - mean) / deviation;
    }
    let [level, slope] = maximum(&points, tally.confusion())?;
    let slope = slope / deviation;
    let intercept = level - slope * mean;
    if slope.is_finite() && intercept.is_finite() {
        Ok(Recalibration { slope, intercept })
    } else {
        Err(Missing::NotConverged)
    }
}

fn logit(score: f64) -> f64 {
    let score = score.clamp(SCORE_CLIP, 1.0 - SCORE_CLIP);
    libm::log(score / (1.0 - score))
}

/// Rows of one score.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    rows: f64,
    positives: f64,
}

impl Point {
    fn of(x: f64, [negatives, positives]: [u32; 2]) -> Self {
        Self {
            x,
            rows: f64::from(negatives) + f64::from(positives),
            positives: f64::from(positives),
        }
    }
}

/// A finite maximum exists when the classes overlap: neither lies wholly on one side of the other, touching included
/// (Albert and Anderson, "On the existence of maximum likelihood estimates in logistic regression models", 1984).
fn overlap(points: &[Point]) -> Result<(), Missing> {
    let of_class = |holds: fn(&Point) -> bool| {
        let mut held = points
            .iter()
            .filter(|point| holds(point))
            .map(|point| point.x);
        let lowest = held.next().expect("both classes occur");
        (lowest, held.next_back().unwrap_or(lowest))
    };
    let (lowest_positive, highest_positive) = of_class(|point| point.positives > 0.0);
    let (lowest_negative, highest_negative) = of_class(|point| point.positives < point.rows);
    if points.first().map(|point| point.x) == points.last().map(|point| point.x) {
        Err(Missing::ConstantScores)
    } else if lowest_positive >= highest_negative || highest_positive <= lowest_negative {
        Err(Missing::Separated)
    } else {
        Ok(())
    }
}

/// Where the likelihood leads from here.
struct Slope {
    gradient: [f64; 2],
    /// The Newton step.
    step: [f64; 2],
}

impl Slope {
    /// How fast the log-likelihood grows along `direction`.
    fn along(&self, direction: [f64; 2]) -> f64 {
        self.gradient[0] * direction[0] + self.gradient[1] * direction[1]
    }

    /// At these coefficients. Curvature is taken about the mean of the points weighted by their information: where few
    /// scores carry it all, a determinant would be the difference of two equal numbers.
    fn at(points: &[Point], [level, tilt]: [f64; 2], scratch: &mut Vec<(f64, f64)>) -> Self {
        scratch.clear();
        // A loop of its own, without sums, that the compiler can widen.
        scratch.extend(
            points
                .iter()
                .map(|point| (logistic(level + tilt * point.x), 0.0)),
        );
        let (mut gradient, mut weights, mut moments) = ([0.0; 2], 0.0, 0.0);
        for (point, place) in points.iter().zip(scratch.iter_mut()) {
            let probability = place.0;
            let residual = point.positives - point.rows * probability;
            let weight = point.rows * probability * (1.0 - probability);
            gradient[0] += residual;
            gradient[1] += residual * point.x;
            weights += weight;
            moments += weight * point.x;
            *place = (residual, weight);
        }
        let centre = moments / weights;
        let (mut pull, mut spread) = (0.0, 0.0);
        for (point, (residual, weight)) in points.iter().zip(scratch) {
            let x = point.x - centre;
            pull += *residual * x;
            spread += *weight * x * x;
        }
        let step = pull / spread;
        Self {
            gradient,
            step: [gradient[0] / weights - centre * step, step],
        }
    }
}

/// 1 / (1 + e^-x) to a few units in the last place, in plain arithmetic: no branch, and the same bits everywhere.
fn logistic(x: f64) -> f64 {
    /// Adding and subtracting it rounds to an integer, which is left in the low bits of the sum.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// ln 2 in two parts; the first has few enough digits that its products are exact.
    const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    // e^x = 2^k e^r with |r| <= ln 2 / 2. At the ends of the range the logistic function is 0 and 1 to all digits.
    let x = (-x).clamp(-700.0, 700.0);
    let shifted = x * core::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2[0]) - k * LN_2[1];
    // Taylor's series; what is left out is below 1e-17.
    let series = INVERSE_FACTORIALS
        .iter()
        .fold(0.0, |sum, term| sum * r + term);
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    1.0 / (1.0 + series * power)
}

/// 1/13!, 1/12!, ... 1/0!.
const INVERSE_FACTORIALS: [f64; 14] = {
    let mut terms = [1.0; 14];
    let (mut n, mut factorial) = (1, 1.0);
    while n < 14 {
        factorial *= n as f64;
        terms[13 - n] = 1.0 / factorial;
        n += 1;
    }
    terms
};

/// Newton's method. A step is halved while the slope of the likelihood along it grows in size, which is when it leapt
/// over the maximum to somewhere steeper; the likelihood is concave, so shorter steps always end that.
fn maximum(points: &[Point], counts: &Confusion) -> Result<[f64; 2], Missing> {
    let mut scratch = Vec::with_capacity(points.len());
    let mut at = [
        libm::log(counts.positives() as f64 / counts.negatives() as f64),
        0.0,
    ];
    let mut here = Slope::at(points, at, &mut scratch);
    let mut scale = 1.0;
    for _ in 0..STEPS {
        let growth = here.along(here.step);
        let next = [at[0] + scale * here.step[0], at[1] + scale * here.step[1]];
        if !growth.is_finite() || !next.iter().all(|part| part.is_finite()) {
            return Err(Missing::NotConverged);
        }
        if growth < TOLERANCE {
            return Ok(next);
        }
        let there = Slope::at(points, next, &mut scratch);
        if there.along(here.step).abs() <= growth {
            (at, here, scale) = (next, there, 1.0);
        } else {
            scale /= 2.0;
        }
    }
    Err(Missing::NotConverged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn of(labels: &[bool], scores: &[f64]) -> Result<Recalibration, Missing> {
        recalibrate(&Tally::of_rows(labels, labels, Some(scores)))
    }

    #[test]
    fn two_scores_have_a_closed_form() {
        // Shares 1/4 at logit(0.2) and 2/3 at logit(0.9): the line goes through both observed logits.
        let labels = [true, false, false, false, true, true, false];
        let scores = [0.2, 0.2, 0.2, 0.2, 0.9, 0.9, 0.9];
        let fit = of(&labels, &scores).unwrap();
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let slope = (logit(2.0 / 3.0) - logit(0.25)) / (logit(0.9) - logit(0.2));
        assert!((fit.slope - slope).abs() < 1e-13, "{fit:?}");
        assert!(
            (fit.intercept - (logit(0.25) - slope * logit(0.2))).abs() < 1e-13,
            "{fit:?}"
        );
    }

    #[test]
    fn the_logistic_function_is_right_to_the_last_digits() {
        for step in -80_000..=80_000 {
            let x = f64::from(step) / 1000.0 + 1e-7;
            let exact = 1.0 / (1.0 + libm::exp(-x));
            assert!((logistic(x) / exact - 1.0).abs() < 1e-15, "{x}");
        }
        assert_eq!(
            (logistic(0.0), logistic(900.0), logistic(f64::MAX)),
            (0.5, 1.0, 1.0)
        );
        assert!(logistic(-900.0) < 1e-300 && logistic(f64::NAN).is_nan());
    }

    #[test]
    fn no_finite_line_has_a_reason() {
        let labels = [true, true, false, false];
        assert_eq!(of(&labels, &[0.9, 0.8, 0.2, 0.1]), Err(Missing::Separated));
        assert_eq!(of(&labels, &[0.1, 0.2, 0.8, 0.9]), Err(Missing::Separated));
        assert_eq!(of(&labels, &[0.9, 0.5, 0.5, 0.1]), Err(Missing::Separated));
        assert_eq!(of(&labels, &[0.3; 4]), Err(Missing::ConstantScores));
        assert_eq!(
            of(&labels, &[1e-9, 0.0, 0.0, 1e-7]),
            Err(Missing::ConstantScores)
        );
        assert_eq!(of(&[true; 2], &[0.3, 0.4]), Err(Missing::OneClass));
        assert_eq!(
            of(&labels, &[0.9, 0.5, 1.5, 0.1]),
            Err(Missing::ScoreOutOfRange)
        );
        assert!(of(&labels, &[0.9, 0.4, 0.5, 0.1]).is_ok());
    }

    #[test]
    fn the_gradient_vanishes_on_random_and_on_extreme_rows() {
        let mut fits = 0;
        for case in 0..500 {
            let mut stream = Stream::new(4, case);
            let n = 3 + stream.below(60) as usize;
            let pool = [0.0, 1e-12, 1e-6, 0.3, 0.5, 0.500001, 0.999, 1.0];
            let mut score = || match case % 2 {
                0 => stream.below(1000) as f64 / 1000.0,
                _ => pool[stream.below(8) as usize],
            };
            let scores: Vec<f64> = (0..n).map(|_| score()).collect();
            let labels: Vec<bool> = scores
                .iter()
                .map(|&s| (stream.below(1000) as f64) < 1000.0 * (0.05 + 0.9 * s))
                .collect();
            match of(&labels, &scores) {
                Ok(fit) => {
                    let (mut level, mut tilt, mut reach) = (0.0, 0.0, 1.0_f64);
                    for (&label, &score) in labels.iter().zip(&scores) {
                        let score = score.clamp(SCORE_CLIP, 1.0 - SCORE_CLIP);
                        let x = (score / (1.0 - score)).ln();
                        let p = 1.0 / (1.0 + (-(fit.intercept + fit.slope * x)).exp());
                        level += f64::from(u8::from(label)) - p;
                        tilt += (f64::from(u8::from(label)) - p) * x;
                        reach = reach.max(x.abs());
                    }
                    assert!(
                        level.abs() < 1e-9 && tilt.abs() < 1e-9 * reach,
                        "case {case}: {fit:?} {level} {tilt}"
                    );
                    fits += 1;
                }
                Err(reason) => assert!(
                    matches!(
                        reason,
                        Missing::Separated | Missing::OneClass | Missing::ConstantScores
                    ),
                    "case {case}: {reason:?}"
                ),
            }
        }
        assert!(fits > 300, "{fits}");
    }
}
