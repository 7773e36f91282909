//! Drawing resamples and evaluating metrics on them. Owns the loop over resamples and its threads. It must not know
//! what the values are for.

use rayon::prelude::*;

use crate::bootstrap::Plan;
use crate::bootstrap::layout::{Arm, Layout};
use crate::error::MetricError;
use crate::random::Stream;
use crate::registry::MetricSpec;
use crate::scored::Scored;
use crate::tally::{Confusion, Tally};

/// Metric values of every resample, for every arm, on the same draws.
#[derive(Debug, Clone, PartialEq)]
pub struct Resamples {
    count: u32,
    arms: usize,
    metrics: usize,
    /// `values[(resample * arms + arm) * metrics + metric]`.
    values: Vec<Option<f64>>,
}

impl Resamples {
    /// Number of resamples, B.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Values of one metric on one arm, by resample; none where the resample leaves it undefined.
    pub fn of(&self, arm: usize, metric: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        assert!(
            arm < self.arms && metric < self.metrics,
            "no arm {arm}, metric {metric}"
        );
        let width = self.arms * self.metrics;
        self.values
            .iter()
            .skip(arm * self.metrics + metric)
            .step_by(width)
            .copied()
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
}

/// Evaluates `specs` on B resamples of `arms`, which hold the same images in the same order. For rankings of many
/// models and for summaries over comparisons; [`crate::bootstrap`] and [`crate::paired_bootstrap`] are its plain uses.
/// Memory: B values for each arm and metric, and O(n) for each thread.
///
/// # Errors
/// No rows or resamples; arms or patients of unequal length; labels that differ between arms.
pub fn resample(
    arms: &[&Scored<'_>],
    specs: &[&MetricSpec],
    plan: &Plan<'_>,
) -> Result<Resamples, MetricError> {
    if plan.resamples == 0 {
        return Err(MetricError::NoResamples);
    }
    let layout = Layout::new(arms, plan.units)?;
    let width = arms.len() * specs.len();
    let mut values = vec![None; width * plan.resamples as usize];
    if width > 0 {
        values.par_chunks_mut(width).enumerate().for_each_init(
            || Scratch::new(&layout),
            |scratch, (resample, values)| {
                scratch.draw(&layout, Stream::new(plan.seed, resample as u64));
                for (tally, values) in scratch.tallies.iter().zip(values.chunks_mut(specs.len())) {
                    for (spec, value) in specs.iter().zip(values) {
                        *value = (spec.from_tally)(tally).value();
                    }
                }
            },
        );
    }
    Ok(Resamples {
        count: plan.resamples,
        arms: arms.len(),
        metrics: specs.len(),
        values,
    })
}

/// One thread's memory.
struct Scratch {
    /// How often each unit was drawn.
    weights: Vec<u32>,
    tallies: Vec<Tally>,
}

impl Scratch {
    fn new(layout: &Layout) -> Self {
        let tallies = layout.arms.iter().map(|arm| arm.tally.clone()).collect();
        Self {
            weights: vec![0; layout.units],
            tallies,
        }
    }

    fn draw(&mut self, layout: &Layout, mut stream: Stream) {
        let units = layout.units as u64;
        self.weights.fill(0);
        for _ in 0..units {
            self.weights[stream.below(units) as usize] += 1;
        }
        for (arm, tally) in layout.arms.iter().zip(&mut self.tallies) {
            weigh(arm, layout.offsets.as_deref(), &self.weights, tally);
        }
    }
}

/// Fills `tally` with the rows of `arm`, each counted as often as its unit was drawn.
fn weigh(arm: &Arm, offsets: Option<&[u32]>, weights: &[u32], tally: &mut Tally) {
    let mut groups = tally.groups.as_deref_mut();
    for group in groups.iter_mut().flat_map(|groups| groups.iter_mut()) {
        (group.positives, group.negatives) = (0, 0);
    }
    let mut cells = [0_u64; 4];
    let mut add = |row: usize, weight: u32| {
        let (cell, weight) = (arm.cell[row], u64::from(weight));
        cells[usize::from(cell & 3)] += weight;
        if let Some(groups) = &mut groups {
            let group = &mut groups[arm.group[row] as usize];
            *(if cell >= 2 {
                &mut group.positives
            } else {
                &mut group.negatives
            }) += weight;
        }
    };
    let drawn = weights
        .iter()
        .enumerate()
        .filter(|&(_, &weight)| weight > 0);
    match offsets {
        None => drawn.for_each(|(row, &weight)| add(row, weight)),
        Some(offsets) => drawn.for_each(|(unit, &weight)| {
            (offsets[unit]..offsets[unit + 1]).for_each(|row| add(row as usize, weight));
        }),
    }
    let [true_negative, false_positive, false_negative, true_positive] = cells;
    tally.confusion = Confusion {
        true_positive,
        false_positive,
        false_negative,
        true_negative,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Units;
    use crate::registry::metrics;

    /// The rows of one drawn resample, written out one by one.
    fn written_out(
        layout: &Layout,
        arm: &Arm,
        mut stream: Stream,
    ) -> (Vec<bool>, Vec<bool>, Vec<f64>) {
        let groups = arm.tally.scored_groups().unwrap();
        let mut rows = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..layout.units {
            let unit = stream.below(layout.units as u64) as usize;
            let range = match &layout.offsets {
                Some(offsets) => offsets[unit] as usize..offsets[unit + 1] as usize,
                None => unit..unit + 1,
            };
            for row in range {
                rows.0.push(arm.cell[row] >= 2);
                rows.1.push(arm.cell[row] % 2 == 1);
                rows.2.push(groups[arm.group[row] as usize].score);
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
        for units in [Units::Images, Units::Patients(&patients)] {
            let plan = Plan {
                resamples: 50,
                seed: 5,
                units,
            };
            let resamples = resample(&arms, &metrics(), &plan).unwrap();
            let layout = Layout::new(&arms, units).unwrap();
            for (index, arm) in layout.arms.iter().enumerate() {
                for draw in 0..50 {
                    let (labels, predicted, scores) =
                        written_out(&layout, arm, Stream::new(5, draw));
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
