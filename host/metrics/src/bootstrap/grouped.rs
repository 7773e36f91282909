//! Whole rows and the two groups of several groupings, on the same draws: the drawing is paid once, and a group's value
//! goes with the whole's. Owns the loop over resamples and its threads. It must not know what the values are for.

use rayon::prelude::*;

use crate::bootstrap::layout::{Contents, arrange, same_length};
use crate::bootstrap::{Plan, Resamples, View};
use crate::error::MetricError;
use crate::random::Stream;
use crate::registry::{Input, MetricSpec};
use crate::scored::Scored;
use crate::tally::Tally;

/// Resampled values of the whole rows and of each grouping's two groups, on the same draws.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupedResamples {
    /// The whole rows, by arm and by the first list of metrics. The same bits that [`crate::resample`] gives.
    pub whole: Resamples,
    /// For each grouping its group 0 and its group 1, by arm and by the second list of metrics.
    pub groups: Vec<[Resamples; 2]>,
}

impl GroupedResamples {
    /// Signed gaps, group 1 minus group 0, over the resamples where both are defined. `metric` counts in the second
    /// list of metrics.
    pub fn signed_gaps(&self, grouping: usize, arm: usize, metric: usize) -> Vec<f64> {
        let [zero, one] = &self.groups[grouping];
        let pairs = zero.of(arm, metric).zip(one.of(arm, metric));
        pairs.filter_map(|(zero, one)| Some(one? - zero?)).collect()
    }
}

/// Evaluates `specs` on B resamples of `arms` and `group_specs` on both groups of every grouping in them. All arms and
/// groupings hold the same images in the same order. A row whose group is `None` is drawn like any other, counts in the
/// whole, and belongs to neither group. Memory: B values for each arm and metric, and O(n) for each thread.
///
/// # Errors
/// No rows or resamples; arms, groupings or units of unequal length; labels that differ between arms.
pub fn resample_with_groups(
    arms: &[&Scored<'_>],
    specs: &[&MetricSpec],
    groupings: &[&[Option<bool>]],
    group_specs: &[&MetricSpec],
    plan: &Plan<'_>,
) -> Result<GroupedResamples, MetricError> {
    if plan.resamples == 0 {
        return Err(MetricError::NoResamples);
    }
    let rows = arms.first().map_or(0, |arm| arm.len());
    for grouping in groupings {
        same_length("groups", rows, grouping.len())?;
    }
    let columns: Vec<Vec<u32>> = match rows {
        0 => Vec::new(),
        _ => groupings
            .iter()
            .map(|groups| oriented(arms, groups))
            .collect(),
    };
    let arrangement = arrange(arms, &columns, plan.units)?;
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut width = 0;
    let mut add = |specs, keep: &dyn Fn(usize) -> bool| {
        let scores = needs_scores(specs);
        let views = arms
            .iter()
            .map(|arm| View::new(arm, &arrangement.unit, keep, scores))
            .collect();
        parts.push(Part {
            views,
            specs,
            start: width,
        });
        width += arms.len() * specs.len();
    };
    add(specs, &|_| true);
    for grouping in groupings {
        for group in [false, true] {
            add(group_specs, &|row| grouping[row] == Some(group));
        }
    }
    let values = draw(&parts, width, arrangement.count, plan);
    let mut resamples = parts
        .iter()
        .map(|part| part.collect(&values, width, arms.len(), plan.resamples));
    let whole = resamples.next().expect("the whole comes first");
    let mut groups = Vec::with_capacity(groupings.len());
    while let (Some(zero), Some(one)) = (resamples.next(), resamples.next()) {
        groups.push([zero, one]);
    }
    Ok(GroupedResamples { whole, groups })
}

/// Whether any of these metrics looks at scores.
pub(crate) fn needs_scores(specs: &[&MetricSpec]) -> bool {
    specs.iter().any(|spec| spec.input == Input::Scores)
}

/// The groups as numbers for breaking ties: 0 unknown, and 1 and 2 so that exchanging the two groups changes nothing:
/// the group whose rows come first in the order of content is 1.
pub(crate) fn oriented(arms: &[&Scored<'_>], groups: &[Option<bool>]) -> Vec<u32> {
    let contents = Contents::new(arms, &[]);
    let sorted = |group: bool| {
        let rows = (0..groups.len()).filter(|&row| groups[row] == Some(group));
        let mut rows: Vec<&[u64]> = rows.map(|row| contents.seen(row as u32)).collect();
        rows.sort_unstable();
        rows
    };
    let first = sorted(true) < sorted(false);
    groups
        .iter()
        .map(|group| group.map_or(0, |group| if group == first { 1 } else { 2 }))
        .collect()
}

/// Rows that are tallied together, one view for each arm.
struct Part<'a> {
    views: Vec<View>,
    specs: &'a [&'a MetricSpec],
    /// Where this part's values start within a resample's.
    start: usize,
}

