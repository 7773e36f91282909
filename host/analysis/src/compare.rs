//! Two runs against each other on the same images: paired differences of every headline metric, and what could not be
//! paired. Corrected track. It must not know how a run was made.

use crate::catalogue::Catalogue;
use crate::cell::{CellRows, headline};
use crate::cohort::{Cohort, Cohorts};
use crate::error::{AnalysisError, Result};
use crate::grid::{CellSource, agree};
use crate::name::ModelName;
use crate::options::Options;
use crate::paired::{Common, DeltaEntry, FamilyNote, family, only_in};
use crate::summary::canonical;
use crate::units::RowUnits;
use crate::{AS_PUBLISHED_SUFFIX, Track};
use focus_store::CellKey;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Which cells of a run are meant; none takes all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CompareSide {
    /// Method id.
    pub method: Option<String>,
    /// Model id or alias.
    pub model: Option<String>,
}

/// A comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunComparison {
    /// Name of the first run.
    pub a: String,
    /// Name of the second.
    pub b: String,
    /// Some images were drawn by a program.
    pub synthetic: bool,
    /// By dataset and task.
    pub tasks: Vec<ComparedTask>,
    /// Families of the q-values: one for each metric, over the tasks.
    pub families: Vec<FamilyNote>,
    /// Cells that are in no pair, and why.
    pub unpaired: Vec<CompareUnpaired>,
}

/// One pair of cells. Differences are B minus A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedTask {
    /// A's cell.
    pub a: CellKey,
    /// B's cell.
    pub b: CellKey,
    /// Images behind the differences: scored in both.
    pub n: usize,
    /// Of these, positive.
    pub n_pos: usize,
    /// What the intervals resample: `patient` or `image`.
    pub resampled: &'static str,
    /// Labelled test images that only A has.
    pub only_in_a: usize,
    /// Labelled test images that only B has.
    pub only_in_b: usize,
    /// Images that both have and A has no score for.
    pub failed_in_a: usize,
    /// Images that both have and B has no score for.
    pub failed_in_b: usize,
    /// `base` is A, `other` is B.
    pub deltas: Vec<DeltaEntry>,
}

/// A cell without a partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompareUnpaired {
    /// `a` or `b`.
    pub side: &'static str,
    /// Which cell.
    pub cell: CellKey,
    /// Why.
    pub reason: String,
}

/// Compares A with B. Cells with the same four names are pairs; where a method or model is named, and where no names are
/// shared, A's only cell of a dataset and task is paired with B's only one.
///
/// # Errors
/// A run that cannot be read; runs that disagree about an image; nothing to pair.
pub fn compare(
    a: &dyn CellSource,
    b: &dyn CellSource,
    sides: &[CompareSide; 2],
    catalogue: &Catalogue,
    options: &Options,
) -> Result<RunComparison> {
    let mut cohorts = Cohorts::default();
    cohorts.add(a.name(), &a.records()?)?;
    cohorts.add(b.name(), &b.records()?)?;
    let cohorts = cohorts.finish();
    let mut unpaired = Vec::new();
    let lists = [
        list("a", a, &sides[0], catalogue, &mut unpaired)?,
        list("b", b, &sides[1], catalogue, &mut unpaired)?,
    ];
    let named = sides.iter().any(|side| *side != CompareSide::default());
    let pairs = pair(&lists, named, &mut unpaired);
    let mut tasks = Vec::new();
    for (cell_a, cell_b) in pairs {
        let cohort = cohorts
            .get(&cell_a.dataset)
            .ok_or_else(|| AnalysisError::NothingToPair {
                what: format!("no run has records of `{}`", cell_a.dataset),
            })?;
        let rows = [
            CellRows::join(&a.predictions(cell_a)?, cohort, a.name())?,
            CellRows::join(&b.predictions(cell_b)?, cohort, b.name())?,
        ];
        agree::check(&rows, cohort, |place| {
            [a.name(), b.name()][place].to_owned()
        })?;
        tasks.push(one(&rows, cohort, options)?);
    }
    if tasks.is_empty() {
        return Err(AnalysisError::NothingToPair {
            what: nothing(a, b, &unpaired),
        });
    }
    let families = q_values(&mut tasks, options.resamples)?;
    unpaired.sort_by(|a, b| (a.side, &a.cell).cmp(&(b.side, &b.cell)));
    Ok(RunComparison {
        a: a.name().into(),
        b: b.name().into(),
        synthetic: a.synthetic() || b.synthetic(),
        tasks,
        families,
        unpaired,
    })
}

type ByTask = BTreeMap<(String, String), Vec<CellKey>>;

