//! The tables of fine-tuning: comparisons, means by domain, model and task, families with their q-values.

use super::{METRICS, PUBLISHED_METRICS};
use crate::Track;
use crate::error::{AnalysisError, Result};
use crate::options::Options;
use crate::summary::Figure;
use focus_metrics::{
    Domain, DomainSummary, MetricError, Series, benjamini_hochberg, bootstrap_mean,
};
use focus_store::CellKey;
use serde::Serialize;
use std::collections::BTreeMap;

/// Fine-tuning in one track.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FineTuningTable {
    /// Which track.
    pub track: Track,
    /// Every adapter against its base, on every test set.
    pub comparisons: Vec<Comparison>,
    /// Adapters' cells without a partner, and why.
    pub unpaired: Vec<Unpaired>,
    /// Means by domain, by model, by task.
    pub means: Vec<DomainRow>,
    /// Mean metrics of the adapters by domain (the paper's Table 10).
    pub levels: Vec<LevelRow>,
    /// Families of the q-values.
    pub families: Vec<FamilyNote>,
    /// Means by domain with one eye of each patient, where patients and eyes are known; corrected track alone.
    pub one_eye: Vec<DomainRow>,
    /// Test sets whose rows that changes.
    pub one_eye_sets: Vec<String>,
}

/// An adapter against its base on one test set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Test dataset.
    pub dataset: String,
    /// Task.
    pub task: String,
    /// Model, without the adapter.
    pub model: String,
    /// Dataset that the adapter was trained on.
    pub trained_on: String,
    /// `in_domain` or `out_of_domain`.
    pub domain: &'static str,
    /// Images of both.
    pub n: usize,
    /// Of these, positive.
    pub n_pos: usize,
    /// What the intervals resample: `patient` or `image`.
    pub resampled: &'static str,
    /// Images dropped because their labels differ; an error in the corrected track.
    pub label_mismatches: usize,
    /// Tuned minus base.
    pub deltas: Vec<DeltaEntry>,
}

/// A paired difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeltaEntry {
    /// Metric id.
    pub metric: &'static str,
    /// Of the base.
    pub base: Option<f64>,
    /// Of the other arm.
    pub other: Option<f64>,
    /// Other minus base.
    pub delta: Option<f64>,
    /// 95 % percentile interval.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of the bootstrap.
    pub p: Option<f64>,
    /// Benjamini-Hochberg in its family.
    pub q: Option<f64>,
    /// Resamples that define both, of all drawn.
    pub valid_resamples: [u32; 2],
}

impl DeltaEntry {
    pub(crate) fn of(metric: &'static str, base: &Series, other: &Series, delta: &Series) -> Self {
        let estimate = delta.estimate();
        Self {
            metric,
            base: base.point(),
            other: other.point(),
            delta: delta.point(),
            interval: estimate
                .and_then(|found| found.interval)
                .map(|interval| [interval.low, interval.high]),
            p: estimate.and_then(|found| found.p),
            q: None,
            valid_resamples: [estimate.map_or(0, |found| found.valid), delta.count()],
        }
    }
}

/// An adapter's cell that is in no comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unpaired {
    /// Which cell.
    pub cell: CellKey,
    /// Why.
    pub reason: String,
}

/// The mean difference of some comparisons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DomainRow {
    /// `domain`, `model` or `task`: also the name of the family.
    pub by: &'static str,
    /// Which one.
    pub value: String,
    /// Metric id.
    pub metric: &'static str,
    /// Mean difference.
    pub delta: f64,
    /// 95 % percentile interval. Corrected: patients drawn together on each test set, models taken as fixed. As published:
    /// the differences themselves drawn.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value.
    pub p: Option<f64>,
    /// Benjamini-Hochberg in its family.
    pub q: Option<f64>,
    /// Comparisons averaged.
    pub comparisons: u32,
    /// Test datasets they come from.
    pub sets: u32,
    /// Resamples that define all, of all drawn.
    pub valid_resamples: [u32; 2],
    /// The same without one test dataset each; corrected track alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_one_out: Vec<LeaveOneOut>,
}

/// A mean without one test dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeaveOneOut {
    /// The dataset left out.
    pub dataset: String,
    /// Mean difference over the others.
    pub delta: f64,
    /// 95 % percentile interval.
    pub interval: Option<[f64; 2]>,
}

