//! Truncated Newton with a line search, and the rules by which it stops. It must not know what the objective is made of.

use tracing::debug;

use crate::ProbeError;
use crate::conjugate::{Step, newton_step};
use crate::memory::Memory;
use crate::objective::{Objective, Point, Precision, dot};
use crate::spec::{ProbeSpec, Status};

/// Relative rounding noise of the loss: differences below it say nothing.
const NOISE: f64 = 1e-13;
/// Share of the slope that a step must win (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// Where the loss is too noisy to judge, a step must shrink the gradient to this share.
const SHRINK: f64 = 0.9;
/// Most trial points of one line search.
const MAX_TRIALS: usize = 40;

/// Where the optimiser ended and what it took.
pub(crate) struct Outcome {
    pub point: Point,
    pub status: Status,
    pub iterations: usize,
    pub evaluations: usize,
    pub products: usize,
}

/// Minimises from weights 0 and the given intercept.
pub(crate) fn minimise(
    objective: &mut dyn Objective,
    width: usize,
    intercept: f64,
    spec: &ProbeSpec,
) -> Result<Outcome, ProbeError> {
    let mut point = Point::at(vec![0.0; width], intercept);
    objective.evaluate(&mut point)?;
    let (mut iterations, mut evaluations, mut products) = (0, 1, 0);
    let mut norm = point.gradient_norm();
    if !(norm.is_finite() && point.loss.is_finite()) {
        return Err(ProbeError::Overflow {
            loss: point.loss,
            gradient_norm: norm,
        });
    }
    objective.settle()?;
    let mut memory = Memory::default();
    let mut precision = objective.precision();
    let status = loop {
        if norm <= spec.tolerance {
            break Status::Converged;
        }
        if iterations == spec.max_iterations {
            break Status::IterationLimit;
        }
        let step = newton_step(
            objective,
            &point,
            &mut memory,
            precision,
            forcing(norm, spec.tolerance, precision),
        )?;
        products += step.products;
        let (next, trials) = search(objective, &point, norm, &step)?;
        evaluations += trials;
        if let Some((next, next_norm)) = next {
            iterations += 1;
            debug!(
                iterations,
                products,
                loss = next.loss,
                gradient_norm = next_norm,
                "newton step"
            );
            (point, norm) = (next, next_norm);
            objective.settle()?;
        } else if precision == Precision::Single {
            precision = Precision::Double;
            memory.clear();
        } else {
            break Status::Stalled;
        }
    };
    Ok(Outcome {
        point,
        status,
        iterations,
        evaluations,
        products,
    })
}

/// How exactly the step is solved for: quadratic convergence near the optimum, and no further than the tolerance needs.
fn forcing(norm: f64, tolerance: f64, precision: Precision) -> f64 {
    let least = match precision {
        Precision::Single => 1e-5,
        Precision::Double => 1e-10,
    };
    norm.min(0.1).max(0.3 * tolerance / norm).max(least)
}

/// The first acceptable point along `step` with its gradient norm, if any, and the number of points tried.
fn search(
    objective: &mut dyn Objective,
    from: &Point,
    norm: f64,
    step: &Step,
) -> Result<(Option<(Point, f64)>, usize), ProbeError> {
    let slope_at = |point: &Point| {
        dot(&point.gradient, &step.weights) + point.intercept_gradient * step.intercept
    };
    let slope = slope_at(from);
    if slope.is_nan() || slope >= 0.0 {
        return Ok((None, 0));
    }
    let noise = NOISE * from.loss.abs();
    let mut length = 1.0;
    for trial in 1..=MAX_TRIALS {
        let weights = from
            .weights
            .iter()
            .zip(&step.weights)
            .map(|(weight, step)| weight + length * step)
            .collect();
        let mut point = Point::at(weights, from.intercept + length * step.intercept);
        objective.evaluate(&mut point)?;
        let point_norm = point.gradient_norm();
        let wanted = -SUFFICIENT * length * slope;
        // Once a step's whole gain drowns in rounding only the gradient tells whether it was one.
        let accept = if -length * slope > noise {
            point.loss <= from.loss - wanted
        } else {
            point.loss <= from.loss + noise && point_norm <= SHRINK * norm
        };
        if accept && point_norm.is_finite() {
            return Ok((Some((point, point_norm)), trial));
        }
        let end = slope_at(&point);
        let secant = if end > 0.0 {
            slope / (slope - end)
        } else {
            0.5
        };
        length *= secant.clamp(0.1, 0.5);
    }
    Ok((None, MAX_TRIALS))
}
