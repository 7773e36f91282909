//! Values of resamples, and the plain way to get them. It must not know what the values are for.

use crate::bootstrap::{Plan, resample_with_groups};
use crate::error::MetricError;
use crate::registry::MetricSpec;
use crate::scored::Scored;
use crate::series::Series;

/// Metric values of every resample, for every arm, on the same draws.
#[derive(Debug, Clone)]
pub struct Resamples {
    count: u32,
    arms: usize,
    metrics: usize,
    /// `values[(arm * metrics + metric) * count + resample]`, NaN where undefined.
    values: Vec<f64>,
}

/// Equal to the last bit. NaN, which marks undefined values inside, equals itself.
impl PartialEq for Resamples {
    fn eq(&self, other: &Self) -> bool {
        let shape = |it: &Self| (it.count, it.arms, it.metrics);
        let bits = |it: &Self| {
            it.values
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        shape(self) == shape(other) && bits(self) == bits(other)
    }
}

impl Resamples {
    /// From each resample's values, arm by arm.
    pub(crate) fn new<'a>(
        count: u32,
        arms: usize,
        metrics: usize,
        rows: impl Iterator<Item = &'a [f64]>,
    ) -> Self {
        let mut values = vec![f64::NAN; count as usize * arms * metrics];
        for (resample, row) in rows.enumerate() {
            for (column, value) in row.iter().enumerate() {
                values[column * count as usize + resample] = *value;
            }
        }
        Self {
            count,
            arms,
            metrics,
            values,
        }
    }

    /// Number of resamples, B.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Values of one metric on one arm, by resample; none where the resample leaves it undefined.
    pub fn of(&self, arm: usize, metric: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        let column = self.column(arm, metric).iter();
        column.map(|value| (!value.is_nan()).then_some(*value))
    }

    fn column(&self, arm: usize, metric: usize) -> &[f64] {
        assert!(
            arm < self.arms && metric < self.metrics,
            "no arm {arm}, metric {metric}"
        );
        let count = self.count as usize;
        &self.values[(arm * self.metrics + metric) * count..][..count]
    }

    /// Valid values of one metric on one arm.
    pub fn valid(&self, arm: usize, metric: usize) -> Vec<f64> {
        self.of(arm, metric).flatten().collect()
    }

    /// Differences `other - base` of one metric, over the resamples where both are defined.
    pub fn deltas(&self, base: usize, other: usize, metric: usize) -> Vec<f64> {
        let pairs = self.of(base, metric).zip(self.of(other, metric));
        pairs
            .filter_map(|(base, other)| Some(other? - base?))
            .collect()
    }

    /// One metric of one arm with its value on all rows, for rankings and summaries over several test sets.
    pub fn series(&self, arm: usize, metric: usize, point: Option<f64>) -> Series {
        Series::new(point, self.of(arm, metric))
    }
}

