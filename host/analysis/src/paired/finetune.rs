//! Fine-tuning: every adapter against its own base on the same images, and what that comes to in and out of domain (the
//! paper's Tables 5, 10 and 11). Owns pairing, families of comparisons and the one-eye sensitivity.

mod table;

pub use table::{
    Comparison, DeltaEntry, DomainRow, FamilyNote, FineTuningTable, LeaveOneOut, LevelRow, Unpaired,
};

pub(crate) use table::family;

use super::{Common, draw};
use crate::Track;
use crate::catalogue::Catalogue;
use crate::cell::{Analysed, CellRows, CellStatus, TrackColumns};
use crate::cohort::Cohort;
use crate::error::{AnalysisError, Result};
use crate::name::ModelName;
use crate::options::Options;
use crate::summary::canonical;
use crate::units::RowUnits;
use focus_metrics::{Domain, MetricError, MetricSpec, Plan, Units, metric};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use table::Sums;

/// Metrics of deltas: corrected, and as published.
pub(super) const METRICS: [&str; 5] = ["auroc", "auprc", "accuracy", "f1", "ece"];
pub(super) const PUBLISHED_METRICS: [&str; 3] = ["auroc", "accuracy", "ece"];

/// Both tracks.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct FineTuning {
    /// One for each track that has an adapter's cell.
    pub tables: Vec<FineTuningTable>,
}

/// Comparisons as they come, dataset by dataset.
pub(crate) struct Builder<'o> {
    options: &'o Options,
    corrected: Sums,
    published: Sums,
    /// Domains with one eye of each patient, by domain and metric.
    one_eye: BTreeMap<(String, &'static str), Domain>,
    /// Test sets whose rows the restriction changes.
    reduced: BTreeSet<String>,
}

impl FineTuning {
    pub(crate) fn builder(options: &Options) -> Builder<'_> {
        Builder {
            options,
            corrected: Sums::default(),
            published: Sums::default(),
            one_eye: BTreeMap::new(),
            reduced: BTreeSet::new(),
        }
    }
}

/// P-values below this are drawn again with the resamples of a family: only there does their number bound a q-value.
const REFINED_BELOW: f64 = 0.01;

/// The deltas of two arms with the resamples of a family, the first of which are those of an interval.
fn refine(
    pair: &Common,
    cohort: &Cohort,
    options: &Options,
) -> Result<Vec<DeltaEntry>, MetricError> {
    let specs = specs(&METRICS);
    let drawn = pair.draw(&specs, cohort, options.family_resamples, options)?;
    let arms = drawn[0].iter().zip(&drawn[1]);
    specs
        .iter()
        .zip(arms)
        .map(|(spec, (base, tuned))| Ok(DeltaEntry::of(spec.id, base, tuned, &tuned.minus(base)?)))
        .collect()
}

fn specs(ids: &[&str]) -> Vec<&'static MetricSpec> {
    let find = |id: &&str| metric(id).expect("a delta's metric is registered");
    ids.iter().map(find).collect()
}

/// An adapter's cell and its base's.
struct Pair<'a> {
    base: &'a Analysed,
    tuned: &'a Analysed,
    base_rows: &'a CellRows,
    tuned_rows: &'a CellRows,
    model: String,
    trained_on: String,
}

