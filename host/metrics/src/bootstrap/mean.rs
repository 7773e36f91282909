//! The mean of a list of numbers, such as the differences of one domain, with its interval. Resamples the numbers
//! themselves: as the paper summarises domains, which treats comparisons as independent although they share patients
//! and models.

use rayon::prelude::*;

use crate::bootstrap::{Interval, two_sided_p};
use crate::error::MetricError;
use crate::random::Stream;

/// A mean with its interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct MeanEstimate {
    /// The mean of all values.
    pub mean: f64,
    /// Percentile interval of the mean.
    pub interval: Interval,
    /// Two-sided p-value of the mean against 0.
    pub p: f64,
    /// B.
    pub resamples: u32,
}

/// Bootstraps the mean of `values`, which are finite. Their order does not matter.
///
/// # Errors
/// No values, a value that is not finite, no resamples.
pub fn bootstrap_mean(
    values: &[f64],
    resamples: u32,
    seed: u64,
) -> Result<MeanEstimate, MetricError> {
    if resamples == 0 {
        return Err(MetricError::NoResamples);
    }
    if let Some((position, &found)) = values
        .iter()
        .enumerate()
        .find(|(_, value)| !value.is_finite())
    {
        return Err(MetricError::NonFiniteValue { position, found });
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let one = |resample: u32| {
        let mut stream = Stream::new(seed, u64::from(resample));
        let sum: f64 = (0..n)
            .map(|_| sorted[stream.below(n as u64) as usize])
            .sum();
        sum / n as f64
    };
    let mean = sorted.iter().sum::<f64>() / n as f64;
    let mut means: Vec<f64> = if n == 0 {
        Vec::new()
    } else {
        (0..resamples).into_par_iter().map(one).collect()
    };
    let p = two_sided_p(&means).ok_or(MetricError::NoRows)?;
    let interval = Interval::of(&mut means).ok_or(MetricError::NoRows)?;
    Ok(MeanEstimate {
        mean,
        interval,
        p,
        resamples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_list_has_a_point_interval() {
        let estimate = bootstrap_mean(&[0.25; 9], 999, 13).unwrap();
        assert_eq!(
            (estimate.mean, estimate.interval.low, estimate.interval.high),
            (0.25, 0.25, 0.25)
        );
        assert_eq!(estimate.p, 0.002);
    }

    #[test]
    fn order_does_not_matter_and_spread_is_right() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        let estimate = bootstrap_mean(&values, 4000, 1).unwrap();
        assert_eq!(estimate, bootstrap_mean(&reversed, 4000, 1).unwrap());
        // Normal theory: standard error 0.2887 / 10, so the interval is about 0.495 +- 0.0566.
        assert!(
            (estimate.interval.low - 0.4384).abs() < 0.005,
            "{estimate:?}"
        );
        assert!(
            (estimate.interval.high - 0.5516).abs() < 0.005,
            "{estimate:?}"
        );
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert_eq!(bootstrap_mean(&[], 10, 1), Err(MetricError::NoRows));
        assert_eq!(bootstrap_mean(&[1.0], 0, 1), Err(MetricError::NoResamples));
        assert!(bootstrap_mean(&[1.0, f64::NAN], 10, 1).is_err());
    }
}
