//! `focus-host import` and `focus-host export`.

use super::CommandResult;
use super::args::{BothZeroArg, ExportArgs, ExportForm, ImportArgs, ImportCommand, OnBadRowArg};
use super::failure::{Code, Failure};
use super::output::Output;
use super::report::{catalogue, failure, open};
use crate::config::Folders;
use crate::eval::records_of;
use crate::report;
use focus_analysis::{Catalogue, Family};
use focus_exchange::{
    Aliases, BothZero, ExportFormat, ExportOptions, ImportOptions, ImportSummary, OnBadRow, Roster,
    export as write_export, import_focus_csv,
};
use focus_store::{DatasetIdentity, Record};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

pub(crate) fn run(command: &ImportCommand, out: &Output) -> CommandResult {
    match command {
        ImportCommand::FocusCsv(args) => import(args, out),
    }
}

fn import(args: &ImportArgs, out: &Output) -> CommandResult {
    let catalogue = catalogue(args.catalogue.as_deref())?;
    let mapped = Mapped::read(&args.data)?;
    let options = ImportOptions {
        tool_version: env!("CARGO_PKG_VERSION").into(),
        aliases: aliases(&catalogue),
        on_bad_row: match args.on_bad_row {
            OnBadRowArg::Error => OnBadRow::Error,
            OnBadRowArg::Drop => OnBadRow::Drop,
        },
        both_zero: match args.both_zero {
            BothZeroArg::Keep => BothZero::Keep,
            BothZeroArg::Missing => BothZero::Missing,
        },
        roster: match &args.metadata {
            Some(file) => Roster::Metadata(file),
            None if mapped.identities.is_empty() => Roster::Nothing,
            None => Roster::Records {
                records: &mapped.records,
                tasks: &mapped.tasks,
                identities: &mapped.identities,
            },
        },
        synthetic: args.synthetic,
        ..ImportOptions::default()
    };
    let summary = import_focus_csv(&args.folder, &args.out, &options)
        .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    report::store_grid(&open(&args.out)?).map_err(failure)?;
    out.either(&summary, || text(&summary, &args.out))
}

/// The catalogue's ids and other names, as file names may spell them.
fn aliases(catalogue: &Catalogue) -> Aliases {
    let mut aliases = Aliases::of_ids(catalogue.models().iter().map(|model| model.id.as_str()));
    for model in catalogue.models() {
        for name in &model.aliases {
            aliases.add(name, &model.id);
        }
    }
    aliases
}

/// Records of the datasets whose folders were given.
#[derive(Default)]
struct Mapped {
    records: Vec<Record>,
    tasks: BTreeSet<String>,
    identities: Vec<DatasetIdentity>,
}

impl Mapped {
    fn read(data: &[(String, String)]) -> Result<Self, Failure> {
        let folders = Folders::from_environment();
        let mut all = Self::default();
        for (dataset, folder) in data {
            let (records, identity) = records_of(dataset, Path::new(folder), &folders)?;
            all.tasks.extend(records.tasks);
            all.records.extend(records.rows);
            all.identities.push(identity);
        }
        Ok(all)
    }
}

fn text(summary: &ImportSummary, out: &Path) -> String {
    let mut text = String::new();
    let mut line =
        |name: &str, value: String| writeln!(text, "{name:<11}{value}").expect("text takes text");
    line(
        "read",
        format!(
            "{} files: {} cells, {} rows, {} images",
            summary.files, summary.cells, summary.rows, summary.images
        ),
    );
    line("labels", summary.labels.clone());
    if summary.unknown_labels > 0 {
        line("unlabelled", format!("{} rows", summary.unknown_labels));
    }
    for (reason, count) in &summary.excluded {
        line("excluded", format!("{count} rows: {reason}"));
    }
    for (reason, count) in &summary.dropped {
        line("dropped", format!("{count} rows: {reason}"));
    }
    for file in &summary.skipped_files {
        line("skipped", format!("file `{file}`"));
    }
    for cell in &summary.empty_cells {
        line("empty", cell.clone());
    }
    for (what, found) in [
        (
            "result ids that no known image bears",
            &summary.unmatched_ids,
        ),
        (
            "known test images that no result names",
            &summary.unmatched_images,
        ),
        (
            "labels of the data folder that differ from `ground_truth`",
            &summary.published_label_differs,
        ),
    ] {
        if found.count > 0 {
            line(
                "unmatched",
                format!("{} {what}: {}", found.count, found.examples.join(", ")),
            );
        }
    }
    if summary.both_zero > 0 {
        line(
            "both zero",
            format!("{} rows whose two probabilities are 0", summary.both_zero),
        );
    }
    if !summary.unknown_models.is_empty() {
        line(
            "unknown",
            format!(
                "models not in the catalogue: {}",
                summary.unknown_models.join(", ")
            ),
        );
    }
    for remark in &summary.remarks {
        line("note", remark.clone());
    }
    line("run", out.display().to_string());
    text
}

pub(crate) fn export(args: &ExportArgs, out: &Output) -> CommandResult {
    let run = open(&args.run)?;
    let cells = run
        .prediction_files()
        .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    if cells.is_empty() {
        return Err(Failure::new(
            Code::Input,
            format!("Run `{}` has no predictions", args.run.display()),
        )
        .with_hint(Some(
            "It may not be finished: repeat its `eval` command to resume it".into(),
        )));
    }
    let format = match args.format {
        ExportForm::Parquet => ExportFormat::Parquet,
        ExportForm::Csv => ExportFormat::Csv,
        ExportForm::FocusCsv => ExportFormat::FocusCsv,
    };
    let vision = Catalogue::embedded()
        .models()
        .iter()
        .filter(|model| model.family == Family::Vm)
        .map(|model| model.id.clone())
        .collect();
    let options = ExportOptions {
        per_cell: args.per_cell,
        answers: args.answers,
        vision_models: vision,
        ..ExportOptions::new(format)
    };
    let summary = write_export(&run, &args.out, &options)
        .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    out.either(&summary, || {
        let mut text = format!(
            "{} files, {} cells, {} rows in `{}`\n",
            summary.files,
            summary.cells,
            summary.rows,
            args.out.display()
        );
        for (what, left_out) in [
            ("cells", &summary.cells_left_out),
            ("rows", &summary.rows_left_out),
        ] {
            for (reason, count) in left_out {
                writeln!(text, "left out   {count} {what}: {reason}").expect("text takes text");
            }
        }
        text
    })
}
