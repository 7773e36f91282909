//! `focus-host report`.

use super::CommandResult;
use super::args::{AnalysisArgs, Format, ReportArgs};
use super::failure::{Code, Failure};
use super::output::Output;
use crate::report::{self, ReportError};
use focus_analysis::{Catalogue, Options};
use focus_store::{RunView, StoreError, write_atomic};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &ReportArgs, out: &Output) -> CommandResult {
    let form = match args.format {
        _ if out.json() => "json",
        Format::Text => "text",
        Format::Markdown => "markdown",
        Format::Json => "json",
    };
    let mut runs = Vec::new();
    for folder in &args.runs {
        runs.push((folder.display().to_string(), open(folder)?));
    }
    let options = options(&args.analysis);
    let alone = runs.len() == 1 && report::has_answers(&runs[0].1);
    let text = if alone {
        let (report, _) = report::gather(&runs[0].1, &options).map_err(failure)?;
        report::render(&report, form)
    } else {
        let catalogue = catalogue(args.analysis.catalogue.as_deref())?;
        let analysis = report::analyse_runs(runs, catalogue, &options).map_err(failure)?;
        report::render_grid(&analysis, form)
    };
    let text = text.ok_or_else(|| Failure::internal(format!("No renderer named `{form}`")))?;
    match &args.out {
        None => out.result(&text),
        Some(file) => {
            write_atomic(file, text.as_bytes())
                .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The embedded catalogue, with a user's file over it.
pub(super) fn catalogue(file: Option<&Path>) -> Result<Catalogue, Failure> {
    let mut catalogue = Catalogue::embedded();
    if let Some(file) = file {
        catalogue
            .extend_from(file)
            .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    }
    Ok(catalogue)
}

/// What the analysis is computed with.
pub(super) fn options(args: &AnalysisArgs) -> Options {
    Options {
        resamples: args.resamples,
        family_resamples: args.family_resamples,
        permutations: args.permutations,
        seed: args.seed,
        ..Options::default()
    }
}

/// Open a run folder for reading.
pub(super) fn open(folder: &Path) -> Result<RunView, Failure> {
    RunView::open(folder).map_err(|error| {
        let hint = match &error {
            // The store's advice is for starting a run there.
            StoreError::NotARun { .. } | StoreError::Io { .. } => {
                Some("Give a folder that `eval` wrote: its last line names it".into())
            }
            other => other.hint(),
        };
        Failure::from_error(Code::Input, &error, hint)
    })
}

pub(super) fn failure(error: ReportError) -> Failure {
    let hint = error.hint();
    Failure::from_error(Code::Input, &error, hint)
}
