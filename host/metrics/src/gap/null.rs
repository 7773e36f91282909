//! Absolute gaps under shuffled group labels: what to expect when the groups do not differ. Owns the shuffling. It must
//! not know any metric but equalized odds.

use rayon::prelude::*;
use serde::Serialize;

use crate::bootstrap::{Arrangement, Plan, Units, View, arrange, quantile};
use crate::error::MetricError;
use crate::gap::{EqualizedOdds, Known, tally_of};
use crate::random::Stream;
use crate::registry::{Input, MetricSpec};
use crate::scored::Scored;
use crate::tally::Tally;

/// Two gaps nearer than this are the same one, computed from other counts.
const ROUNDING: f64 = 1e-12;
/// Keeps shuffles apart from the resamples of the same seed.
const SHUFFLE: u64 = 0x7368_7566_666c_6500;

/// What carries a group label through the shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shuffled {
    /// Each row: the plan draws images, or some patient has rows in both groups.
    Images,
    /// Each patient with all its rows: every patient lies in one group.
    Patients,
}

/// An absolute gap's distribution under shuffled labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Null {
    /// Its mean.
    pub mean: f64,
    /// Its 95th percentile, with linear interpolation.
    pub p95: f64,
    /// (1 + #[null >= observed]) / (V + 1).
    pub p: f64,
    /// V, the permutations on which the gap is defined.
    pub valid: u32,
}

/// Nulls of all gaps, from the same permutations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nulls {
    /// What was shuffled.
    pub shuffled: Shuffled,
    /// P, the permutations drawn.
    pub permutations: u32,
    /// One for each metric, in the order asked for; none where the observed gap is missing or V is 0.
    pub gaps: Vec<Option<Null>>,
    /// Of [`EqualizedOdds::as_published`].
    pub equalized_odds_as_published: Option<Null>,
    /// Of [`EqualizedOdds::corrected`].
    pub equalized_odds_corrected: Option<Null>,
}

/// Shuffles the group labels of the rows of known group `permutations` times; of `plan` the units and the seed are used.
/// Patients keep their label whole where every patient lies in one group. Group sizes, in what is shuffled, stay.
///
/// # Errors
/// No row of known group; no permutations; columns of unequal length.
pub fn gap_nulls(
    rows: &Scored<'_>,
    groups: &[Option<bool>],
    specs: &[&MetricSpec],
    plan: &Plan<'_>,
    permutations: u32,
) -> Result<Nulls, MetricError> {
    if permutations == 0 {
        return Err(MetricError::NoPermutations);
    }
    let known = Known::new(rows, groups, plan)?;
    let (rows, units) = (known.rows.scored()?, known.plan(plan).units);
    let groups: Vec<bool> = known.groups.iter().flatten().copied().collect();
    let (labels, shuffled) = carriers(&rows, &groups, units)?;
    let scores = specs.iter().any(|spec| spec.input == Input::Scores);
    let view = View::new(&rows, &labels.unit, |_| true, scores);
    let width = specs.len() + 2;
    let mut values = vec![f64::NAN; width * permutations as usize];
    let scratch = || {
        let order: Vec<u32> = (0..labels.weights as u32).collect();
        (
            order,
            vec![0; labels.weights],
            view.tally.clone(),
            view.tally.clone(),
        )
    };
    values.par_chunks_mut(width).enumerate().for_each_init(
        scratch,
        |(order, weights, one, rest), (permutation, values)| {
            let mut stream = Stream::new(plan.seed ^ SHUFFLE, permutation as u64);
            labels.shuffle(&mut stream, order, weights);
            view.weigh(weights, one);
            rest.fill_rest(&view.tally, one);
            write_gaps(one, rest, specs, values);
        },
    );
    let tallies = [false, true].map(|group| tally_of(&rows, |row| groups[row] == group));
    let mut observed = vec![f64::NAN; width];
    write_gaps(&tallies[0], &tallies[1], specs, &mut observed);
    let null = |column: usize| {
        let drawn = values.iter().skip(column).step_by(width).copied();
        null(
            observed[column],
            drawn.filter(|gap| !gap.is_nan()).collect(),
        )
    };
    Ok(Nulls {
        shuffled,
        permutations,
        gaps: (0..specs.len()).map(null).collect(),
        equalized_odds_as_published: null(specs.len()),
        equalized_odds_corrected: null(specs.len() + 1),
    })
}

