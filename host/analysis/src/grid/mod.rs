//! Many runs as one list of cells: loading, agreement between runs, every cell's analysis, and what needs cells side by
//! side. Predictions are in memory for one dataset at a time. It must not know how a table is rendered.

pub(crate) mod agree;
mod coverage;
mod source;

pub use coverage::{Coverage, CoverageRow, CoverageStatus, Expectation};
pub use source::{CellSource, Listed, MemorySource, RunSource};

use crate::catalogue::Catalogue;
use crate::cell::{CellAnalysis, CellContext, CellRows, analyse_together};
use crate::cohort::{Cohort, Cohorts};
use crate::error::{AnalysisError, Result};
use crate::name::ModelName;
use crate::options::Options;
use crate::paired::{FineTuning, Leaderboards};
use crate::summary::Summary;
use crate::{AS_PUBLISHED_SUFFIX, Track};
use focus_store::CellKey;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A cell of the grid and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridCell {
    /// Place of its run among the sources.
    pub source: usize,
    /// The published labels have a cell of their own.
    pub published_apart: bool,
    /// Why it has no predictions, where it has none.
    pub skipped: Option<String>,
}

/// Runs, their cells, and their datasets' images.
pub struct Grid {
    sources: Vec<Box<dyn CellSource>>,
    cohorts: BTreeMap<String, Cohort>,
    cells: BTreeMap<CellKey, GridCell>,
    catalogue: Catalogue,
    notes: Vec<String>,
}

/// Everything computed from a grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridAnalysis {
    /// Names of the runs.
    pub runs: Vec<String>,
    /// Some images were drawn by a program: nothing here says anything about patients.
    pub synthetic: bool,
    /// What was drawn how often.
    pub options: Options,
    /// Cells in order of their four names.
    pub cells: Vec<CellAnalysis>,
    /// Cells without predictions, and why.
    pub skipped: Vec<SkippedCell>,
    /// Every table.
    pub summary: Summary,
    /// Remarks a reader must see.
    pub notes: Vec<String>,
}

/// A cell without predictions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedCell {
    /// Which cell.
    pub cell: CellKey,
    /// Why.
    pub reason: String,
}

impl Grid {
    /// Lists the cells of these runs and merges their records; each run's own facts extend the catalogue.
    ///
    /// # Errors
    /// A run that cannot be read; two runs that disagree about an image, or hold one cell with different predictions; a
    /// model's name that cannot be taken apart.
    pub fn open(sources: Vec<Box<dyn CellSource>>, mut catalogue: Catalogue) -> Result<Self> {
        let mut cohorts = Cohorts::default();
        let mut cells: BTreeMap<CellKey, GridCell> = BTreeMap::new();
        let mut notes = BTreeSet::new();
        for (place, source) in sources.iter().enumerate() {
            if let Some(facts) = source.facts()? {
                notes.extend(catalogue.merge(&facts));
            }
            cohorts.add(source.name(), &source.records()?)?;
            for listed in source.cells()? {
                ModelName::parse(&listed.cell.model)?;
                let found = GridCell {
                    source: place,
                    published_apart: false,
                    skipped: listed.skipped,
                };
                match cells.get_mut(&listed.cell) {
                    None => {
                        cells.insert(listed.cell, found);
                    }
                    // One run has it and the other gives a reason why it does not.
                    Some(held) if held.skipped.is_some() => *held = found,
                    Some(_) if found.skipped.is_some() => {}
                    Some(held) => {
                        same_predictions(
                            &listed.cell,
                            sources[held.source].as_ref(),
                            source.as_ref(),
                        )?;
                    }
                }
            }
        }
        let apart: Vec<CellKey> = cells
            .keys()
            .filter_map(|cell| {
                Some(CellKey {
                    method: cell.method.strip_suffix(AS_PUBLISHED_SUFFIX)?.to_owned(),
                    ..cell.clone()
                })
            })
            .collect();
        for cell in apart {
            if let Some(twin) = cells.get_mut(&cell) {
                twin.published_apart = true;
            }
        }
        Ok(Self {
            cohorts: cohorts.finish(),
            sources,
            cells,
            catalogue,
            notes: notes.into_iter().collect(),
        })
    }

    /// Its cells, with or without predictions.
    pub fn cells(&self) -> &BTreeMap<CellKey, GridCell> {
        &self.cells
    }

    /// Its datasets' images.
    pub fn cohorts(&self) -> &BTreeMap<String, Cohort> {
        &self.cohorts
    }

