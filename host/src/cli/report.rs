//! `focus-host report`.

use super::CommandResult;
use super::args::{Format, ReportArgs};
use super::failure::{Code, Failure};
use super::output::Output;
use crate::report::{self, ReportError};
use focus_store::{RunView, StoreError};
use std::path::Path;

pub(crate) fn run(args: &ReportArgs, out: &Output) -> CommandResult {
    let run =
        RunView::open(&args.run).map_err(|e| Failure::from_error(Code::Input, &e, e.hint()))?;
    let (report, _) = report::gather(&run).map_err(failure)?;
    let form = match args.format {
        _ if out.json() => "json",
        Format::Text => "text",
        Format::Markdown => "markdown",
        Format::Json => "json",
    };
    let text = report::render(&report, form)
        .ok_or_else(|| Failure::internal(format!("No renderer named `{form}`")))?;
    out.result(&text)
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
