//! Gaps standardised by strata, such as the grade of a disease: how much of a gap remains when both groups are given the
//! same mix of strata. Owns direct standardisation. It must not know what the strata are.
//!
//! Direct standardisation: a group's rate is the mean of its rates within strata, weighted by how many rows of that kind
//! both groups together have in each stratum, over the strata in which both groups have any (for TPR, positive rows; for
//! FPR and specificity, negative ones). Only shares of rows whose denominator does not depend on decisions can be
//! standardised: accuracy, the positive rate, TPR, FPR and specificity ([`MetricSpec::share`]). Precision and F1 have
//! denominators made of decisions; AUROC and AUPRC compare rows across strata; calibration errors compare bins.

use rayon::prelude::*;
use serde::Serialize;

use crate::bootstrap::{Interval, Plan, arrange, oriented, same_length, two_sided_p};
use crate::error::MetricError;
use crate::gap::{Rows, kept};
use crate::random::Stream;
use crate::registry::{MetricSpec, Share};
use crate::scored::Scored;
use crate::tally::Confusion;

/// A gap after standardisation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StandardisedGap {
    /// Id of the metric.
    pub metric: &'static str,
    /// The standardised rates of group 0 and group 1; none without a stratum in which both groups have rows.
    pub values: Option<[f64; 2]>,
    /// Group 1 minus group 0.
    pub signed: Option<f64>,
    /// Its size.
    pub absolute: Option<f64>,
    /// Interval of the signed gap over the valid resamples, each standardised anew.
    pub interval: Option<Interval>,
    /// Two-sided p-value of the signed gap by the bootstrap, not corrected for other comparisons.
    pub p: Option<f64>,
    /// Strata in which both groups have rows of the metric's denominator.
    pub strata: u32,
    /// Rows of the denominator in those strata, as a share of all such rows of known group, whether their stratum is
    /// known or not; none without such rows.
    pub covered: Option<f64>,
    /// V, the resamples on which the gap is defined.
    pub valid: u32,
    /// B, the resamples drawn.
    pub resamples: u32,
}

/// Standardised gaps of `specs`, in their order. `strata[i]` is row i's stratum, any number; rows of unknown group or
/// unknown stratum are left out before anything is drawn.
///
/// # Errors
/// A metric that is no share of rows; no row of known group and stratum; no resamples; columns of unequal length.
pub fn standardised_gaps(
    rows: &Scored<'_>,
    groups: &[Option<bool>],
    strata: &[Option<u32>],
    specs: &[&MetricSpec],
    plan: &Plan<'_>,
) -> Result<Vec<StandardisedGap>, MetricError> {
    if plan.resamples == 0 {
        return Err(MetricError::NoResamples);
    }
    same_length("groups", rows.len(), groups.len())?;
    same_length("strata", rows.len(), strata.len())?;
    let share = |spec: &&MetricSpec| spec.share.ok_or(MetricError::NotAShare { metric: spec.id });
    let shares: Vec<Share> = specs.iter().map(share).collect::<Result<_, _>>()?;
    let in_group: Vec<bool> = groups.iter().map(Option::is_some).collect();
    let all = Rows::keep(rows, &in_group);
    let keep: Vec<bool> = groups
        .iter()
        .zip(strata)
        .map(|(group, stratum)| group.is_some() && stratum.is_some())
        .collect();
    let table = Table::new(rows, groups, strata, &keep, plan)?;
    let observed = table.tabulate(&vec![1; table.units]);
    let everyone = confusion_of(&all.labels, &all.predicted);
    let mut values = vec![f64::NAN; shares.len() * plan.resamples as usize];
    if !shares.is_empty() {
        values
            .par_chunks_mut(shares.len())
            .enumerate()
            .for_each_init(
                || vec![0; table.units],
                |weights, (resample, values)| {
                    weights.fill(0);
                    let mut stream = Stream::new(plan.seed, resample as u64);
                    for _ in 0..table.units {
                        weights[stream.below(table.units as u64) as usize] += 1;
                    }
                    let strata = table.tabulate(weights);
                    for (value, share) in values.iter_mut().zip(&shares) {
                        let rates = standardise(&strata, *share).rates;
                        *value = rates.map_or(f64::NAN, |[zero, one]| one - zero);
                    }
                },
            );
    }
    let gap = |(column, (spec, share)): (usize, (&&MetricSpec, &Share))| {
        let standardised = standardise(&observed, *share);
        let signed = standardised.rates.map(|[zero, one]| one - zero);
        let drawn = values.iter().skip(column).step_by(shares.len()).copied();
        let mut drawn: Vec<f64> = drawn.filter(|gap| !gap.is_nan()).collect();
        let of_all = share(&everyone).1;
        StandardisedGap {
            metric: spec.id,
            values: standardised.rates,
            signed,
            absolute: signed.map(f64::abs),
            p: signed.and_then(|_| two_sided_p(&drawn)),
            strata: standardised.strata,
            covered: (of_all > 0).then(|| standardised.rows as f64 / of_all as f64),
            valid: drawn.len() as u32,
            interval: signed.and_then(|_| Interval::of(&mut drawn)),
            resamples: plan.resamples,
        }
    };
    Ok(specs.iter().zip(&shares).enumerate().map(gap).collect())
}

