//! `focus-host report`.

use super::CommandResult;
use super::args::{Format, ReportArgs};
use super::failure::{Code, Failure};
use super::output::Output;
use crate::report::{self, ReportError};
use focus_store::RunView;

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

pub(super) fn failure(error: ReportError) -> Failure {
    let hint = error.hint();
    Failure::from_error(Code::Input, &error, hint)
}
