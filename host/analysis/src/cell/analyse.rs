//! From joined rows to a cell's analysis. Cells that hold the same images are drawn in one call: the draws are the same
//! either way, since units belong to the test set.

use super::calibration::{self, PriorCorrected};
use super::drawn::{ArmDraw, Wanted, draw_arms};
use super::subgroup::{ATTRIBUTES, AttributeAnalysis, GapEntry, Grouping};
use super::{
    Calibration, CellAnalysis, CellRows, CellStatus, Counts, MetricEntry, TrackAnalysis,
    TrackColumns,
};
use crate::cohort::Cohort;
use crate::error::{AnalysisError, Result};
use crate::name::ModelName;
use crate::options::Options;
use crate::units::RowUnits;
use crate::{Track, tracks_of};
use focus_metrics::{
    Input, MetricError, MetricSpec, Plan, Role, Series, Units, gaps, metrics, metrics_of,
};
use rayon::prelude::*;

/// What the analysis of a cell needs to know beyond its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellContext {
    /// Share of labelled test images that may lack an answer.
    pub error_budget: f64,
    /// The run has a cell of its own for the published labels, because they differ.
    pub published_apart: bool,
}

/// A cell with what tables over several cells need of it.
pub(crate) struct Analysed {
    pub analysis: CellAnalysis,
    /// Rows of the corrected track, where the cell is in it.
    pub columns: Option<TrackColumns>,
    /// Resampled headline metrics of the corrected track, in the order of [`headline`]; empty without rows.
    pub series: Vec<Series>,
}

/// Arms drawn in one call: B values for each metric of each arm are in memory at once.
const BATCH: usize = 4;

/// The paper's metrics and the Brier scores.
pub(crate) fn headline() -> Vec<&'static MetricSpec> {
    metrics_of(Role::Headline)
}

/// The analysis of one cell.
///
/// # Errors
/// A model's name that cannot be taken apart; a value that a metric refuses.
pub fn analyse(
    rows: &CellRows,
    cohort: &Cohort,
    context: &CellContext,
    options: &Options,
) -> Result<CellAnalysis> {
    let mut all = analyse_together(&[(rows, *context)], cohort, options)?;
    Ok(all.remove(0).analysis)
}

/// The analyses of several cells of one dataset and task, in their order; each is what [`analyse`] gives.
pub(crate) fn analyse_together(
    cells: &[(&CellRows, CellContext)],
    cohort: &Cohort,
    options: &Options,
) -> Result<Vec<Analysed>> {
    let mut analysed: Vec<Analysed> = cells
        .par_iter()
        .map(|(rows, context)| begin(rows, *context, cohort))
        .collect::<Result<_>>()?;
    for batch in batches(&analysed) {
        let columns: Vec<&TrackColumns> = batch
            .iter()
            .map(|&at| analysed[at].columns.as_ref().expect("batched by columns"))
            .collect();
        let cell = &analysed[batch[0]].analysis.cell;
        let groupings = groupings(columns[0], cohort, Track::Corrected, false)
            .map_err(AnalysisError::in_cell(cell))?;
        let drawn =
            draw(&columns, &groupings, cohort, options).map_err(AnalysisError::in_cell(cell))?;
        let finished: Vec<(TrackAnalysis, Vec<Series>)> = drawn
            .into_par_iter()
            .zip(columns.into_par_iter().zip(&batch))
            .map(|(drawn, (columns, &at))| {
                let rows = cells[at].0;
                corrected(rows, columns, &groupings, drawn, cohort, options)
                    .map_err(AnalysisError::in_cell(&rows.cell))
            })
            .collect::<Result<_>>()?;
        for (&at, (track, series)) in batch.iter().zip(finished) {
            analysed[at].analysis.tracks.insert(0, track);
            analysed[at].series = series;
        }
    }
    Ok(analysed)
}

