//! Method-aware means (the paper's Table 3): task, model type and method against the axes, and the Overall block. Owns
//! which cells a mean takes in each track.

use super::figure::{Figure, mean, standard_deviation};
use super::view::{LeftOut, Placed};
use crate::catalogue::{Family, Group, ModelType};
use crate::cohort::median;
use crate::subgroup_ids::{FAIRNESS_GAPS, QUALITY_GAPS};
use crate::{TASK_ORDER, Track, task_place};
use focus_metrics::{Axis, overall};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Table 3 in one track.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeansTable {
    /// Which track.
    pub track: Track,
    /// By task, model type and method.
    pub rows: Vec<MeansRow>,
    /// The same over the paper's three tasks, weighted. Published: 7:7:5 (performance), 2:2:3 (Fairness), 1:1:1
    /// (Quality). Corrected: by the datasets behind each task's mean. Shift is computed over datasets, tasks pooled.
    pub overall: Vec<MeansRow>,
    /// Cells that no mean takes, and why.
    pub left_out: Vec<LeftOut>,
}

/// Means of one model type under one method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeansRow {
    /// Task id, or `overall`.
    pub task: String,
    /// Family.
    pub family: Family,
    /// Group.
    pub group: Group,
    /// Method id.
    pub method: String,
    /// Models averaged over.
    pub models: usize,
    /// Cells averaged over.
    pub cells: usize,
    /// Datasets averaged over.
    pub datasets: BTreeSet<String>,
    /// Mean accuracy.
    pub accuracy: Figure,
    /// Mean AUROC.
    pub auroc: Figure,
    /// Mean AUPRC.
    pub auprc: Figure,
    /// Mean ECE.
    pub ece: Figure,
    /// 1 - mean over gap columns, each averaged over its cells; `n` counts datasets.
    pub fairness: Figure,
    /// The same over the image-quality gaps; `n` counts datasets.
    pub quality: Figure,
    /// 1 - (largest - smallest mean AUROC of a dataset); `n` counts datasets.
    pub shift: Figure,
    /// Standard deviation of the datasets' mean AUROC; corrected track alone. `n` counts datasets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_dataset_sd: Option<Figure>,
}

type Key<'a> = (usize, &'a str, ModelType, &'a str);

/// The table from the cells of one track.
pub(crate) fn means(placed: &[Placed<'_>], track: Track) -> MeansTable {
    let (cells, left_out) = usable(placed, track);
    let mut groups: BTreeMap<Key<'_>, Vec<&Placed<'_>>> = BTreeMap::new();
    let mut pooled: BTreeMap<(ModelType, &str), Vec<&Placed<'_>>> = BTreeMap::new();
    for cell in cells {
        let kind = cell.kind.expect("cells of unknown type were left out");
        let task = cell.task();
        groups
            .entry((task_place(task), task, kind, cell.method))
            .or_default()
            .push(cell);
        if TASK_ORDER.contains(&task) {
            pooled.entry((kind, cell.method)).or_default().push(cell);
        }
    }
    let mut rows: Vec<MeansRow> = groups
        .iter()
        .map(|((_, task, kind, method), cells)| row(task, *kind, method, cells, track))
        .collect();
    if track == Track::AsPublished {
        fill(&mut rows, |row| &mut row.fairness);
        fill(&mut rows, |row| &mut row.quality);
    }
    let overall = pooled
        .iter()
        .map(|((kind, method), cells)| {
            let all = row("overall", *kind, method, cells, track);
            weighted(all, &rows, track)
        })
        .collect();
    MeansTable {
        track,
        rows,
        overall,
        left_out,
    }
}

/// The cells that means take, and those that they do not.
fn usable<'p, 'a>(placed: &'p [Placed<'a>], track: Track) -> (Vec<&'p Placed<'a>>, Vec<LeftOut>) {
    let mut cells = Vec::new();
    let mut left_out = Vec::new();
    for cell in placed.iter().filter(|c| c.adapter.is_none() && !c.varied) {
        let reason = match cell.kind {
            None => Some("model_type_unknown"),
            Some(_) => cell.unusable(),
        };
        match reason {
            Some(reason) => left_out.push(cell.left_out(reason)),
            None => cells.push(cell),
        }
    }
    if track == Track::Corrected {
        let common = common_datasets(&cells);
        cells.retain(|cell| {
            let kept = common[cell.task()].contains(cell.dataset());
            if !kept {
                left_out.push(cell.left_out("not_common"));
            }
            kept
        });
    }
    left_out.sort_by(|a, b| (&a.cell, a.reason).cmp(&(&b.cell, b.reason)));
    (cells, left_out)
}

/// By task, the datasets on which every model and method of the task has a usable cell: rows of one block are means over
/// the same datasets, or they cannot be compared.
fn common_datasets<'p>(cells: &[&'p Placed<'_>]) -> BTreeMap<&'p str, BTreeSet<&'p str>> {
    let mut arms: BTreeMap<&str, BTreeMap<(&str, &str), BTreeSet<&str>>> = BTreeMap::new();
    for cell in cells {
        arms.entry(cell.task())
            .or_default()
            .entry((&cell.model, cell.method))
            .or_default()
            .insert(cell.dataset());
    }
    arms.into_iter()
        .map(|(task, arms)| {
            let all = arms
                .into_values()
                .reduce(|a, b| a.intersection(&b).copied().collect());
            (task, all.unwrap_or_default())
        })
        .collect()
}

