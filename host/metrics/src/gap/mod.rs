//! Differences of a metric between two groups of rows. Owns signed and absolute gaps, equalized odds, their permutation
//! nulls, and gaps standardised by strata. It must not know what the groups are.
//!
//! An absolute gap is above 0 even between groups that do not differ, and its interval never holds 0: intervals are of
//! the signed gap, and an absolute gap is read beside what it averages when group labels are shuffled.

mod null;
mod standardised;

pub use null::{Null, Nulls, Shuffled, gap_nulls};
pub use standardised::{StandardisedGap, standardised_gaps};

use crate::bootstrap::{
    GroupedResamples, Interval, OwnedUnits, Plan, resample_with_groups, same_length, two_sided_p,
};
use crate::error::MetricError;
use crate::registry::MetricSpec;
use crate::scored::Scored;
use crate::subgroup::{GroupCount, group_counts};
use crate::tally::{Confusion, Tally};
use crate::value::MetricValue;

/// A metric's gap between group 0 and group 1.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Gap {
    /// Id of the metric.
    pub metric: &'static str,
    /// The metric in group 0 and in group 1. A value flagged as a convention counts as the number that it is.
    pub values: [MetricValue; 2],
    /// Group 1 minus group 0; none where either is missing.
    pub signed: Option<f64>,
    /// Its size.
    pub absolute: Option<f64>,
    /// Interval of the signed gap over the valid resamples; none where the gap is missing or V is 0.
    pub interval: Option<Interval>,
    /// Two-sided p-value of the signed gap by the bootstrap, not corrected for other comparisons; none where the
    /// interval is.
    pub p: Option<f64>,
    /// V, the resamples on which the metric is defined in both groups.
    pub valid: u32,
    /// B, the resamples drawn.
    pub resamples: u32,
}

/// max(|TPR gap|, |FPR gap|). It has no sign.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct EqualizedOdds {
    /// Over those of the two gaps that exist; none where neither does.
    pub as_published: Option<f64>,
    /// None where either is missing: a maximum over what happens to exist can only be too small.
    pub corrected: Option<f64>,
}

impl EqualizedOdds {
    pub(crate) fn between(zero: &Confusion, one: &Confusion) -> Self {
        let rate = |numerator: u64, denominator: u64| {
            (denominator > 0).then(|| numerator as f64 / denominator as f64)
        };
        let tpr = |counts: &Confusion| rate(counts.true_positive, counts.positives());
        let fpr = |counts: &Confusion| rate(counts.false_positive, counts.negatives());
        let gap = |of: &dyn Fn(&Confusion) -> Option<f64>| Some((of(one)? - of(zero)?).abs());
        let (tpr, fpr) = (gap(&tpr), gap(&fpr));
        Self {
            as_published: tpr.into_iter().chain(fpr).reduce(f64::max),
            corrected: tpr.zip(fpr).map(|(tpr, fpr)| tpr.max(fpr)),
        }
    }
}

/// All gaps between two groups.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Gaps {
    /// Sizes of group 0 and group 1.
    pub counts: [GroupCount; 2],
    /// Rows whose group is unknown, which are left out.
    pub unknown: u64,
    /// One for each metric, in the order asked for.
    pub gaps: Vec<Gap>,
    /// Equalized odds, from decisions alone.
    pub equalized_odds: EqualizedOdds,
    /// What the absolute gaps look like when group labels are shuffled, if asked for.
    pub nulls: Option<Nulls>,
}

/// Gaps of `specs` between the two groups, with intervals from `plan` and nulls from `permutations` shuffles under the
/// plan's seed (0: no nulls). `groups[i]` is row i's group, true for group 1; rows of unknown group are left out before
/// anything is drawn, and groups stay attached to the rows drawn. Exchanging the groups turns signs and nothing else.
///
/// # Errors
/// No row of known group; no resamples; columns of unequal length.
pub fn gaps(
    rows: &Scored<'_>,
    groups: &[Option<bool>],
    specs: &[&MetricSpec],
    plan: &Plan<'_>,
    permutations: u32,
) -> Result<Gaps, MetricError> {
    let known = Known::new(rows, groups, plan)?;
    let (rows, plan) = (known.rows.scored()?, known.plan(plan));
    let resamples = resample_with_groups(&[&rows], &[], &[&known.groups], specs, &plan)?;
    let mut gaps = gaps_from(&rows, &known.groups, specs, &resamples, 0, 0)?;
    gaps.unknown = (groups.len() - known.groups.len()) as u64;
    if permutations > 0 {
        gaps.nulls = Some(gap_nulls(&rows, &known.groups, specs, &plan, permutations)?);
    }
    Ok(gaps)
}