fn confusion_of(labels: &[bool], predicted: &[bool]) -> Confusion {
    let mut counts = Confusion::default();
    labels
        .iter()
        .zip(predicted)
        .for_each(|(&label, &decision)| counts.add(label, decision, 1));
    counts
}

/// Rows as stratum, group and confusion cell.
struct Table {
    units: usize,
    unit: Vec<u32>,
    /// stratum * 8 + group * 4 + label * 2 + decision, strata numbered from 0 in ascending order.
    cell: Vec<u32>,
    strata: usize,
}

impl Table {
    fn new(
        rows: &Scored<'_>,
        groups: &[Option<bool>],
        strata: &[Option<u32>],
        keep: &[bool],
        plan: &Plan<'_>,
    ) -> Result<Self, MetricError> {
        let kept_rows = Rows::keep(rows, keep);
        let scored = kept_rows.scored()?;
        let (groups, strata) = (kept(groups, keep), kept(strata, keep));
        let strata: Vec<u32> = strata.into_iter().flatten().collect();
        let mut names = strata.clone();
        names.sort_unstable();
        names.dedup();
        let place = |stratum: &u32| {
            names
                .binary_search(stratum)
                .expect("every stratum is listed") as u32
        };
        let strata: Vec<u32> = strata.iter().map(place).collect();
        let columns: Vec<Vec<u32>> = match scored.len() {
            0 => Vec::new(),
            _ => vec![strata.clone(), oriented(&[&scored], &groups)],
        };
        let units = plan.units.keep(keep)?;
        let arrangement = arrange(&[&scored], &columns, units.borrow())?;
        let cell = |row: usize| {
            let [group, label, decision] = [
                groups[row] == Some(true),
                kept_rows.labels[row],
                kept_rows.predicted[row],
            ]
            .map(u32::from);
            strata[row] * 8 + group * 4 + label * 2 + decision
        };
        Ok(Self {
            units: arrangement.count,
            cell: (0..scored.len()).map(cell).collect(),
            unit: arrangement.unit,
            strata: names.len(),
        })
    }

    /// Both groups' counts in each stratum.
    fn tabulate(&self, weights: &[u32]) -> Vec<[Confusion; 2]> {
        let mut cells = vec![0_u64; self.strata * 8];
        for (&unit, &cell) in self.unit.iter().zip(&self.cell) {
            cells[cell as usize] += u64::from(weights[unit as usize]);
        }
        let confusion = |cells: &[u64]| Confusion {
            true_negative: cells[0],
            false_positive: cells[1],
            false_negative: cells[2],
            true_positive: cells[3],
        };
        cells
            .chunks(8)
            .map(|cells| [confusion(&cells[..4]), confusion(&cells[4..])])
            .collect()
    }
}

struct Standardised {
    rates: Option<[f64; 2]>,
    strata: u32,
    /// Rows of the denominator in the strata used.
    rows: u64,
}

fn standardise(strata: &[[Confusion; 2]], share: Share) -> Standardised {
    let (mut sums, mut rows, mut used) = ([0.0; 2], 0, 0);
    for groups in strata {
        let [zero, one] = groups.each_ref().map(share);
        if zero.1 == 0 || one.1 == 0 {
            continue;
        }
        let pooled = zero.1 + one.1;
        for (sum, (numerator, denominator)) in sums.iter_mut().zip([zero, one]) {
            *sum += pooled as f64 * (numerator as f64 / denominator as f64);
        }
        rows += pooled;
        used += 1;
    }
    Standardised {
        rates: (rows > 0).then(|| sums.map(|sum| sum / rows as f64)),
        strata: used,
        rows,
    }
}
