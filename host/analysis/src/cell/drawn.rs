//! Resamples, shuffles and strata of arms that hold the same rows. Owns which metric is drawn how often; it must not know
//! tracks or tables.

use super::Columns;
use super::subgroup::{Attribute, GapEntry, Grouping, StandardisedEntry};
use crate::Track;
use crate::cohort::Cohort;
use crate::options::Options;
use crate::units::RowUnits;
use focus_metrics::{
    EqualizedOdds, Estimate, Gap, GroupedResamples, Input, Interval, MetricError, MetricSpec, Null,
    Plan, Role, Scored, Series, StandardisedGap, bootstrap, gap_nulls, gaps_from, metrics,
    resample_with_groups, standardised_gaps,
};
use rayon::prelude::*;

/// Metrics of scores, of decisions, or both.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wanted {
    All,
    Only(Input),
}

impl Wanted {
    fn keeps(self, spec: &MetricSpec) -> bool {
        match self {
            Self::All => true,
            Self::Only(input) => spec.input == input,
        }
    }
}

/// What was drawn of one arm.
pub(super) struct ArmDraw {
    /// By metric, in the order of their listing; none without rows.
    pub estimates: Vec<(&'static MetricSpec, Option<Estimate>)>,
    /// Of the headline metrics among them.
    pub series: Vec<Series>,
    series_specs: Vec<&'static MetricSpec>,
    /// By attribute, in their order.
    pub attributes: Vec<AttributeDraw>,
}

/// What was drawn of one attribute; empty where it is skipped.
#[derive(Default)]
pub(super) struct AttributeDraw {
    pub gaps: Vec<Gap>,
    nulls: Vec<Option<Null>>,
    /// Equalized odds with its null, where decisions were drawn.
    odds: Option<(EqualizedOdds, Option<Null>)>,
    standardised: Vec<StandardisedGap>,
}

impl ArmDraw {
    /// One arm drawn in two halves: by scores and by decisions.
    pub fn merge(mut self, other: Self) -> Self {
        self.estimates.extend(other.estimates);
        self.estimates
            .sort_by_key(|(spec, _)| (spec.order, spec.id));
        let mut series: Vec<_> = self
            .series_specs
            .into_iter()
            .zip(self.series)
            .chain(other.series_specs.into_iter().zip(other.series))
            .collect();
        series.sort_by_key(|(spec, _)| (spec.order, spec.id));
        (self.series_specs, self.series) = series.into_iter().unzip();
        for (held, other) in self.attributes.iter_mut().zip(other.attributes) {
            held.gaps.extend(other.gaps);
            held.nulls.extend(other.nulls);
            held.odds = held.odds.or(other.odds);
            held.standardised.extend(other.standardised);
        }
        self
    }
}

impl AttributeDraw {
    /// As reports have them, in the order of the attribute's metrics, equalized odds last.
    pub fn entries(&self, attribute: &Attribute) -> (Vec<GapEntry>, Vec<StandardisedEntry>) {
        let mut gaps = Vec::new();
        for spec in attribute.specs() {
            let found = self.gaps.iter().zip(&self.nulls);
            gaps.extend(
                found
                    .filter(|(gap, _)| gap.metric == spec.id)
                    .map(|(gap, null)| GapEntry::of(gap, *null, true)),
            );
        }
        if let Some((odds, null)) = self.odds.filter(|_| attribute.odds) {
            gaps.push(GapEntry::odds(odds, null, Track::Corrected));
        }
        let standardised = self.standardised.iter().map(StandardisedEntry::of);
        (gaps, standardised.collect())
    }
}

/// The recalibration line is fitted anew in each resample, which costs as much as all other metrics many times over.
fn is_slow(spec: &MetricSpec) -> bool {
    matches!(spec.id, "calibration_slope" | "calibration_intercept")
}

/// Draws arms that hold the same images with the same labels. `groupings`: one for each attribute.
pub(super) fn draw_arms(
    arms: &[&Columns],
    groupings: &[&Grouping],
    wanted: Wanted,
    cohort: &Cohort,
    options: &Options,
) -> Result<Vec<ArmDraw>, MetricError> {
    let specs: Vec<&'static MetricSpec> = metrics()
        .into_iter()
        .filter(|spec| wanted.keeps(spec))
        .collect();
    let rows: Vec<Scored<'_>> = arms
        .iter()
        .map(|arm| arm.rows())
        .collect::<Result<_, _>>()?;
    let images = &arms[0].images;
    if images.is_empty() {
        return Ok(rows
            .iter()
            .map(|_| ArmDraw::without_rows(&specs, groupings))
            .collect());
    }
    let scored: Vec<&Scored<'_>> = rows.iter().collect();
    let units = RowUnits::new(cohort, images);
    let plan = units.plan(cohort, options.resamples, options);
    let (slow, fast): (Vec<_>, Vec<_>) = specs.iter().copied().partition(|spec| is_slow(spec));
    let strata: Vec<Option<u32>> = images
        .iter()
        .map(|image| {
            cohort.members()[*image as usize]
                .grade
                .map(|grade| grade as u32)
        })
        .collect();
    let mut groups = GroupDraws::new(&scored, &fast, groupings, wanted, &plan)?;
    let whole = groups
        .whole
        .take()
        .expect("the first call draws the whole rows");
    let secondary = Plan {
        resamples: options.secondary_resamples,
        ..plan
    };
    rows.par_iter()
        .enumerate()
        .map(|(arm, rows)| {
            let mut estimates = Vec::with_capacity(specs.len());
            let (mut series, mut series_specs) = (Vec::new(), Vec::new());
            for (place, spec) in fast.iter().enumerate() {
                let value = spec.compute(rows);
                if spec.role == Role::Headline {
                    series.push(whole.whole.series(arm, place, value.value()));
                    series_specs.push(*spec);
                }
                let mut drawn = whole.whole.valid(arm, place);
                let estimate = Estimate {
                    value,
                    valid: drawn.len() as u32,
                    interval: value.value().and_then(|_| Interval::of(&mut drawn)),
                    resamples: options.resamples,
                };
                estimates.push((*spec, Some(estimate)));
            }
            if !slow.is_empty() {
                let found = bootstrap(rows, &slow, &secondary)?;
                estimates.extend(slow.iter().copied().zip(found.into_iter().map(Some)));
            }
            estimates.sort_by_key(|(spec, _)| (spec.order, spec.id));
            let attributes = groupings
                .iter()
                .enumerate()
                .map(|(place, grouping)| {
                    let Some((resamples, at)) = groups.of(place, &whole) else {
                        return Ok(AttributeDraw::default());
                    };
                    let specs = specs_of(grouping.attribute, wanted);
                    let found = gaps_from(rows, &grouping.groups, &specs, resamples, at, arm)?;
                    let nulls =
                        gap_nulls(rows, &grouping.groups, &specs, &plan, options.permutations)?;
                    Ok(AttributeDraw {
                        gaps: found.gaps,
                        nulls: nulls.gaps,
                        odds: (wanted != Wanted::Only(Input::Scores))
                            .then_some((found.equalized_odds, nulls.equalized_odds_corrected)),
                        standardised: standardised(rows, grouping, &strata, &specs, &secondary)?,
                    })
                })
                .collect::<Result<_, MetricError>>()?;
            Ok(ArmDraw {
                estimates,
                series,
                series_specs,
                attributes,
            })
        })
        .collect()
}

impl ArmDraw {
    fn without_rows(specs: &[&'static MetricSpec], groupings: &[&Grouping]) -> Self {
        Self {
            estimates: specs.iter().map(|spec| (*spec, None)).collect(),
            series: Vec::new(),
            series_specs: Vec::new(),
            attributes: groupings.iter().map(|_| AttributeDraw::default()).collect(),
        }
    }
}

fn specs_of(attribute: &Attribute, wanted: Wanted) -> Vec<&'static MetricSpec> {
    attribute
        .specs()
        .into_iter()
        .filter(|spec| wanted.keeps(spec))
        .collect()
}

fn standardised(
    rows: &Scored<'_>,
    grouping: &Grouping,
    strata: &[Option<u32>],
    specs: &[&'static MetricSpec],
    plan: &Plan<'_>,
) -> Result<Vec<StandardisedGap>, MetricError> {
    let known =
        |(group, stratum): (&Option<bool>, &Option<u32>)| group.is_some() && stratum.is_some();
    let shares: Vec<_> = specs
        .iter()
        .copied()
        .filter(|spec| spec.share.is_some())
        .collect();
    if shares.is_empty() || !grouping.groups.iter().zip(strata).any(known) {
        return Ok(Vec::new());
    }
    standardised_gaps(rows, &grouping.groups, strata, &shares, plan)
}

/// Resamples of groups: attributes with the same metrics share a call, the first of which also draws the whole rows.
struct GroupDraws {
    whole: Option<GroupedResamples>,
    /// Attributes of the later calls.
    others: Vec<GroupedResamples>,
    /// By attribute: call (0 is the whole's) and place in it.
    places: Vec<Option<(usize, usize)>>,
}

impl GroupDraws {
    fn new(
        arms: &[&Scored<'_>],
        specs: &[&'static MetricSpec],
        groupings: &[&Grouping],
        wanted: Wanted,
        plan: &Plan<'_>,
    ) -> Result<Self, MetricError> {
        let mut calls: Vec<(Vec<&'static str>, Vec<usize>)> = vec![(Vec::new(), Vec::new())];
        let mut places = vec![None; groupings.len()];
        for (place, grouping) in groupings.iter().enumerate() {
            if grouping.skipped.is_some() {
                continue;
            }
            let ids: Vec<_> = specs_of(grouping.attribute, wanted)
                .iter()
                .map(|s| s.id)
                .collect();
            let call = calls.iter().position(|(of, _)| *of == ids || of.is_empty());
            let call = call.unwrap_or_else(|| {
                calls.push((Vec::new(), Vec::new()));
                calls.len() - 1
            });
            places[place] = Some((call, calls[call].1.len()));
            calls[call].0 = ids;
            calls[call].1.push(place);
        }
        let mut drawn = calls.iter().enumerate().map(|(number, (_, members))| {
            let groups: Vec<&[Option<bool>]> = members
                .iter()
                .map(|&place| &groupings[place].groups[..])
                .collect();
            let group_specs = members.first().map_or_else(Vec::new, |&place| {
                specs_of(groupings[place].attribute, wanted)
            });
            let whole: &[&MetricSpec] = if number == 0 { specs } else { &[] };
            resample_with_groups(arms, whole, &groups, &group_specs, plan)
        });
        let whole = drawn.next().transpose()?;
        let others = drawn.collect::<Result<_, _>>()?;
        Ok(Self {
            whole,
            others,
            places,
        })
    }

    /// Where an attribute's groups were drawn; none where it is skipped.
    fn of<'a>(
        &'a self,
        place: usize,
        whole: &'a GroupedResamples,
    ) -> Option<(&'a GroupedResamples, usize)> {
        let (call, at) = self.places[place]?;
        Some((
            if call == 0 {
                whole
            } else {
                &self.others[call - 1]
            },
            at,
        ))
    }
}
