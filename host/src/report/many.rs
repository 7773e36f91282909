//! Runs taken together: analysed through `focus-analysis`, and for folders that hold predictions alone (imported, simulated),
//! stored beside them. Renders nothing.

use super::{ReportError, render_grid};
use crate::eval::FACTS_FILE;
use focus_analysis::{Catalogue, CellSource, Grid, GridAnalysis, Options, RunSource, metric_rows};
use focus_store::{Metrics, RunFolder, RunView, write_atomic};

/// Name of a run in its own stored report, which must not depend on where the folder is.
const ITSELF: &str = "this run";

/// Whether the folder is a run of `eval`, with answers of a model; else it holds predictions alone.
pub fn has_answers(run: &RunView) -> bool {
    run.path().join(FACTS_FILE).exists()
}

/// Every table over the cells of these runs.
pub fn analyse_runs(
    runs: Vec<(String, RunView)>,
    catalogue: Catalogue,
    options: &Options,
) -> Result<GridAnalysis, ReportError> {
    let sources: Vec<Box<dyn CellSource>> = runs
        .into_iter()
        .map(|(name, view)| Box::new(RunSource::new(name, view)) as Box<dyn CellSource>)
        .collect();
    Ok(Grid::open(sources, catalogue)?.analyse(options)?)
}

/// File names and texts of a stored report.
pub type Forms = Vec<(&'static str, String)>;

/// The tables of a folder of predictions, and its metrics.
pub fn stored_grid_forms(run: &RunView) -> Result<(Metrics, Forms), ReportError> {
    let view = RunView::open(run.path())?;
    let analysis = analyse_runs(
        vec![(ITSELF.into(), view)],
        Catalogue::embedded(),
        &Options::default(),
    )?;
    let metrics = Metrics::new(metric_rows(&analysis.cells))?;
    let form = |id| render_grid(&analysis, id).expect("a form of this room");
    Ok((
        metrics,
        vec![
            ("report.json", form("json")),
            ("report.md", form("markdown")),
        ],
    ))
}

/// Compute them and put them into the folder.
pub fn store_grid(run: &RunView) -> Result<(), ReportError> {
    let (metrics, forms) = stored_grid_forms(run)?;
    let folder = RunFolder::create_or_resume(run.path(), run.manifest())?;
    folder.write_metrics(&metrics)?;
    for (file, text) in forms {
        write_atomic(&folder.path().join(file), text.as_bytes())?;
    }
    Ok(())
}