fn row(task: &str, kind: ModelType, method: &str, cells: &[&Placed<'_>], track: Track) -> MeansRow {
    let mean_of = |id: &str| {
        Figure::mean(
            cells.iter().filter_map(|cell| cell.track.value(id)),
            "no_values",
        )
    };
    let by_dataset = dataset_means(cells);
    let corrected = track == Track::Corrected;
    let shift = match (by_dataset.len(), corrected) {
        (0, _) => Figure::missing("no_values"),
        // One dataset shows no shift at all, which is no evidence of robustness.
        (1, true) => Figure::missing("one_dataset"),
        (n, _) => {
            let largest = by_dataset.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let smallest = by_dataset.iter().copied().fold(f64::INFINITY, f64::min);
            Figure::of((1.0 - (largest - smallest)).clamp(0.0, 1.0), n)
        }
    };
    let attributes: &[&str] = if corrected { &["age", "sex"] } else { &["age"] };
    MeansRow {
        task: task.into(),
        family: kind.family,
        group: kind.group,
        method: method.into(),
        models: cells
            .iter()
            .map(|c| &c.model)
            .collect::<BTreeSet<_>>()
            .len(),
        cells: cells.len(),
        datasets: cells.iter().map(|c| c.dataset().to_owned()).collect(),
        accuracy: mean_of("accuracy"),
        auroc: mean_of("auroc"),
        auprc: mean_of("auprc"),
        ece: mean_of("ece"),
        fairness: one_minus_gaps(cells, attributes, &FAIRNESS_GAPS),
        quality: one_minus_gaps(cells, &["quality"], &QUALITY_GAPS),
        shift,
        between_dataset_sd: corrected.then(|| {
            standard_deviation(&by_dataset).map_or(Figure::missing("one_dataset"), |sd| {
                Figure::of(sd, by_dataset.len())
            })
        }),
    }
}

/// Mean AUROC of each dataset.
fn dataset_means(cells: &[&Placed<'_>]) -> Vec<f64> {
    let mut by_dataset: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        if let Some(auroc) = cell.track.value("auroc") {
            by_dataset.entry(cell.dataset()).or_default().push(auroc);
        }
    }
    by_dataset.values().filter_map(|v| mean(v)).collect()
}

fn one_minus_gaps(cells: &[&Placed<'_>], attributes: &[&str], gaps: &[&str]) -> Figure {
    let mut columns = Vec::new();
    let mut datasets = BTreeSet::new();
    for attribute in attributes {
        for gap in gaps {
            let mut column = Vec::new();
            for cell in cells {
                if let Some(value) = cell.track.gap(attribute, gap) {
                    column.push(value);
                    datasets.insert(cell.dataset());
                }
            }
            columns.extend(mean(&column));
        }
    }
    mean(&columns).map_or(Figure::missing("no_subgroups"), |gap| {
        Figure::of((1.0 - gap).clamp(0.0, 1.0), datasets.len())
    })
}

/// As published: a missing entry of a column is the median of the others.
fn fill(rows: &mut [MeansRow], column: fn(&mut MeansRow) -> &mut Figure) {
    let present = rows
        .iter_mut()
        .filter_map(|row| column(row).value)
        .collect();
    let Some(middle) = median(present) else {
        return;
    };
    for row in rows {
        let figure = column(row);
        if figure.value.is_none() {
            *figure = Figure {
                filled: true,
                ..Figure::of(middle, 0)
            };
        }
    }
}

/// The Overall row: weighted means of the tasks' rows; Shift stays as computed over pooled tasks.
fn weighted(mut all: MeansRow, rows: &[MeansRow], track: Track) -> MeansRow {
    let tasks = TASK_ORDER.map(|task| {
        rows.iter().find(|row| {
            row.task == task
                && (row.family, row.group) == (all.family, all.group)
                && row.method == all.method
        })
    });
    let combine = |axis: Axis, column: fn(&MeansRow) -> Figure| -> Figure {
        let figures = tasks.map(|row| row.map(column));
        let weights = match track {
            Track::AsPublished => axis.published_weights(),
            Track::Corrected => tasks.map(|row| {
                row.map_or(0, |row| match axis {
                    Axis::Performance => row.datasets.len() as u32,
                    Axis::Fairness | Axis::Quality => column(row).n as u32,
                })
            }),
        };
        let n = figures.iter().flatten().map(|figure| figure.n).sum();
        overall(&figures.map(|figure| figure?.value), &weights)
            .map_or(Figure::missing("no_values"), |value| Figure::of(value, n))
    };
    all.accuracy = combine(Axis::Performance, |row| row.accuracy);
    all.auroc = combine(Axis::Performance, |row| row.auroc);
    all.auprc = combine(Axis::Performance, |row| row.auprc);
    all.ece = combine(Axis::Performance, |row| row.ece);
    all.fairness = combine(Axis::Fairness, |row| row.fairness);
    all.quality = combine(Axis::Quality, |row| row.quality);
    all
}
