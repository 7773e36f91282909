//! `focus-host dataset audit`.

use super::CommandResult;
use super::args::{AuditArgs, Format};
use super::failure::{Code, Failure};
use super::output::Output;
use crate::config::Folders;
use crate::eval::{Dataset, mapped_dataset, split};
use focus_curation::CurationError;
use focus_curation::audit::{
    Access, AuditInput, AuditOptions, Terms, Wanted, audit, markdown, text,
};
use focus_datasets::Access as Mapped;
use focus_store::write_atomic;
use std::process::ExitCode;

pub(crate) fn run(args: &AuditArgs, out: &Output) -> CommandResult {
    let asked = &args.dataset;
    let mapped = mapped_dataset(
        &asked.dataset,
        asked.data.as_deref(),
        &asked.options,
        &Folders::from_environment(),
    )?;
    let dataset = split(mapped, &super::eval::split(&args.split))?;
    let wanted: Vec<Wanted> = args
        .edges
        .iter()
        .map(|&edge| Wanted {
            model: format!("{edge} px"),
            width: edge,
            height: edge,
        })
        .collect();
    // A published file in both readings: what it gets wrong, and what is left of it.
    let plans = dataset.split.iter().chain(&dataset.published);
    let accounts: Vec<_> = plans.map(|plan| plan.account.clone()).collect();
    let terms = [terms(&dataset)];
    let input = AuditInput {
        records: &dataset.records,
        files: &dataset.files,
        accounts: &accounts,
        wanted: &wanted,
        terms: &terms,
    };
    let options = AuditOptions {
        floor: args.floor,
        ..AuditOptions::default()
    };
    let report = audit(&input, &options, &|_| {}).map_err(failure)?;
    let shown = match args.format {
        _ if out.json() => json(&report)?,
        Format::Json => json(&report)?,
        Format::Markdown => markdown(&report),
        Format::Text => text(&report),
    };
    match &args.out {
        None => {
            out.result(&shown)?;
        }
        Some(file) => write_atomic(file, shown.as_bytes())
            .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?,
    }
    Ok(if report.fails(args.strict) {
        ExitCode::from(Code::Difference as u8)
    } else {
        ExitCode::SUCCESS
    })
}

fn json<T: serde::Serialize>(report: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(report).map_err(|error| Failure::internal(error.to_string()))
}

fn failure(error: CurationError) -> Failure {
    let hint = error.hint();
    Failure::from_error(Code::Input, &error, hint)
}

fn terms(dataset: &Dataset) -> Terms {
    Terms {
        dataset: dataset.facts.id.clone(),
        licence: Some(dataset.facts.licence.clone()),
        access: match dataset.access {
            Mapped::Open => Access::Open,
            Mapped::Registration => Access::Registration,
            Mapped::Credentialed => Access::Credentialed,
            Mapped::Request => Access::Form,
        },
        route: dataset.route.clone(),
    }
}