/// Evaluates `specs` on B resamples of `arms`, which hold the same images in the same order. For rankings of many
/// models and for summaries over comparisons; [`crate::bootstrap`] and [`crate::paired_bootstrap`] are its plain uses,
/// and [`resample_with_groups`] adds subgroups. Memory: B values for each arm and metric, and O(n) for each thread.
///
/// # Errors
/// No rows or resamples; arms or patients of unequal length; labels that differ between arms.
pub fn resample(
    arms: &[&Scored<'_>],
    specs: &[&MetricSpec],
    plan: &Plan<'_>,
) -> Result<Resamples, MetricError> {
    Ok(resample_with_groups(arms, specs, &[], &[], plan)?.whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::{Arrangement, Units, arrange};
    use crate::random::Stream;
    use crate::registry::metrics;

    /// The rows of one drawn resample, written out one by one.
    fn written_out(
        arrangement: &Arrangement,
        arm: &Scored<'_>,
        mut stream: Stream,
    ) -> (Vec<bool>, Vec<bool>, Vec<f64>) {
        let mut rows = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..arrangement.count {
            let unit = stream.below(arrangement.count as u64) as u32;
            for row in (0..arm.len()).filter(|&row| arrangement.unit[row] == unit) {
                rows.0.push(arm.labels()[row]);
                rows.1.push(arm.predicted()[row]);
                rows.2.push(arm.scores().unwrap()[row]);
            }
        }
        rows
    }

    #[test]
    fn weights_give_the_bits_that_rows_written_out_give() {
        let labels: Vec<bool> = (0..40).map(|i| i % 3 == 0).collect();
        let predicted: Vec<bool> = (0..40).map(|i| i % 5 < 2).collect();
        let scores = [17, 23].map(|step| {
            (0..40)
                .map(|i| f64::from(i * step % 29) / 28.0)
                .collect::<Vec<_>>()
        });
        let patients: Vec<u32> = (0..40).map(|i| i * i % 11).collect();
        let arms = scores
            .each_ref()
            .map(|scores| Scored::new(&labels, &predicted, scores).unwrap());
        let arms = arms.each_ref();
        let numbered = Units::Numbered {
            count: 13,
            of_row: &patients,
        };
        for units in [Units::Images, Units::Patients(&patients), numbered] {
            let plan = Plan {
                resamples: 50,
                seed: 5,
                units,
            };
            let resamples = resample(&arms, &metrics(), &plan).unwrap();
            let arrangement = arrange(&arms, &[], units).unwrap();
            for (index, arm) in arms.iter().enumerate() {
                for draw in 0..50 {
                    let (labels, predicted, scores) =
                        written_out(&arrangement, arm, Stream::new(5, draw));
                    let rows = Scored::new(&labels, &predicted, &scores).unwrap();
                    for (metric, spec) in metrics().into_iter().enumerate() {
                        let ours = resamples.of(index, metric).nth(draw as usize).unwrap();
                        assert_eq!(
                            ours,
                            spec.compute(&rows).value(),
                            "{}, draw {draw}",
                            spec.id
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_single_patient_is_drawn_whole() {
        let (labels, scores) = ([true, false, true], [0.9, 0.6, 0.2]);
        let arm = Scored::new(&labels, &labels, &scores).unwrap();
        let plan = Plan {
            resamples: 5,
            seed: 1,
            units: Units::Patients(&[7, 7, 7]),
        };
        let resamples = resample(&[&arm], &metrics(), &plan).unwrap();
        for (metric, spec) in metrics().into_iter().enumerate() {
            let whole = spec.compute(&arm).value().unwrap();
            assert_eq!(resamples.valid(0, metric), [whole; 5], "{}", spec.id);
        }
        assert_eq!(resamples.count(), 5);
    }

    #[test]
    fn impossible_plans_are_errors() {
        let labels = [true, false];
        let scores = [0.9, 0.1];
        let arm = Scored::new(&labels, &labels, &scores).unwrap();
        let flipped = Scored::new(&[true, true], &labels, &scores).unwrap();
        let none = Scored::new(&[], &[], &[]).unwrap();
        let longer = Scored::without_scores(&[true; 3], &[true; 3]).unwrap();
        let plan = |resamples, units| Plan {
            resamples,
            seed: 1,
            units,
        };
        let error = |arms: &[&Scored<'_>], plan| resample(arms, &metrics(), &plan).unwrap_err();
        assert_eq!(
            error(&[&arm], plan(0, Units::Images)),
            MetricError::NoResamples
        );
        assert_eq!(error(&[&none], plan(1, Units::Images)), MetricError::NoRows);
        assert_eq!(error(&[], plan(1, Units::Images)), MetricError::NoRows);
        assert_eq!(
            error(&[&arm, &flipped], plan(1, Units::Images)).to_string(),
            "Label in row 1 differs between arms: expected false, found true"
        );
        assert_eq!(
            error(&[&arm, &longer], plan(1, Units::Images)),
            MetricError::Length {
                column: "arm",
                expected: 2,
                found: 3
            }
        );
        assert_eq!(
            error(&[&arm], plan(1, Units::Patients(&[1]))),
            MetricError::Length {
                column: "patients",
                expected: 2,
                found: 1
            }
        );
    }
}
