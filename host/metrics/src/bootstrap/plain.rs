//! Percentile intervals of one cell's metrics.

use crate::bootstrap::{Interval, Plan, resample};
use crate::error::MetricError;
use crate::registry::MetricSpec;
use crate::scored::Scored;
use crate::value::MetricValue;

/// A metric with its interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The metric of all rows, not of resamples.
    pub value: MetricValue,
    /// Interval over the valid resamples; none where the value is missing or no resample is valid.
    pub interval: Option<Interval>,
    /// V, the resamples on which the metric is defined.
    pub valid: u32,
    /// B, the resamples drawn.
    pub resamples: u32,
}

/// Metrics of `rows` with percentile intervals, in the order of `specs`. Resamples that leave a metric undefined are
/// skipped and counted.
///
/// # Errors
/// No rows or resamples; patients of the wrong length.
pub fn bootstrap(
    rows: &Scored<'_>,
    specs: &[&MetricSpec],
    plan: &Plan<'_>,
) -> Result<Vec<Estimate>, MetricError> {
    let resamples = resample(&[rows], specs, plan)?;
    let estimate = |(metric, spec): (usize, &&MetricSpec)| {
        let value = spec.compute(rows);
        let mut values = resamples.valid(0, metric);
        let valid = values.len() as u32;
        let interval = value.value().and_then(|_| Interval::of(&mut values));
        Estimate {
            value,
            interval,
            valid,
            resamples: plan.resamples,
        }
    };
    Ok(specs.iter().enumerate().map(estimate).collect())
}
