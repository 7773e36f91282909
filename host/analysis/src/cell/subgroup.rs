//! Subgroups of a cell: who is in which group, why an attribute is skipped, and every gap. Fairness by age and sex,
//! robustness by image quality.

use super::{Columns, Counts, MetricEntry, ends};
use crate::Track;
use crate::cohort::{Cohort, Member};
use focus_metrics::{
    EqualizedOdds, Gap, GroupCount, GroupRule, MetricError, MetricSpec, MetricValue, Missing, Null,
    StandardisedGap, group_counts, median, metric,
};
use serde::Serialize;

/// An attribute that splits images in two.
#[derive(Debug)]
pub(super) struct Attribute {
    pub id: &'static str,
    /// Names of group 0 and group 1. A signed gap is group 1 minus group 0.
    pub groups: [&'static str; 2],
    /// Metrics whose gaps are wanted.
    metrics: &'static [&'static str],
    /// Equalized odds are wanted.
    pub odds: bool,
}

const FAIRNESS: [&str; 5] = [
    "positive_rate",
    "accuracy",
    "true_positive_rate",
    "false_positive_rate",
    "auroc",
];
const QUALITY: [&str; 5] = ["accuracy", "auroc", "auprc", "f1", "ece"];

/// Age, sex, image quality.
pub(super) static ATTRIBUTES: [Attribute; 3] = [
    Attribute {
        id: "age",
        groups: ["younger", "older"],
        metrics: &FAIRNESS,
        odds: true,
    },
    Attribute {
        id: "sex",
        groups: ["male", "female"],
        metrics: &FAIRNESS,
        odds: true,
    },
    Attribute {
        id: "quality",
        groups: ["poor", "good"],
        metrics: &QUALITY,
        odds: false,
    },
];

impl Attribute {
    /// Its metrics.
    pub fn specs(&self) -> Vec<&'static MetricSpec> {
        let find = |id: &&str| metric(id).expect("a gap's metric is registered");
        self.metrics.iter().map(find).collect()
    }

    fn group(&self, member: &Member, threshold: Option<f64>) -> Option<bool> {
        let is = |value: &Option<String>| value.as_ref().map(|value| value == self.groups[1]);
        match self.id {
            "age" => Some(member.age? > threshold?),
            "sex" => is(&member.sex),
            _ => is(&member.quality),
        }
    }
}

/// Stable id of a metric's gap.
pub(super) fn gap_id(metric: &str) -> &'static str {
    match metric {
        "positive_rate" => "gap_demographic_parity",
        "accuracy" => "gap_accuracy",
        "true_positive_rate" => "gap_equal_opportunity",
        "false_positive_rate" => "gap_false_positive_rate",
        "auroc" => "gap_auroc",
        "auprc" => "gap_auprc",
        "f1" => "gap_f1",
        "ece" => "gap_ece",
        other => unreachable!("no gap of {other} is asked for"),
    }
}

pub(super) const EQUALIZED_ODDS: &str = "gap_equalized_odds";

/// Rows by group, and whether the rule admits them.
#[derive(Debug, Clone)]
pub(super) struct Grouping {
    pub attribute: &'static Attribute,
    pub threshold: Option<f64>,
    pub groups: Vec<Option<bool>>,
    pub counts: [GroupCount; 2],
    pub skipped: Option<&'static str>,
}

impl Grouping {
    /// The groups of these rows in a track. `adapter`: the published fine-tuning analysis knows sex, the base one does
    /// not.
    pub fn of(
        attribute: &'static Attribute,
        rows: &Columns,
        cohort: &Cohort,
        track: Track,
        adapter: bool,
    ) -> Result<Self, MetricError> {
        let member = |image: &u32| &cohort.members()[*image as usize];
        let threshold = match (attribute.id, track) {
            ("age", Track::Corrected) => cohort.age_threshold(),
            ("age", Track::AsPublished) => {
                let ages = rows.images.iter().filter_map(|image| member(image).age);
                median(&ages.collect::<Vec<_>>())
            }
            _ => None,
        };
        let groups: Vec<Option<bool>> = rows
            .images
            .iter()
            .map(|image| attribute.group(member(image), threshold))
            .collect();
        let counts = group_counts(&rows.labels, &groups)?;
        let rule = match (track, attribute.id) {
            (Track::Corrected, _) => GroupRule::CORRECTED,
            (Track::AsPublished, "quality") => GroupRule::PUBLISHED_QUALITY,
            (Track::AsPublished, _) => GroupRule::PUBLISHED,
        };
        let lost = track == Track::AsPublished && attribute.id == "sex" && !adapter;
        let checked = rule.check(counts).err().map(focus_metrics::Skip::name);
        Ok(Self {
            attribute,
            threshold,
            groups,
            counts,
            skipped: match checked {
                Some("attribute_absent") => Some("attribute_absent"),
                // As published the sex column is lost in a concatenation before the base analysis sees it.
                _ if lost => Some("lost_as_published"),
                other => other,
            },
        })
    }
}