    /// The catalogue, extended by what the runs know.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// A cell's predictions, joined to its dataset's images.
    ///
    /// # Errors
    /// A stored table that cannot be read; a join that is not one to one.
    pub fn rows(&self, cell: &CellKey) -> Result<CellRows> {
        let source = self
            .cells
            .get(cell)
            .map(|found| self.sources[found.source].as_ref())
            .ok_or_else(|| AnalysisError::NothingToPair {
                what: format!("no run holds the cell `{cell}`"),
            })?;
        let predictions = source.predictions(cell)?;
        CellRows::join(&predictions, self.cohort(cell, source)?, source.name())
    }

    fn cohort(&self, cell: &CellKey, source: &dyn CellSource) -> Result<&Cohort> {
        self.cohorts
            .get(&cell.dataset)
            .ok_or_else(|| AnalysisError::NothingToPair {
                what: format!(
                    "the records of `{}` hold no image of `{}`",
                    source.name(),
                    cell.dataset
                ),
            })
    }

    /// Every cell, every table.
    ///
    /// # Errors
    /// As [`Grid::rows`]; a label that two arms disagree about; a value that a metric refuses.
    pub fn analyse(&self, options: &Options) -> Result<GridAnalysis> {
        let mut cells = Vec::new();
        let mut boards = Leaderboards::builder(options);
        let mut tuning = FineTuning::builder(options);
        let by_dataset = self.present_by_dataset();
        for (dataset, keys) in &by_dataset {
            let rows: Vec<CellRows> = keys
                .par_iter()
                .map(|cell| self.rows(cell))
                .collect::<Result<_>>()?;
            let Some(cohort) = self.cohorts.get(*dataset) else {
                continue;
            };
            agree::check(&rows, cohort, |place| {
                let cell = &rows[place].cell;
                self.sources[self.cells[cell].source].name().to_owned()
            })?;
            // Keys are sorted by dataset, then task.
            for rows in rows.chunk_by(|a, b| a.cell.task == b.cell.task) {
                let with_context: Vec<_> = rows
                    .iter()
                    .map(|rows| (rows, self.context(&rows.cell)))
                    .collect();
                let analysed = analyse_together(&with_context, cohort, options)?;
                boards.add(&analysed, cohort, &self.catalogue)?;
                tuning.add(rows, &analysed, cohort, &self.catalogue)?;
                cells.extend(analysed.into_iter().map(|cell| cell.analysis));
            }
        }
        cells.sort_by(|a, b| a.cell.cmp(&b.cell));
        let skipped: Vec<SkippedCell> = self
            .cells
            .iter()
            .filter_map(|(cell, found)| {
                Some(SkippedCell {
                    cell: cell.clone(),
                    reason: found.skipped.clone()?,
                })
            })
            .collect();
        let summary = Summary::of(
            &cells,
            &skipped,
            &self.catalogue,
            boards.finish()?,
            tuning.finish()?,
        )?;
        Ok(GridAnalysis {
            runs: self.sources.iter().map(|s| s.name().to_owned()).collect(),
            synthetic: self.sources.iter().any(|source| source.synthetic()),
            options: *options,
            cells,
            skipped,
            summary,
            notes: self.notes.clone(),
        })
    }

    /// What the analysis of a cell needs to know beyond its rows.
    fn context(&self, cell: &CellKey) -> CellContext {
        let found = &self.cells[cell];
        CellContext {
            error_budget: self.sources[found.source].error_budget(),
            published_apart: found.published_apart,
        }
    }

    fn present_by_dataset(&self) -> BTreeMap<&str, Vec<&CellKey>> {
        let mut by_dataset: BTreeMap<&str, Vec<&CellKey>> = BTreeMap::new();
        for (cell, _) in self
            .cells
            .iter()
            .filter(|(_, found)| found.skipped.is_none())
        {
            by_dataset.entry(&cell.dataset).or_default().push(cell);
        }
        by_dataset
    }
}

fn same_predictions(cell: &CellKey, first: &dyn CellSource, second: &dyn CellSource) -> Result<()> {
    if first.predictions(cell)? == second.predictions(cell)? {
        return Ok(());
    }
    Err(AnalysisError::TwoRuns {
        cell: Box::new(cell.clone()),
        first: first.name().into(),
        second: second.name().into(),
    })
}

/// Tracks that any of these cells is in.
pub(crate) fn tracks_present(cells: &[CellAnalysis]) -> Vec<Track> {
    let has = |track: &Track| cells.iter().any(|cell| cell.track(*track).is_some());
    Track::ALL.into_iter().filter(has).collect()
}
