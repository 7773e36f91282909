//! Differences between two models on the same images.

use crate::bootstrap::{Interval, Plan, resample, two_sided_p};
use crate::error::MetricError;
use crate::registry::MetricSpec;
use crate::scored::Scored;
use crate::value::MetricValue;

/// A metric's difference between two arms.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Delta {
    /// The first arm's metric on all rows.
    pub base: MetricValue,
    /// The second arm's metric on all rows.
    pub other: MetricValue,
    /// `other - base` on all rows; none where either is missing.
    pub delta: Option<f64>,
    /// Interval of the difference over the valid resamples; none where the difference is missing or V is 0.
    pub interval: Option<Interval>,
    /// Two-sided p-value, not corrected for other comparisons; none where the interval is.
    pub p: Option<f64>,
    /// V, the resamples on which the metric is defined in both arms.
    pub valid: u32,
    /// B, the resamples drawn.
    pub resamples: u32,
}

/// Differences `other - base` with intervals and p-values, in the order of `specs`. Both arms hold the same images in
/// the same order, and every resample draws the same rows for both.
///
/// # Errors
/// No rows or resamples; columns of unequal length; a label that differs between the arms (the row is named).
pub fn paired_bootstrap(
    base: &Scored<'_>,
    other: &Scored<'_>,
    specs: &[&MetricSpec],
    plan: &Plan<'_>,
) -> Result<Vec<Delta>, MetricError> {
    let resamples = resample(&[base, other], specs, plan)?;
    let compare = |(metric, spec): (usize, &&MetricSpec)| {
        let (base, other) = (spec.compute(base), spec.compute(other));
        let delta = base
            .value()
            .zip(other.value())
            .map(|(base, other)| other - base);
        let mut deltas = resamples.deltas(0, 1, metric);
        let valid = deltas.len() as u32;
        let p = delta.and_then(|_| two_sided_p(&deltas));
        let interval = delta.and_then(|_| Interval::of(&mut deltas));
        Delta {
            base,
            other,
            delta,
            interval,
            p,
            valid,
            resamples: plan.resamples,
        }
    };
    Ok(specs.iter().enumerate().map(compare).collect())
}