/// One attribute of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttributeAnalysis {
    /// `age`, `sex`, `quality`.
    pub attribute: &'static str,
    /// Age above which a patient is `older`: years.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Images whose group is not known.
    pub unknown: usize,
    /// Why there are no gaps: `attribute_absent`, `one_group`, `group_too_small`, `class_too_small`,
    /// `lost_as_published`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<&'static str>,
    /// The two groups.
    pub groups: Vec<GroupAnalysis>,
    /// Gaps between them: `gap_<metric>`.
    pub gaps: Vec<GapEntry>,
    /// Gaps that remain when both groups have the same mix of ICDR grades; empty where no grade is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub standardised: Vec<StandardisedEntry>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupAnalysis {
    /// `older`, `female`, `good`, ...
    pub group: &'static str,
    /// Rows.
    #[serde(flatten)]
    pub counts: Counts,
    /// Metrics of the group; TPR and FPR are `true_positive_rate` and `false_positive_rate`.
    pub metrics: Vec<MetricEntry>,
}

/// A gap between the second group and the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapEntry {
    /// `gap_auroc`, `gap_equalized_odds`, ...
    pub id: &'static str,
    /// Older minus younger, female minus male, good minus poor; none for equalized odds, which has no sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<f64>,
    /// 95 % percentile interval of the signed gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Resamples in which the gap exists, of all that were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_resamples: Option<[u32; 2]>,
    /// Its size: never below 0, and above it even between groups that do not differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute: Option<f64>,
    /// What the size is when group labels are shuffled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null: Option<NullEntry>,
    /// Why there is no gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'static str>,
}

/// An absolute gap under shuffled group labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NullEntry {
    /// Mean.
    pub mean: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Share of shuffles, the observed one included, with a gap at least as large.
    pub p: f64,
    /// Shuffles in which the gap exists.
    pub valid: u32,
}

impl From<Null> for NullEntry {
    fn from(null: Null) -> Self {
        let Null {
            mean,
            p95,
            p,
            valid,
        } = null;
        Self {
            mean,
            p95,
            p,
            valid,
        }
    }
}

/// A gap after direct standardisation by grade.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StandardisedEntry {
    /// As the gap's.
    pub id: &'static str,
    /// As the gap's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<f64>,
    /// 95 % percentile interval of the signed gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Grades in which both groups have rows.
    pub strata: u32,
    /// Share of the rows that lie in those grades.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered: Option<f64>,
    /// Why there is no gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'static str>,
}

impl GapEntry {
    /// From a gap with its interval and null; `intervals`: the track has intervals.
    pub(super) fn of(gap: &Gap, null: Option<Null>, intervals: bool) -> Self {
        let missing = gap.values.iter().find_map(MetricValue::missing);
        Self {
            id: gap_id(gap.metric),
            signed: gap.signed.filter(|_| intervals),
            interval: gap.interval.filter(|_| intervals).map(ends),
            valid_resamples: intervals.then_some([gap.valid, gap.resamples]),
            absolute: gap.absolute,
            null: null.map(NullEntry::from),
            missing: missing
                .map(Missing::name)
                .filter(|_| gap.absolute.is_none()),
        }
    }

    pub(super) fn odds(odds: EqualizedOdds, null: Option<Null>, track: Track) -> Self {
        let absolute = match track {
            Track::Corrected => odds.corrected,
            Track::AsPublished => odds.as_published,
        };
        Self {
            id: EQUALIZED_ODDS,
            signed: None,
            interval: None,
            valid_resamples: None,
            absolute,
            null: null.map(NullEntry::from),
            missing: absolute.is_none().then_some("rate_missing"),
        }
    }
}

impl StandardisedEntry {
    pub(super) fn of(gap: &StandardisedGap) -> Self {
        Self {
            id: gap_id(gap.metric),
            signed: gap.signed,
            interval: gap.interval.map(ends),
            strata: gap.strata,
            covered: gap.covered,
            missing: gap.signed.is_none().then_some("no_common_grade"),
        }
    }
}

impl AttributeAnalysis {
    /// Groups and gaps of an attribute; `gaps` are empty where it is skipped.
    pub(super) fn of(
        grouping: &Grouping,
        values: &[Gap],
        gaps: Vec<GapEntry>,
        standardised: Vec<StandardisedEntry>,
    ) -> Self {
        let group = |place: usize| {
            let GroupCount { n, n_pos, n_neg } = grouping.counts[place];
            let entry = |gap: &Gap| MetricEntry::plain(gap.metric, gap.values[place]);
            GroupAnalysis {
                group: grouping.attribute.groups[place],
                counts: Counts {
                    n: n as usize,
                    n_pos: n_pos as usize,
                    n_neg: n_neg as usize,
                },
                metrics: values.iter().map(entry).collect(),
            }
        };
        let known = grouping
            .counts
            .iter()
            .map(|group| group.n as usize)
            .sum::<usize>();
        Self {
            attribute: grouping.attribute.id,
            threshold: grouping.threshold,
            unknown: grouping.groups.len() - known,
            skipped: grouping.skipped,
            groups: vec![group(0), group(1)],
            gaps,
            standardised,
        }
    }
}