/// Gaps whose resamples come from [`resample_with_groups`], which draws several groupings and arms at once: `rows` and
/// `groups` are arm number `arm` and grouping number `grouping` of that call, `specs` its second list of metrics. There,
/// rows of unknown group are drawn too, so that a group's size varies a little more than in [`gaps`]. No nulls: see
/// [`gap_nulls`].
///
/// # Errors
/// Columns of unequal length.
pub fn gaps_from(
    rows: &Scored<'_>,
    groups: &[Option<bool>],
    specs: &[&MetricSpec],
    resamples: &GroupedResamples,
    grouping: usize,
    arm: usize,
) -> Result<Gaps, MetricError> {
    let counts = group_counts(rows.labels(), groups)?;
    let tallies = [false, true].map(|group| tally_of(rows, |row| groups[row] == Some(group)));
    let gap = |(metric, spec): (usize, &&MetricSpec)| {
        let values = tallies.each_ref().map(|tally| (spec.from_tally)(tally));
        let signed = values[0]
            .value()
            .zip(values[1].value())
            .map(|(zero, one)| one - zero);
        let mut drawn = resamples.signed_gaps(grouping, arm, metric);
        Gap {
            metric: spec.id,
            values,
            signed,
            absolute: signed.map(f64::abs),
            p: signed.and_then(|_| two_sided_p(&drawn)),
            valid: drawn.len() as u32,
            interval: signed.and_then(|_| Interval::of(&mut drawn)),
            resamples: resamples.whole.count(),
        }
    };
    Ok(Gaps {
        counts,
        unknown: groups.iter().filter(|group| group.is_none()).count() as u64,
        gaps: specs.iter().enumerate().map(gap).collect(),
        equalized_odds: EqualizedOdds::between(tallies[0].confusion(), tallies[1].confusion()),
        nulls: None,
    })
}

fn tally_of(rows: &Scored<'_>, keep: impl Fn(usize) -> bool) -> Tally {
    let keep: Vec<bool> = (0..rows.len()).map(keep).collect();
    let kept = Rows::keep(rows, &keep);
    Tally::of_rows(&kept.labels, &kept.predicted, kept.scores.as_deref())
}

/// Some rows, as columns of their own.
struct Rows {
    labels: Vec<bool>,
    predicted: Vec<bool>,
    scores: Option<Vec<f64>>,
}

impl Rows {
    fn keep(rows: &Scored<'_>, keep: &[bool]) -> Self {
        Self {
            labels: kept(rows.labels(), keep),
            predicted: kept(rows.predicted(), keep),
            scores: rows.scores().map(|scores| kept(scores, keep)),
        }
    }

    fn scored(&self) -> Result<Scored<'_>, MetricError> {
        match &self.scores {
            Some(scores) => Scored::new(&self.labels, &self.predicted, scores),
            None => Scored::without_scores(&self.labels, &self.predicted),
        }
    }
}

fn kept<T: Copy>(column: &[T], keep: &[bool]) -> Vec<T> {
    column
        .iter()
        .zip(keep)
        .filter(|(_, keep)| **keep)
        .map(|(value, _)| *value)
        .collect()
}

/// The rows of known group, with their units.
struct Known {
    rows: Rows,
    groups: Vec<Option<bool>>,
    units: OwnedUnits,
}

impl Known {
    fn new(
        rows: &Scored<'_>,
        groups: &[Option<bool>],
        plan: &Plan<'_>,
    ) -> Result<Self, MetricError> {
        same_length("groups", rows.len(), groups.len())?;
        let keep: Vec<bool> = groups.iter().map(Option::is_some).collect();
        Ok(Self {
            rows: Rows::keep(rows, &keep),
            groups: kept(groups, &keep),
            units: plan.units.keep(&keep)?,
        })
    }

    fn plan(&self, plan: &Plan<'_>) -> Plan<'_> {
        Plan {
            units: self.units.borrow(),
            ..*plan
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(
        true_positive: u64,
        false_negative: u64,
        false_positive: u64,
        true_negative: u64,
    ) -> Confusion {
        Confusion {
            true_positive,
            false_positive,
            false_negative,
            true_negative,
        }
    }

    #[test]
    fn equalized_odds_is_the_larger_gap_and_differs_by_track_where_one_is_missing() {
        let odds = EqualizedOdds::between(&counts(1, 3, 1, 1), &counts(2, 2, 1, 7));
        assert_eq!(
            (odds.as_published, odds.corrected),
            (Some(0.375), Some(0.375))
        );
        let odds = EqualizedOdds::between(&counts(1, 3, 0, 0), &counts(2, 2, 1, 7));
        assert_eq!((odds.as_published, odds.corrected), (Some(0.25), None));
        let odds = EqualizedOdds::between(&counts(0, 0, 0, 0), &counts(2, 2, 1, 7));
        assert_eq!(odds, EqualizedOdds::default());
    }
}
