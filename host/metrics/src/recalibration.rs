//! Logistic recalibration of scores (Cox, "Two further applications of a model for binary regression", Biometrika 1958):
//! P(y = 1) = logistic(a + b logit(score)), fitted by maximum likelihood without penalty. Owns the clipping, the test
//! for a maximum at infinity, and Newton's method. It must not know which metric asks.

use crate::tally::{Group, Tally, probabilities};
use crate::value::Missing;

/// Scores are clipped to [`SCORE_CLIP`, 1 - `SCORE_CLIP`] before their logit is taken, which is infinite at 0 and 1.
pub const SCORE_CLIP: f64 = 1e-6;

/// Newton steps, halvings included, before the fit is given up.
const STEPS: usize = 200;
/// Length of a Newton step, in standard deviations of the logit, below which the next would change nothing.
const TOLERANCE: f64 = 1e-9;

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
    let groups = tally.two_class_groups()?;
    probabilities(groups)?;
    let points: Vec<Point> = groups.iter().filter_map(Point::of).collect();
    overlap(&points)?;
    let rows: f64 = points.iter().map(|point| point.rows).sum();
    let mean = points.iter().map(|point| point.rows * point.x).sum::<f64>() / rows;
    let squares = points
        .iter()
        .map(|point| point.rows * (point.x - mean) * (point.x - mean));
    let deviation = (squares.sum::<f64>() / rows).sqrt();
    // Centred and scaled, the two coefficients hardly depend on each other, whatever the scores.
    let centred: Vec<Point> = points
        .iter()
        .map(|point| Point {
            x: (point.x - mean) / deviation,
            ..*point
        })
        .collect();
    let [level, slope] = maximum(&centred, rows)?;
    let slope = slope / deviation;
    Ok(Recalibration {
        slope,
        intercept: level - slope * mean,
    })
}

/// Rows of one score.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    rows: f64,
    positives: f64,
}

impl Point {
    fn of(group: &Group) -> Option<Self> {
        let score = group.score.clamp(SCORE_CLIP, 1.0 - SCORE_CLIP);
        (group.rows() > 0).then(|| Self {
            x: libm::log(score / (1.0 - score)),
            rows: group.rows() as f64,
            positives: group.positives as f64,
        })
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

/// Gradient of the log-likelihood and its negative second derivatives (level-level, level-slope, slope-slope).
fn derivatives(points: &[Point], [level, slope]: [f64; 2]) -> ([f64; 2], [f64; 3]) {
    let (mut gradient, mut curvature) = ([0.0; 2], [0.0; 3]);
    for point in points {
        let probability = 1.0 / (1.0 + libm::exp(-(level + slope * point.x)));
        let residual = point.positives - point.rows * probability;
        gradient[0] += residual;
        gradient[1] += residual * point.x;
        let weight = point.rows * probability * (1.0 - probability);
        curvature[0] += weight;
        curvature[1] += weight * point.x;
        curvature[2] += weight * point.x * point.x;
    }
    (gradient, curvature)
}

/// Newton's method. A step is halved while the slope of the likelihood along it grows in size, which is when it leapt
/// over the maximum to somewhere steeper; the likelihood is concave, so shorter steps always end that.
fn maximum(points: &[Point], rows: f64) -> Result<[f64; 2], Missing> {
    let positives: f64 = points.iter().map(|point| point.positives).sum();
    let mut at = [libm::log(positives / (rows - positives)), 0.0];
    let (mut gradient, mut curvature) = derivatives(points, at);
    let mut scale = 1.0;
    for _ in 0..STEPS {
        let [a, b, c] = curvature;
        let determinant = a * c - b * b;
        let full = [
            (c * gradient[0] - b * gradient[1]) / determinant,
            (a * gradient[1] - b * gradient[0]) / determinant,
        ];
        let step = full.map(|part| part * scale);
        if !step.iter().all(|part| part.is_finite()) {
            return Err(Missing::NotConverged);
        }
        let next = [at[0] + step[0], at[1] + step[1]];
        if full[0].abs().max(full[1].abs()) < TOLERANCE {
            return Ok(next);
        }
        let (next_gradient, next_curvature) = derivatives(points, next);
        let along = |gradient: [f64; 2]| gradient[0] * full[0] + gradient[1] * full[1];
        if along(next_gradient).abs() > along(gradient).abs() {
            scale /= 2.0;
            continue;
        }
        (at, gradient, curvature, scale) = (next, next_gradient, next_curvature, 1.0);
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