/// Mean metrics of the adapters in a domain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelRow {
    /// `in_domain` or `out_of_domain`.
    pub domain: &'static str,
    /// Metric id.
    pub metric: &'static str,
    /// Mean over comparisons.
    pub mean: Figure,
}

/// What makes a family's q-values readable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyNote {
    /// `comparisons`, `domain`, `model`, `task`.
    pub family: &'static str,
    /// Metric id.
    pub metric: &'static str,
    /// m, the p-values in it.
    pub size: usize,
    /// B behind the small ones; each delta says its own.
    pub resamples: u32,
    /// Smallest q of a lone finding.
    pub smallest_lone_q: Option<f64>,
    /// Smallest q when all are as small as B allows.
    pub smallest_joint_q: Option<f64>,
}

/// A mean's group: what it goes by, and which.
pub(super) type Group = (&'static str, String);

/// Comparisons of one track, and sums over them.
#[derive(Default)]
pub(super) struct Sums {
    pub comparisons: Vec<Comparison>,
    pub unpaired: Vec<Unpaired>,
    domains: BTreeMap<(Group, &'static str), Domain>,
    levels: BTreeMap<(&'static str, &'static str), Vec<f64>>,
}

impl Comparison {
    pub(super) fn groups(&self) -> [Group; 3] {
        [
            ("domain", self.domain.to_owned()),
            ("model", self.model.clone()),
            ("task", self.task.clone()),
        ]
    }
}

impl Sums {
    pub fn add(
        &mut self,
        group: Group,
        metric: &'static str,
        set: &str,
        delta: &Series,
    ) -> Result<bool, MetricError> {
        self.domains
            .entry((group, metric))
            .or_default()
            .add(set, delta)
    }

    pub fn level(&mut self, comparison: &Comparison) {
        for delta in &comparison.deltas {
            self.levels
                .entry((comparison.domain, delta.metric))
                .or_default()
                .extend(delta.other);
        }
    }

    pub fn finish(mut self, track: Track, options: &Options) -> Result<FineTuningTable> {
        let corrected = track == Track::Corrected;
        let (metrics, resamples): (&[&'static str], u32) = if corrected {
            (&METRICS, options.family_resamples)
        } else {
            (&PUBLISHED_METRICS, options.published_resamples)
        };
        self.comparisons.sort_by(|a, b| key(a).cmp(&key(b)));
        self.unpaired.sort_by(|a, b| a.cell.cmp(&b.cell));
        let mut means = if corrected {
            summaries(&self.domains)
        } else {
            published_means(&self.comparisons, metrics, options)?
        };
        let mut families = Vec::new();
        for metric in metrics {
            let mut deltas: Vec<&mut DeltaEntry> = self
                .comparisons
                .iter_mut()
                .flat_map(|comparison| &mut comparison.deltas)
                .filter(|delta| delta.metric == *metric)
                .collect();
            let p: Vec<_> = deltas.iter().map(|delta| delta.p).collect();
            let (q, note) = family("comparisons", metric, &p, resamples)?;
            deltas.iter_mut().zip(q).for_each(|(delta, q)| delta.q = q);
            families.push(note);
            for by in ["domain", "model", "task"] {
                let mut rows: Vec<&mut DomainRow> = means
                    .iter_mut()
                    .filter(|row| row.by == by && row.metric == *metric)
                    .collect();
                let p: Vec<_> = rows.iter().map(|row| row.p).collect();
                let resamples = rows.first().map_or(0, |row| row.valid_resamples[1]);
                let (q, note) = family(by, metric, &p, resamples)?;
                rows.iter_mut().zip(q).for_each(|(row, q)| row.q = q);
                families.push(note);
            }
        }
        Ok(FineTuningTable {
            track,
            comparisons: self.comparisons,
            unpaired: self.unpaired,
            means,
            levels: METRICS
                .iter()
                .flat_map(|metric| {
                    ["in_domain", "out_of_domain"].map(|domain| LevelRow {
                        domain,
                        metric,
                        mean: Figure::mean(
                            self.levels
                                .get(&(domain, *metric))
                                .cloned()
                                .unwrap_or_default(),
                            "no_comparisons",
                        ),
                    })
                })
                .collect(),
            families,
            one_eye: Vec::new(),
            one_eye_sets: Vec::new(),
        })
    }
}

fn key(comparison: &Comparison) -> (&str, &str, &str, &str) {
    (
        &comparison.model,
        &comparison.trained_on,
        &comparison.dataset,
        &comparison.task,
    )
}

/// Q-values of a family, and its note.
pub(crate) fn family(
    name: &'static str,
    metric: &'static str,
    p: &[Option<f64>],
    resamples: u32,
) -> Result<(Vec<Option<f64>>, FamilyNote)> {
    let found = benjamini_hochberg(p).map_err(AnalysisError::during(format!(
        "Family `{name}` of `{metric}`"
    )))?;
    let note = FamilyNote {
        family: name,
        metric,
        size: found.size,
        resamples,
        smallest_lone_q: found.smallest_lone_q(resamples),
        smallest_joint_q: found.smallest_joint_q(resamples),
    };
    Ok((found.q, note))
}

fn summaries(domains: &BTreeMap<(Group, &'static str), Domain>) -> Vec<DomainRow> {
    domains
        .iter()
        .filter_map(|(((by, value), metric), domain)| {
            let row = row(by, value, metric, &domain.summary()?);
            let leave_one_out = domain
                .sets()
                .filter_map(|set| {
                    let rest = domain.without(set)?;
                    Some(LeaveOneOut {
                        dataset: set.into(),
                        delta: rest.mean.value,
                        interval: rest.mean.interval.map(|i| [i.low, i.high]),
                    })
                })
                .collect();
            Some(DomainRow {
                leave_one_out,
                ..row
            })
        })
        .collect()
}

fn row(by: &'static str, value: &str, metric: &'static str, summary: &DomainSummary) -> DomainRow {
    let mean = &summary.mean;
    DomainRow {
        by,
        value: value.into(),
        metric,
        delta: mean.value,
        interval: mean.interval.map(|i| [i.low, i.high]),
        p: mean.p,
        q: None,
        comparisons: summary.comparisons,
        sets: summary.sets,
        valid_resamples: [mean.valid, mean.resamples],
        leave_one_out: Vec::new(),
    }
}

/// Domains with one eye of each patient: a sensitivity, without q-values.
pub(super) fn one_eye(domains: &BTreeMap<(String, &'static str), Domain>) -> Vec<DomainRow> {
    domains
        .iter()
        .filter_map(|((value, metric), domain)| {
            Some(row("domain", value, metric, &domain.summary()?))
        })
        .collect()
}

/// As published: the differences of a group resampled as if they were independent.
fn published_means(
    comparisons: &[Comparison],
    metrics: &[&'static str],
    options: &Options,
) -> Result<Vec<DomainRow>> {
    let mut groups: BTreeMap<(Group, &'static str), Vec<(&str, f64)>> = BTreeMap::new();
    for comparison in comparisons {
        for delta in comparison
            .deltas
            .iter()
            .filter(|d| metrics.contains(&d.metric))
        {
            for group in comparison.groups() {
                let values = groups.entry((group, delta.metric)).or_default();
                values.extend(
                    delta
                        .delta
                        .map(|value| (comparison.dataset.as_str(), value)),
                );
            }
        }
    }
    let mut rows = Vec::new();
    for (((by, value), metric), values) in groups {
        if values.is_empty() {
            continue;
        }
        let deltas: Vec<f64> = values.iter().map(|(_, delta)| *delta).collect();
        let sets: std::collections::BTreeSet<_> = values.iter().map(|(set, _)| set).collect();
        let mean = bootstrap_mean(&deltas, options.published_resamples, options.published_seed)
            .map_err(AnalysisError::during(format!("Mean delta of `{value}`")))?;
        rows.push(DomainRow {
            by,
            value,
            metric,
            delta: mean.mean,
            interval: Some([mean.interval.low, mean.interval.high]),
            p: Some(mean.p),
            q: None,
            comparisons: deltas.len() as u32,
            sets: sets.len() as u32,
            valid_resamples: [mean.resamples; 2],
            leave_one_out: Vec::new(),
        });
    }
    Ok(rows)
}