impl Builder<'_> {
    /// Adds the cells of one dataset and task.
    pub fn add(
        &mut self,
        rows: &[CellRows],
        cells: &[Analysed],
        cohort: &Cohort,
        catalogue: &Catalogue,
    ) -> Result<()> {
        let pairs = self.pairs(rows, cells, catalogue)?;
        let mut by_base: BTreeMap<&focus_store::CellKey, Vec<&Pair<'_>>> = BTreeMap::new();
        for pair in &pairs {
            by_base
                .entry(&pair.base.analysis.cell)
                .or_default()
                .push(pair);
        }
        for pairs in by_base.values() {
            self.corrected(pairs, cohort)?;
        }
        for pair in &pairs {
            self.published(pair)?;
        }
        Ok(())
    }

    /// Every adapter's cell with its base's; what has no partner is noted.
    fn pairs<'a>(
        &mut self,
        rows: &'a [CellRows],
        cells: &'a [Analysed],
        catalogue: &Catalogue,
    ) -> Result<Vec<Pair<'a>>> {
        let mut bases: BTreeMap<(String, &str), usize> = BTreeMap::new();
        let mut adapters = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            let key = &cell.analysis.cell;
            let name = ModelName::parse(&key.model)?;
            let model = canonical(&name, catalogue);
            match name.adapter {
                None => {
                    bases.insert((model, &key.method), at);
                }
                Some(adapter) => adapters.push((at, model, adapter)),
            }
        }
        let mut pairs = Vec::new();
        for (at, model, adapter) in adapters {
            let cell = &cells[at].analysis.cell;
            let base = bases.get(&(model.clone(), cell.method.as_str())).copied();
            let reason = if adapter.task != cell.task {
                Some(format!("the adapter was trained for `{}`", adapter.task))
            } else if let Some(base) = base {
                [base, at]
                    .iter()
                    .find(|&&at| cells[at].analysis.status == CellStatus::Failed)
                    .map(|&failed| format!("`{}` failed", cells[failed].analysis.cell.model))
            } else {
                Some(format!("no cell of `{model}` without an adapter"))
            };
            match (reason, base) {
                (None, Some(base)) => pairs.push(Pair {
                    base: &cells[base],
                    tuned: &cells[at],
                    base_rows: &rows[base],
                    tuned_rows: &rows[at],
                    model,
                    trained_on: adapter.dataset,
                }),
                (reason, _) => {
                    let unpaired = Unpaired {
                        cell: cell.clone(),
                        reason: reason.unwrap_or_default(),
                    };
                    for track in crate::tracks_of(&cell.method, false) {
                        self.sums(track).unpaired.push(unpaired.clone());
                    }
                }
            }
        }
        Ok(pairs)
    }

    fn sums(&mut self, track: Track) -> &mut Sums {
        match track {
            Track::Corrected => &mut self.corrected,
            Track::AsPublished => &mut self.published,
        }
    }

    /// Adapters of one base on one test set and task: patients drawn together, base and adapters alike.
    fn corrected(&mut self, pairs: &[&Pair<'_>], cohort: &Cohort) -> Result<()> {
        let of = |cell: &'_ Analysed| cell.columns.clone();
        let Some(base) = of(pairs[0].base) else {
            return Ok(());
        };
        let tuned: Vec<(&Pair<'_>, TrackColumns)> = pairs
            .iter()
            .filter_map(|pair| Some((*pair, of(pair.tuned)?)))
            .collect();
        let same = |arm: &TrackColumns| {
            arm.decided.is_none()
                && base.decided.is_none()
                && arm.scored.images == base.scored.images
        };
        let (together, apart): (Vec<_>, Vec<_>) = tuned.iter().partition(|(_, arm)| same(arm));
        let mut groups: Vec<Vec<&(&Pair<'_>, TrackColumns)>> =
            apart.into_iter().map(|arm| vec![arm]).collect();
        if !together.is_empty() {
            groups.push(together);
        }
        for group in groups {
            let arms: Vec<&TrackColumns> = std::iter::once(&base)
                .chain(group.iter().map(|(_, arm)| arm))
                .collect();
            let members: Vec<&Pair<'_>> = group.iter().map(|(pair, _)| *pair).collect();
            self.compare(&members, &Common::of(&arms), cohort)?;
        }
        Ok(())
    }

    fn compare(&mut self, pairs: &[&Pair<'_>], common: &Common, cohort: &Cohort) -> Result<()> {
        let specs = specs(&METRICS);
        let set = cohort.dataset();
        let what = || format!("Fine-tuning deltas of `{}` on `{set}`", pairs[0].model);
        let options = self.options;
        let drawn = common
            .draw(&specs, cohort, options.resamples, options)
            .map_err(AnalysisError::during(what()))?;
        let kind = RowUnits::new(cohort, common.scored.images()).kind;
        let (base, tuned) = drawn.split_first().expect("the base comes first");
        for ((arm, pair), tuned) in (1..).zip(pairs).zip(tuned) {
            let mut comparison = pair.comparison(common, kind);
            for ((spec, base), tuned) in specs.iter().zip(base).zip(tuned) {
                let delta = tuned.minus(base).map_err(AnalysisError::during(what()))?;
                comparison
                    .deltas
                    .push(DeltaEntry::of(spec.id, base, tuned, &delta));
                // A domain's few tests need no more than the resamples of an interval.
                for group in comparison.groups() {
                    self.corrected
                        .add(group, spec.id, set, &delta)
                        .map_err(AnalysisError::during(what()))?;
                }
            }
            let small = |delta: &DeltaEntry| delta.p.is_some_and(|p| p < REFINED_BELOW);
            if comparison.deltas.iter().any(small) && options.family_resamples > options.resamples {
                comparison.deltas = refine(&common.arms(&[0, arm]), cohort, options)
                    .map_err(AnalysisError::during(what()))?;
            }
            self.corrected.level(&comparison);
            self.corrected.comparisons.push(comparison);
        }
        self.one_eye(pairs, common, cohort)
    }

    /// The same with one eye of each patient, where patients and eyes are known.
    fn one_eye(&mut self, pairs: &[&Pair<'_>], common: &Common, cohort: &Cohort) -> Result<()> {
        let what = || format!("One-eye deltas on `{}`", cohort.dataset());
        let kept = cohort.one_eye();
        let reduced = kept
            .as_ref()
            .map(|kept| common.retain(|image| kept.contains(&image)));
        if reduced
            .as_ref()
            .is_some_and(|r| r.scored.images().len() < common.scored.images().len())
        {
            self.reduced.insert(cohort.dataset().to_owned());
        }
        let rows = reduced.as_ref().unwrap_or(common);
        let options = self.options;
        let specs = specs(&METRICS);
        let drawn = rows
            .draw(&specs, cohort, options.resamples, options)
            .map_err(AnalysisError::during(what()))?;
        let (base, tuned) = drawn.split_first().expect("the base comes first");
        for (pair, tuned) in pairs.iter().zip(tuned) {
            let domain = pair.domain(cohort.dataset());
            for ((spec, base), tuned) in specs.iter().zip(base).zip(tuned) {
                tuned
                    .minus(base)
                    .and_then(|delta| {
                        let sum = self.one_eye.entry((domain.into(), spec.id)).or_default();
                        sum.add(cohort.dataset(), &delta)
                    })
                    .map_err(AnalysisError::during(what()))?;
            }
        }
        Ok(())
    }

    /// One comparison as the paper's code makes it: images drawn, one seed, label mismatches dropped.
    fn published(&mut self, pair: &Pair<'_>) -> Result<()> {
        if pair.base.analysis.track(Track::AsPublished).is_none()
            || pair.tuned.analysis.track(Track::AsPublished).is_none()
        {
            return Ok(());
        }
        let cell = &pair.tuned.analysis.cell;
        let columns =
            [pair.base_rows, pair.tuned_rows].map(|rows| rows.columns(Track::AsPublished));
        let common = Common::of(&[&columns[0], &columns[1]]);
        let plan = Plan {
            resamples: self.options.published_resamples,
            seed: self.options.published_seed,
            units: Units::Images,
        };
        let specs = specs(&METRICS);
        let drawn = draw(&common.scored, &specs, &plan).map_err(AnalysisError::in_cell(cell))?;
        let mut comparison = pair.comparison(&common, "image");
        for (place, spec) in specs.iter().enumerate() {
            let (base, tuned) = (&drawn[0][place], &drawn[1][place]);
            let delta = tuned.minus(base).map_err(AnalysisError::in_cell(cell))?;
            comparison
                .deltas
                .push(DeltaEntry::of(spec.id, base, tuned, &delta));
        }
        self.published.level(&comparison);
        comparison
            .deltas
            .retain(|delta| PUBLISHED_METRICS.contains(&delta.metric));
        self.published.comparisons.push(comparison);
        Ok(())
    }

    /// The tables, with q-values.
    pub fn finish(self) -> Result<FineTuning> {
        let mut tables = Vec::new();
        let one_eye = table::one_eye(&self.one_eye);
        for (track, sums) in [
            (Track::Corrected, self.corrected),
            (Track::AsPublished, self.published),
        ] {
            if !sums.comparisons.is_empty() || !sums.unpaired.is_empty() {
                let mut table = sums.finish(track, self.options)?;
                if track == Track::Corrected {
                    table.one_eye.clone_from(&one_eye);
                    table.one_eye_sets = self.reduced.iter().cloned().collect();
                }
                tables.push(table);
            }
        }
        Ok(FineTuning { tables })
    }
}

impl Pair<'_> {
    fn domain(&self, dataset: &str) -> &'static str {
        if self.trained_on == dataset {
            "in_domain"
        } else {
            "out_of_domain"
        }
    }

    fn comparison(&self, common: &Common, kind: &'static str) -> Comparison {
        let cell = &self.tuned.analysis.cell;
        Comparison {
            dataset: cell.dataset.clone(),
            task: cell.task.clone(),
            model: self.model.clone(),
            trained_on: self.trained_on.clone(),
            domain: self.domain(&cell.dataset),
            n: common.scored.images().len(),
            n_pos: common
                .scored
                .labels()
                .iter()
                .filter(|label| **label)
                .count(),
            resampled: kind,
            label_mismatches: common.scored.mismatched,
            deltas: Vec::new(),
        }
    }
}