/// Absolute gaps, then equalized odds in both conventions; NaN where missing.
fn write_gaps(zero: &Tally, one: &Tally, specs: &[&MetricSpec], gaps: &mut [f64]) {
    for (gap, spec) in gaps.iter_mut().zip(specs) {
        let values = [zero, one].map(|tally| (spec.from_tally)(tally).value().unwrap_or(f64::NAN));
        *gap = (values[1] - values[0]).abs();
    }
    let odds = EqualizedOdds::between(zero.confusion(), one.confusion());
    gaps[specs.len()] = odds.as_published.unwrap_or(f64::NAN);
    gaps[specs.len() + 1] = odds.corrected.unwrap_or(f64::NAN);
}

fn null(observed: f64, mut drawn: Vec<f64>) -> Option<Null> {
    if observed.is_nan() || drawn.is_empty() {
        return None;
    }
    let valid = drawn.len();
    let reached = drawn
        .iter()
        .filter(|&&gap| gap >= observed - ROUNDING)
        .count();
    let mean = drawn.iter().sum::<f64>() / valid as f64;
    Some(Null {
        mean,
        p95: quantile(&mut drawn, 0.95)?,
        p: (1 + reached) as f64 / (valid + 1) as f64,
        valid: valid as u32,
    })
}

/// The carriers of labels: each row's unit, which units may be chosen, and how many of them make the smaller group.
struct Carriers {
    unit: Vec<u32>,
    /// Length of a vector of weights.
    weights: usize,
    /// Units with rows.
    present: Vec<u32>,
    chosen: usize,
}

impl Carriers {
    /// Gives weight 1 to as many units as the smaller group has, each choice equally likely. The smaller one, so that
    /// exchanging the groups changes nothing.
    fn shuffle(&self, stream: &mut Stream, order: &mut [u32], weights: &mut [u32]) {
        let order = &mut order[..self.present.len()];
        order.copy_from_slice(&self.present);
        weights.fill(0);
        for place in 0..self.chosen {
            let other = place + stream.below((order.len() - place) as u64) as usize;
            order.swap(place, other);
            weights[order[place] as usize] = 1;
        }
    }
}

fn carriers(
    rows: &Scored<'_>,
    groups: &[bool],
    units: Units<'_>,
) -> Result<(Carriers, Shuffled), MetricError> {
    let by_unit = arrange(&[rows], &[], units)?;
    let whole = group_of_units(&by_unit, groups).filter(|_| !matches!(units, Units::Images));
    let (arrangement, of_units, shuffled) = if let Some(of_units) = whole {
        (by_unit, of_units, Shuffled::Patients)
    } else {
        let by_image = arrange(&[rows], &[], Units::Images)?;
        let of_units = group_of_units(&by_image, groups).expect("one row has one group");
        (by_image, of_units, Shuffled::Images)
    };
    let group_one = of_units
        .iter()
        .filter(|group| **group == Some(true))
        .count();
    let present: Vec<u32> = (0..arrangement.count as u32)
        .filter(|&unit| of_units[unit as usize].is_some())
        .collect();
    let carriers = Carriers {
        unit: arrangement.unit,
        weights: arrangement.count,
        chosen: group_one.min(present.len() - group_one),
        present,
    };
    Ok((carriers, shuffled))
}

/// Each unit's group, none for units without rows; none at all if a unit has rows in both.
fn group_of_units(arrangement: &Arrangement, groups: &[bool]) -> Option<Vec<Option<bool>>> {
    let mut of_units = vec![None; arrangement.count];
    for (&unit, &group) in arrangement.unit.iter().zip(groups) {
        let of_unit = &mut of_units[unit as usize];
        if of_unit.is_some_and(|of_unit| of_unit != group) {
            return None;
        }
        *of_unit = Some(group);
    }
    Some(of_units)
}
