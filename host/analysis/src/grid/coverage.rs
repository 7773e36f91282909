//! Which cells a grid should have, and which it has.

use super::SkippedCell;
use crate::Track;
use crate::catalogue::Catalogue;
use crate::cell::{CellAnalysis, CellStatus};
use crate::error::Result;
use crate::name::ModelName;
use crate::summary::canonical;
use crate::{is_published_method, plain_method};
use focus_store::CellKey;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a grid is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The benchmark of the paper, or its correction: 532 and 228 cells, or 476 and 204.
    Benchmark,
    /// Every model seen, with every method seen for it, on every pair seen.
    Seen,
}

/// How a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageStatus {
    /// It is there and may be used.
    Present,
    /// It is there, but more images failed than the error budget allows.
    Failed,
    /// It was tried and has no predictions.
    Skipped,
    /// No run has it.
    Missing,
}

/// Coverage of one track against one expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// Which track.
    pub track: Track,
    /// Against what.
    pub against: Expectation,
    /// Cells expected, adapters' cells not counted.
    pub expected: usize,
    /// Adapters' cells expected.
    pub expected_fine_tuned: usize,
    /// Expected cells by status.
    pub counts: BTreeMap<CoverageStatus, usize>,
    /// Every expected cell that is not present, and why.
    pub absent: Vec<CoverageRow>,
    /// Cells that are there and were not expected.
    pub unexpected: Vec<CellKey>,
}

/// A cell that is not present.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoverageRow {
    /// Which cell, under the catalogue's names.
    pub cell: CellKey,
    /// How it stands.
    pub status: CoverageStatus,
    /// Why.
    pub reason: String,
}

/// A cell's key under the catalogue's model id and the plain method.
fn plain(cell: &CellKey, catalogue: &Catalogue) -> Result<CellKey> {
    let name = ModelName::parse(&cell.model)?;
    let mut model = canonical(&name, catalogue);
    if let Some(adapter) = &name.adapter {
        model = format!("{model}+lora-{}-{}", adapter.dataset, adapter.task);
    }
    Ok(CellKey {
        method: plain_method(&cell.method).into(),
        model,
        ..cell.clone()
    })
}

impl Coverage {
    /// Holds cells against an expectation.
    ///
    /// # Errors
    /// A model's name that cannot be taken apart.
    pub fn of(
        cells: &[CellAnalysis],
        skipped: &[SkippedCell],
        catalogue: &Catalogue,
        track: Track,
        against: Expectation,
    ) -> Result<Self> {
        let mut found: BTreeMap<CellKey, (CoverageStatus, String)> = BTreeMap::new();
        for cell in skipped {
            found.insert(
                plain(&cell.cell, catalogue)?,
                (CoverageStatus::Skipped, cell.reason.clone()),
            );
        }
        for cell in cells.iter().filter(|cell| cell.track(track).is_some()) {
            let failed = cell.excluded.iter().map(|(why, n)| format!("{n} {why}"));
            let state = match cell.status {
                CellStatus::Ok => (CoverageStatus::Present, String::new()),
                CellStatus::Failed => (
                    CoverageStatus::Failed,
                    format!(
                        "of {} test images: {}",
                        cell.test,
                        failed.collect::<Vec<_>>().join(", ")
                    ),
                ),
            };
            found.insert(plain(&cell.cell, catalogue)?, state);
        }
        let expected = match against {
            Expectation::Benchmark => Catalogue::benchmark(track)
                .into_iter()
                .map(|cell| cell.cell)
                .collect(),
            Expectation::Seen => seen(&found, catalogue, track),
        };
        let mut counts = BTreeMap::new();
        let (mut absent, mut tuned) = (Vec::new(), 0);
        for cell in &expected {
            tuned += usize::from(cell.model.contains("+lora-"));
            let nothing = (CoverageStatus::Missing, "no run has it".to_owned());
            let (status, reason) = found.get(cell).cloned().unwrap_or(nothing);
            *counts.entry(status).or_insert(0) += 1;
            if status != CoverageStatus::Present {
                absent.push(CoverageRow {
                    cell: cell.clone(),
                    status,
                    reason,
                });
            }
        }
        let unexpected = found
            .iter()
            .filter(|(cell, (status, _))| {
                *status != CoverageStatus::Skipped && !expected.contains(*cell)
            })
            .map(|(cell, _)| cell.clone())
            .collect();
        Ok(Self {
            track,
            against,
            expected: expected.len() - tuned,
            expected_fine_tuned: tuned,
            counts,
            absent,
            unexpected,
        })
    }
}

/// Every model with its methods on every pair that any of them has. A pair that the catalogue does not give to this track
/// (referable DR of RFMiD, corrected) is not expected; an adapter is expected on its own task.
fn seen(
    found: &BTreeMap<CellKey, (CoverageStatus, String)>,
    catalogue: &Catalogue,
    track: Track,
) -> BTreeSet<CellKey> {
    let in_track = |dataset: &str, task: &str| {
        catalogue
            .dataset(dataset)
            .is_none_or(|known| known.tasks(track).iter().any(|t| t == task))
    };
    let pairs: BTreeSet<(&str, &str)> = found
        .keys()
        .map(|cell| (cell.dataset.as_str(), cell.task.as_str()))
        .filter(|(dataset, task)| in_track(dataset, task))
        .collect();
    let arms: BTreeSet<(&str, &str)> = found
        .keys()
        .filter(|cell| track == Track::Corrected || is_published_method(&cell.method))
        .map(|cell| (cell.method.as_str(), cell.model.as_str()))
        .collect();
    let mut cells = BTreeSet::new();
    for (method, model) in arms {
        let adapter = ModelName::parse(model).ok().and_then(|name| name.adapter);
        for (dataset, task) in &pairs {
            if adapter.as_ref().is_none_or(|a| a.task == *task) {
                cells.insert(CellKey::new(dataset, task, method, model));
            }
        }
    }
    cells
}