/// Counts, status, and the published track.
fn begin(rows: &CellRows, context: CellContext, cohort: &Cohort) -> Result<Analysed> {
    let cell = &rows.cell;
    let tracks = tracks_of(&cell.method, context.published_apart);
    let test = rows.labelled(tracks[0]).count();
    let failed = rows.labelled(tracks[0]).filter(|row| row.failed()).count();
    let over = failed as f64 > context.error_budget * test as f64;
    let adapter = ModelName::parse(&cell.model)?.adapter.is_some();
    let mut found = Vec::new();
    if tracks.contains(&Track::AsPublished) {
        let columns = rows.columns(Track::AsPublished);
        found.push(published(&columns, cohort, adapter).map_err(AnalysisError::in_cell(cell))?);
    }
    Ok(Analysed {
        analysis: CellAnalysis {
            cell: cell.clone(),
            status: if over {
                CellStatus::Failed
            } else {
                CellStatus::Ok
            },
            train: rows.train,
            train_failed: rows.train_failed,
            test,
            excluded: rows.excluded(tracks[0]),
            tracks: found,
        },
        columns: tracks
            .contains(&Track::Corrected)
            .then(|| rows.columns(Track::Corrected)),
        series: Vec::new(),
    })
}

/// Cells with the same rows, a few at a time; a cell whose decided rows are not its scored ones stands alone.
fn batches(analysed: &[Analysed]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for (at, cell) in analysed.iter().enumerate() {
        let Some(columns) = &cell.columns else {
            continue;
        };
        let fits = |batch: &Vec<usize>| {
            let other = analysed[batch[0]].columns.as_ref();
            batch.len() < BATCH
                && columns.decided.is_none()
                && other.is_some_and(|other| {
                    other.decided.is_none()
                        && other.scored.images == columns.scored.images
                        && other.scored.labels == columns.scored.labels
                })
        };
        match batches.iter_mut().find(|batch| fits(batch)) {
            Some(batch) => batch.push(at),
            None => batches.push(vec![at]),
        }
    }
    batches
}

/// The groups of every attribute. Where decided rows are not the scored ones, both must keep the rule.
fn groupings(
    columns: &TrackColumns,
    cohort: &Cohort,
    track: Track,
    adapter: bool,
) -> Result<Vec<[Grouping; 2]>, MetricError> {
    ATTRIBUTES
        .iter()
        .map(|attribute| {
            let of = |rows| Grouping::of(attribute, rows, cohort, track, adapter);
            let (mut scored, mut decided) = (of(&columns.scored)?, of(columns.decided())?);
            let skipped = scored.skipped.or(decided.skipped);
            (scored.skipped, decided.skipped) = (skipped, skipped);
            Ok([scored, decided])
        })
        .collect()
}

/// Draws all arms: score metrics on the scored rows, decision metrics on the decided ones.
fn draw(
    columns: &[&TrackColumns],
    groupings: &[[Grouping; 2]],
    cohort: &Cohort,
    options: &Options,
) -> Result<Vec<ArmDraw>, MetricError> {
    let of =
        |place: usize| -> Vec<&Grouping> { groupings.iter().map(|pair| &pair[place]).collect() };
    let scored: Vec<_> = columns.iter().map(|columns| &columns.scored).collect();
    if columns.iter().all(|columns| columns.decided.is_none()) {
        return draw_arms(&scored, &of(0), Wanted::All, cohort, options);
    }
    let decided: Vec<_> = columns.iter().map(|columns| columns.decided()).collect();
    let by_scores = draw_arms(
        &scored,
        &of(0),
        Wanted::Only(Input::Scores),
        cohort,
        options,
    )?;
    let by_decisions = draw_arms(
        &decided,
        &of(1),
        Wanted::Only(Input::Decisions),
        cohort,
        options,
    )?;
    Ok(by_scores
        .into_iter()
        .zip(by_decisions)
        .map(|(scores, decisions)| scores.merge(decisions))
        .collect())
}

