//! AUROC by dataset of vision encoders, general against ophthalmic (the paper's Table 4), and by task and model type
//! (Table 9).

use super::figure::Figure;
use super::view::Placed;
use crate::catalogue::{Catalogue, DatasetEntry, Family, Group, ModelType};
use crate::{Track, is_published_method, task_place};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Table 4 in one track.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncoderTable {
    /// Which track.
    pub track: Track,
    /// By dataset, largest difference first.
    pub rows: Vec<EncoderRow>,
}

/// Mean AUROC of vision encoders on one dataset, tasks pooled, linear probes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncoderRow {
    /// Dataset id.
    pub dataset: String,
    /// Its name.
    pub title: String,
    /// Country.
    pub country: Option<String>,
    /// Camera: `desktop` or `mobile`.
    pub device: Option<String>,
    /// General encoders.
    pub general: Figure,
    /// Ophthalmic encoders.
    pub ophthalmic: Figure,
    /// General minus ophthalmic, where both are there.
    pub difference: Option<f64>,
}

/// Table 9 in one track.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeTable {
    /// Which track.
    pub track: Track,
    /// Tasks, in the order of the columns.
    pub tasks: Vec<String>,
    /// By model type.
    pub rows: Vec<TypeRow>,
}

/// Mean AUROC of a model type, the paper's methods pooled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeRow {
    /// Family.
    pub family: Family,
    /// Group.
    pub group: Group,
    /// One for each task.
    pub auroc: Vec<Figure>,
}

fn pooled<'p, 'a>(placed: &'p [Placed<'a>]) -> impl Iterator<Item = (ModelType, &'p Placed<'a>)> {
    placed
        .iter()
        .filter(|cell| cell.adapter.is_none() && !cell.varied)
        .filter(|cell| cell.unusable().is_none() && is_published_method(cell.method))
        .filter_map(|cell| Some((cell.kind?, cell)))
}

/// Table 4 from the cells of one track.
pub(crate) fn encoders(placed: &[Placed<'_>], catalogue: &Catalogue, track: Track) -> EncoderTable {
    let mut found: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
    for (kind, cell) in pooled(placed) {
        let side = match (kind.family, kind.group) {
            (Family::Vm, Group::General) => 0,
            (Family::Vm, Group::Ophthalmic) => 1,
            _ => continue,
        };
        let values = found.entry(cell.dataset()).or_default();
        values[side].extend(cell.track.value("auroc"));
    }
    let mut rows: Vec<EncoderRow> = found
        .into_iter()
        .map(|(dataset, [general, ophthalmic])| {
            let known = catalogue.dataset(dataset);
            let (general, ophthalmic) = (
                Figure::mean(general, "no_values"),
                Figure::mean(ophthalmic, "no_values"),
            );
            let text =
                |get: fn(&DatasetEntry) -> &Option<String>| known.and_then(|d| get(d).clone());
            EncoderRow {
                dataset: dataset.into(),
                title: known.map_or_else(|| dataset.into(), |d| d.title.clone()),
                country: text(|d| &d.country),
                device: text(|d| &d.device),
                difference: general.value.zip(ophthalmic.value).map(|(g, o)| g - o),
                general,
                ophthalmic,
            }
        })
        .collect();
    let rank = |row: &EncoderRow| row.difference.unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|a, b| rank(b).total_cmp(&rank(a)).then(a.dataset.cmp(&b.dataset)));
    EncoderTable { track, rows }
}

/// Table 9 from the cells of one track.
pub(crate) fn types(placed: &[Placed<'_>], track: Track) -> TypeTable {
    let mut found: BTreeMap<ModelType, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    let mut tasks = BTreeSet::new();
    for (kind, cell) in pooled(placed) {
        tasks.insert((task_place(cell.task()), cell.task()));
        found
            .entry(kind)
            .or_default()
            .entry(cell.task())
            .or_default()
            .extend(cell.track.value("auroc"));
    }
    let tasks: Vec<&str> = tasks.into_iter().map(|(_, task)| task).collect();
    let rows = found
        .into_iter()
        .map(|(kind, values)| TypeRow {
            family: kind.family,
            group: kind.group,
            auroc: tasks
                .iter()
                .map(|task| {
                    let values = values.get(task).cloned().unwrap_or_default();
                    Figure::mean(values, "no_values")
                })
                .collect(),
        })
        .collect();
    TypeTable {
        track,
        tasks: tasks.into_iter().map(str::to_owned).collect(),
        rows,
    }
}