/// The cells of one side that are meant, by dataset and task.
fn list(
    side: &'static str,
    source: &dyn CellSource,
    wanted: &CompareSide,
    catalogue: &Catalogue,
    unpaired: &mut Vec<CompareUnpaired>,
) -> Result<ByTask> {
    let mut cells = ByTask::new();
    for listed in source.cells()? {
        let cell = listed.cell;
        let name = ModelName::parse(&cell.model)?;
        let model = wanted.model.as_ref().is_none_or(|model| {
            *model == cell.model
                || (name.adapter.is_none()
                    && ModelName::parse(model).is_ok_and(|wanted| {
                        canonical(&wanted, catalogue) == canonical(&name, catalogue)
                    }))
        });
        let method = wanted
            .method
            .as_ref()
            .is_none_or(|method| *method == cell.method);
        if !(model && method) {
            continue;
        }
        let published = cell.method.ends_with(AS_PUBLISHED_SUFFIX);
        let reason = match listed.skipped {
            Some(why) => Some(format!("no result: {why}")),
            None => published.then(|| "its labels are the published ones".to_owned()),
        };
        match reason {
            Some(reason) => unpaired.push(CompareUnpaired { side, cell, reason }),
            None => cells
                .entry((cell.dataset.clone(), cell.task.clone()))
                .or_default()
                .push(cell),
        }
    }
    Ok(cells)
}

fn pair<'a>(
    [a, b]: &'a [ByTask; 2],
    named: bool,
    unpaired: &mut Vec<CompareUnpaired>,
) -> Vec<(&'a CellKey, &'a CellKey)> {
    let mut pairs = Vec::new();
    let places: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    for place in places {
        let of = |side: &'a ByTask| side.get(place).map_or(&[][..], Vec::as_slice);
        let (a, b) = (of(a), of(b));
        let mut leave = |cells: &[CellKey], side: &'static str, reason: &str| {
            unpaired.extend(cells.iter().map(|cell| CompareUnpaired {
                side,
                cell: cell.clone(),
                reason: reason.into(),
            }));
        };
        let shared: Vec<&CellKey> = a.iter().filter(|cell| b.contains(cell)).collect();
        match (a, b) {
            ([], _) => leave(b, "b", "A has no cell of this dataset and task"),
            (_, []) => leave(a, "a", "B has no cell of this dataset and task"),
            ([one], [other]) if named || shared.is_empty() => pairs.push((one, other)),
            _ if !shared.is_empty() && !named => {
                let alone = |cells: &[CellKey]| -> Vec<CellKey> {
                    let alone = cells.iter().filter(|cell| !shared.contains(cell));
                    alone.cloned().collect()
                };
                leave(&alone(a), "a", "B has no cell of these names");
                leave(&alone(b), "b", "A has no cell of these names");
                pairs.extend(shared.iter().map(|cell| (*cell, *cell)));
            }
            _ => {
                let reason = format!(
                    "{} cells of A against {} of B: name method and model",
                    a.len(),
                    b.len()
                );
                leave(a, "a", &reason);
                leave(b, "b", &reason);
            }
        }
    }
    pairs
}

fn nothing(a: &dyn CellSource, b: &dyn CellSource, unpaired: &[CompareUnpaired]) -> String {
    let first = unpaired.first().map_or_else(
        || "neither has a cell of the names given".to_owned(),
        |cell| {
            format!(
                "`{}` of {}: {}",
                cell.cell,
                cell.side.to_uppercase(),
                cell.reason
            )
        },
    );
    format!("`{}` and `{}` share no cell; {first}", a.name(), b.name())
}

fn one([a, b]: &[CellRows; 2], cohort: &Cohort, options: &Options) -> Result<ComparedTask> {
    let columns = [a, b].map(|rows| rows.columns(Track::Corrected));
    let common = Common::of(&[&columns[0], &columns[1]]);
    let what = || format!("Differences between `{}` and `{}`", a.cell, b.cell);
    let specs = headline();
    let drawn = common
        .draw(&specs, cohort, options.resamples, options)
        .map_err(AnalysisError::during(what()))?;
    let mut deltas = Vec::new();
    for ((spec, base), other) in specs.iter().zip(&drawn[0]).zip(&drawn[1]) {
        let delta = other.minus(base).map_err(AnalysisError::during(what()))?;
        deltas.push(DeltaEntry::of(spec.id, base, other, &delta));
    }
    let [images_a, images_b] = [a, b].map(|rows| -> Vec<u32> {
        rows.labelled(Track::Corrected)
            .map(|row| row.image)
            .collect()
    });
    let failed = |own: &[u32], scored: &[u32], other: &[u32]| {
        own.iter()
            .filter(|image| {
                scored.binary_search(image).is_err() && other.binary_search(image).is_ok()
            })
            .count()
    };
    Ok(ComparedTask {
        a: a.cell.clone(),
        b: b.cell.clone(),
        n: common.scored.images().len(),
        n_pos: common
            .scored
            .labels()
            .iter()
            .filter(|label| **label)
            .count(),
        resampled: RowUnits::new(cohort, common.scored.images()).kind,
        only_in_a: only_in(&images_a, &images_b),
        only_in_b: only_in(&images_b, &images_a),
        failed_in_a: failed(&images_a, &columns[0].scored.images, &images_b),
        failed_in_b: failed(&images_b, &columns[1].scored.images, &images_a),
        deltas,
    })
}

fn q_values(tasks: &mut [ComparedTask], resamples: u32) -> Result<Vec<FamilyNote>> {
    let mut families = Vec::new();
    for (place, spec) in headline().into_iter().enumerate() {
        let p: Vec<_> = tasks.iter().map(|task| task.deltas[place].p).collect();
        let (q, note) = family("tasks", spec.id, &p, resamples)?;
        for (task, q) in tasks.iter_mut().zip(q) {
            task.deltas[place].q = q;
        }
        families.push(note);
    }
    Ok(families)
}