impl Part<'_> {
    fn collect(&self, values: &[f64], width: usize, arms: usize, count: u32) -> Resamples {
        let columns = arms * self.specs.len();
        let rows =
            (0..count as usize).map(|resample| &values[resample * width + self.start..][..columns]);
        Resamples::new(count, arms, self.specs.len(), rows)
    }
}

/// Values of all resamples, `width` for each; NaN where undefined.
fn draw(parts: &[Part<'_>], width: usize, units: usize, plan: &Plan<'_>) -> Vec<f64> {
    let mut values = vec![f64::NAN; width * plan.resamples as usize];
    if width == 0 {
        return values;
    }
    let scratch = || {
        let tallies = parts
            .iter()
            .flat_map(|part| &part.views)
            .map(|view| view.tally.clone());
        (vec![0_u32; units], tallies.collect::<Vec<Tally>>())
    };
    values.par_chunks_mut(width).enumerate().for_each_init(
        scratch,
        |(weights, tallies), (resample, values)| {
            weights.fill(0);
            let mut stream = Stream::new(plan.seed, resample as u64);
            for _ in 0..units {
                weights[stream.below(units as u64) as usize] += 1;
            }
            let (mut tallies, mut values) = (tallies.iter_mut(), values.iter_mut());
            for part in parts {
                for view in &part.views {
                    let tally = tallies.next().expect("one tally for each view");
                    view.weigh(weights, tally);
                    for spec in part.specs {
                        let value = values.next().expect("one place for each value");
                        *value = (spec.from_tally)(tally).value().unwrap_or(f64::NAN);
                    }
                }
            }
        },
    );
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Units;
    use crate::registry::{Role, metrics, metrics_of};

    #[test]
    fn a_groups_values_are_those_of_its_rows_written_out() {
        let labels: Vec<bool> = (0..40).map(|i| i % 3 == 0).collect();
        let predicted: Vec<bool> = (0..40).map(|i| i % 5 < 2).collect();
        let scores: Vec<f64> = (0..40).map(|i| f64::from(i * 17 % 29) / 28.0).collect();
        let patients: Vec<u32> = (0..40).map(|i| i * i % 11).collect();
        let groups: Vec<Option<bool>> = (0..40).map(|i| (i % 7 > 0).then_some(i % 4 < 2)).collect();
        let arm = Scored::new(&labels, &predicted, &scores).unwrap();
        let mut specs = metrics();
        specs.extend(metrics_of(Role::Rate));
        for units in [Units::Images, Units::Patients(&patients)] {
            let plan = Plan {
                resamples: 40,
                seed: 5,
                units,
            };
            let grouped = resample_with_groups(&[&arm], &[], &[&groups], &specs, &plan).unwrap();
            let columns = [oriented(&[&arm], &groups)];
            let arrangement = arrange(&[&arm], &columns, units).unwrap();
            for draw in 0..40 {
                let mut stream = Stream::new(5, draw);
                let (mut y, mut h, mut s) = ([vec![], vec![]], [vec![], vec![]], [vec![], vec![]]);
                for _ in 0..arrangement.count {
                    let unit = stream.below(arrangement.count as u64) as u32;
                    for row in (0..40).filter(|&row| arrangement.unit[row] == unit) {
                        if let Some(group) = groups[row].map(usize::from) {
                            y[group].push(labels[row]);
                            h[group].push(predicted[row]);
                            s[group].push(scores[row]);
                        }
                    }
                }
                for group in [0, 1] {
                    let rows = Scored::new(&y[group], &h[group], &s[group]).unwrap();
                    for (metric, spec) in specs.iter().enumerate() {
                        let ours = grouped.groups[0][group].of(0, metric).nth(draw as usize);
                        assert_eq!(ours, Some(spec.compute(&rows).value()), "{}", spec.id);
                    }
                }
            }
        }
    }

    #[test]
    fn counts_that_could_overflow_are_refused() {
        let labels = vec![true; 70_000];
        let arm = Scored::without_scores(&labels, &labels).unwrap();
        let units = Units::Numbered {
            count: 70_000,
            of_row: &vec![0; 70_000],
        };
        let plan = Plan {
            resamples: 1,
            seed: 1,
            units,
        };
        let error = resample_with_groups(&[&arm], &metrics(), &[], &[], &plan).unwrap_err();
        assert!(matches!(
            error,
            MetricError::TooManyRows {
                found: 4_900_000_000,
                ..
            }
        ));
    }
}