/// The corrected track from what was drawn.
fn corrected(
    rows: &CellRows,
    columns: &TrackColumns,
    groupings: &[[Grouping; 2]],
    drawn: ArmDraw,
    cohort: &Cohort,
    options: &Options,
) -> Result<(TrackAnalysis, Vec<Series>), MetricError> {
    let scored = columns.scored.rows()?;
    let units = RowUnits::new(cohort, &columns.scored.images);
    let plan = units.plan(cohort, options.secondary_resamples, options);
    let entries = |role: Role| -> Vec<MetricEntry> {
        drawn
            .estimates
            .iter()
            .filter(|(spec, _)| spec.role == role)
            .map(|(spec, estimate)| match estimate {
                Some(estimate) => MetricEntry::estimated(spec.id, estimate),
                None => MetricEntry::plain(spec.id, spec.compute(&scored)),
            })
            .collect()
    };
    let prior_corrected = rows
        .balanced_fit(Track::Corrected)
        .filter(|_| !columns.scored.is_empty())
        .map(|train| PriorCorrected::of(&columns.scored, train, &plan))
        .transpose()?;
    let subgroups = groupings
        .iter()
        .zip(&drawn.attributes)
        .map(|(pair, drawn)| {
            let (gaps, standardised) = drawn.entries(pair[0].attribute);
            AttributeAnalysis::of(&pair[0], &drawn.gaps, gaps, standardised)
        })
        .collect();
    let Counts { n, n_pos, n_neg } = Counts::of(&columns.scored.labels);
    let track = TrackAnalysis {
        track: Track::Corrected,
        n,
        n_pos,
        n_neg,
        decided: columns
            .decided
            .as_ref()
            .map(|rows| Counts::of(&rows.labels)),
        resampled: (!columns.decided().is_empty()).then_some(units.kind),
        metrics: entries(Role::Headline),
        calibration: Some(Calibration {
            metrics: entries(Role::Calibration),
            prior_corrected,
        }),
        reliability: calibration::bins(&scored),
        subgroups,
    };
    Ok((track, drawn.series))
}

/// The published track: rows with label, parsed answer and score; no intervals, sizes of gaps alone.
fn published(
    columns: &TrackColumns,
    cohort: &Cohort,
    adapter: bool,
) -> Result<TrackAnalysis, MetricError> {
    let scored = columns.scored.rows()?;
    let specs = metrics().into_iter().filter(|spec| spec.as_published);
    let mut subgroups = Vec::new();
    for [grouping, _] in groupings(columns, cohort, Track::AsPublished, adapter)? {
        if grouping.skipped.is_some() {
            subgroups.push(AttributeAnalysis::of(&grouping, &[], vec![], vec![]));
            continue;
        }
        // One resample, whose interval is not used: this track has none.
        let plan = Plan {
            resamples: 1,
            seed: 0,
            units: Units::Images,
        };
        let found = gaps(
            &scored,
            &grouping.groups,
            &grouping.attribute.specs(),
            &plan,
            0,
        )?;
        let mut entries: Vec<GapEntry> = found
            .gaps
            .iter()
            .map(|gap| GapEntry::of(gap, None, false))
            .collect();
        if grouping.attribute.odds {
            entries.push(GapEntry::odds(
                found.equalized_odds,
                None,
                Track::AsPublished,
            ));
        }
        subgroups.push(AttributeAnalysis::of(
            &grouping,
            &found.gaps,
            entries,
            vec![],
        ));
    }
    let Counts { n, n_pos, n_neg } = Counts::of(&columns.scored.labels);
    Ok(TrackAnalysis {
        track: Track::AsPublished,
        n,
        n_pos,
        n_neg,
        decided: None,
        resampled: None,
        metrics: specs
            .map(|spec| MetricEntry::plain(spec.id, spec.compute(&scored)))
            .collect(),
        calibration: None,
        reliability: calibration::bins(&scored),
        subgroups,
    })
}
