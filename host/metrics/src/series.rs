//! One number with its resampled values, to be combined with others of the same resamples: differences of two models,
//! means over test sets. It must not know which number it is.

use crate::bootstrap::{Interval, two_sided_p};
use crate::error::MetricError;

/// A number on all rows and on each resample. Two series belong together, resample by resample, when one call drew them,
/// or calls with the same numbered units and seed; series of different test sets are independent and may be averaged.
#[derive(Debug, Clone)]
pub struct Series {
    point: Option<f64>,
    /// NaN where undefined.
    draws: Vec<f64>,
}

/// Equal to the last bit. NaN, which marks undefined values inside, equals itself.
impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        let bits = |it: &Self| {
            it.draws
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        self.point == other.point && bits(self) == bits(other)
    }
}

/// A number with interval and p-value.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct SeriesEstimate {
    /// The number on all rows.
    pub value: f64,
    /// Percentile interval over the valid resamples; none where V is 0.
    pub interval: Option<Interval>,
    /// Two-sided p-value against 0, not corrected for other comparisons; none where V is 0. Of meaning for differences.
    pub p: Option<f64>,
    /// V, the resamples on which the number is defined.
    pub valid: u32,
    /// B, the resamples drawn.
    pub resamples: u32,
}

impl Series {
    /// From the number on all rows, and on each resample; none where it is undefined.
    pub fn new(point: Option<f64>, draws: impl IntoIterator<Item = Option<f64>>) -> Self {
        let draws = draws
            .into_iter()
            .map(|draw| draw.unwrap_or(f64::NAN))
            .collect();
        Self { point, draws }
    }

    /// The number on all rows.
    pub fn point(&self) -> Option<f64> {
        self.point
    }

    /// Number of resamples, B.
    pub fn count(&self) -> u32 {
        self.draws.len() as u32
    }

    /// The number on each resample.
    pub fn draws(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        self.draws
            .iter()
            .map(|draw| (!draw.is_nan()).then_some(*draw))
    }

    pub(crate) fn draw(&self, resample: usize) -> Option<f64> {
        let draw = self.draws[resample];
        (!draw.is_nan()).then_some(draw)
    }

    /// `self - base`, resample by resample; undefined where either is.
    ///
    /// # Errors
    /// Unequal numbers of resamples.
    pub fn minus(&self, base: &Self) -> Result<Self, MetricError> {
        same_count(self, base)?;
        Ok(Self {
            point: self.point.zip(base.point).map(|(own, base)| own - base),
            draws: self
                .draws
                .iter()
                .zip(&base.draws)
                .map(|(own, base)| own - base)
                .collect(),
        })
    }

    /// The mean of several series, resample by resample; undefined where any of them is, and without any.
    ///
    /// # Errors
    /// Unequal numbers of resamples.
    pub fn mean(series: &[&Self]) -> Result<Self, MetricError> {
        let Some(first) = series.first() else {
            return Ok(Self {
                point: None,
                draws: Vec::new(),
            });
        };
        let mut draws = vec![0.0; first.draws.len()];
        let mut point = Some(0.0);
        for one in series {
            same_count(one, first)?;
            point = point.zip(one.point).map(|(sum, value)| sum + value);
            for (sum, draw) in draws.iter_mut().zip(&one.draws) {
                *sum += draw;
            }
        }
        let n = series.len() as f64;
        for sum in &mut draws {
            *sum /= n;
        }
        Ok(Self {
            point: point.map(|sum| sum / n),
            draws,
        })
    }

    /// Value, interval and p-value; none where the number is undefined on all rows.
    pub fn estimate(&self) -> Option<SeriesEstimate> {
        let value = self.point?;
        let mut valid: Vec<f64> = self.draws().flatten().collect();
        Some(SeriesEstimate {
            value,
            p: two_sided_p(&valid),
            valid: valid.len() as u32,
            resamples: self.count(),
            interval: Interval::of(&mut valid),
        })
    }
}

/// Whether two series have as many resamples.
pub(crate) fn same_count(found: &Series, expected: &Series) -> Result<(), MetricError> {
    let (found, expected) = (found.count(), expected.count());
    if found == expected {
        Ok(())
    } else {
        Err(MetricError::ResampleCount { expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(point: f64, draws: &[f64]) -> Series {
        Series::new(Some(point), draws.iter().map(|draw| Some(*draw)))
    }

    #[test]
    fn sums_are_made_resample_by_resample() {
        let (a, b) = (series(1.0, &[1.0, 2.0, 3.0]), series(3.0, &[5.0, 5.0, 5.0]));
        assert_eq!(a.minus(&b), Ok(series(-2.0, &[-4.0, -3.0, -2.0])));
        assert_eq!(Series::mean(&[&a, &b]), Ok(series(2.0, &[3.0, 3.5, 4.0])));
        let estimate = a.estimate().unwrap();
        assert_eq!(
            (estimate.value, estimate.valid, estimate.p),
            (1.0, 3, Some(0.5))
        );
    }

    #[test]
    fn what_is_undefined_stays_so() {
        let a = Series::new(Some(1.0), [Some(1.0), None]);
        let b = Series::new(None, [Some(1.0), Some(1.0)]);
        let mean = Series::mean(&[&a, &b]).unwrap();
        assert_eq!(mean.point(), None);
        assert_eq!(mean.draws().collect::<Vec<_>>(), [Some(1.0), None]);
        assert_eq!(mean.estimate(), None);
        assert_eq!(a.estimate().map(|estimate| estimate.valid), Some(1));
        assert_eq!(Series::mean(&[]).unwrap().point(), None);
        assert_eq!(
            a.minus(&series(0.0, &[])).unwrap_err().to_string(),
            "Series cannot be combined: expected 0 resamples, found 2"
        );
    }
}
