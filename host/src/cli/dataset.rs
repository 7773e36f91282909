//! `focus-host dataset list|map`; fetch and audit have files of their own.

use super::CommandResult;
use super::args::DatasetCommand;
use super::failure::{Code, Failure};
use super::output::{Output, plain_table};
use crate::config::Folders;
use crate::eval;
use focus_datasets::{Descriptor, Limits, Mapped, MapperSource, Track, registry};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

pub(crate) fn run(command: &DatasetCommand, out: &Output) -> CommandResult {
    match command {
        DatasetCommand::Fetch(args) => super::fetch::run(args, out),
        DatasetCommand::Prepare(args) => super::prepare::run(args, out),
        DatasetCommand::Audit(args) => super::audit::run(args, out),
        DatasetCommand::List => list(out),
        DatasetCommand::Map {
            dataset,
            data,
            options,
            records,
        } => {
            let mapped = eval::map_labels(
                dataset,
                data.as_deref(),
                options,
                &Folders::from_environment(),
            )?;
            show(&mapped, records.as_deref(), out)
        }
    }
}

fn list(out: &Output) -> CommandResult {
    let folders = Folders::from_environment();
    let mut mappers: Vec<Descriptor> = Vec::new();
    for mapper in registry() {
        let source = MapperSource::Embedded(mapper.id.to_owned());
        let (descriptor, _) =
            focus_datasets::describe(&source, &Limits::default(), Some(&folders.mappers()))
                .map_err(|e| Failure::from_error(Code::Internal, &e, e.hint()))?;
        mappers.push(descriptor);
    }
    out.either(&mappers, || {
        let mut grid = plain_table();
        grid.set_header(["dataset", "title", "tasks", "licence", "where"]);
        for mapper in &mappers {
            let tasks: Vec<_> = mapper.tasks.iter().map(|task| task.id.as_str()).collect();
            grid.add_row([
                &mapper.id,
                &mapper.title,
                &tasks.join(", "),
                &mapper.licence,
                &mapper.route,
            ]);
        }
        grid.to_string()
    })
}

fn show(mapped: &Mapped, records: Option<&Path>, out: &Output) -> CommandResult {
    if let Some(file) = records {
        let mut lines = String::new();
        for record in &mapped.records {
            let line =
                serde_json::to_string(record).map_err(|e| Failure::internal(e.to_string()))?;
            lines.push_str(&line);
            lines.push('\n');
        }
        focus_store::write_atomic(file, lines.as_bytes())
            .map_err(|e| Failure::from_error(Code::Input, &e, e.hint()))?;
    }
    // The records are many and have a file of their own; the summary says what came of the rows.
    out.either(&summary(mapped), || text(mapped))
}

fn counts(mapped: &Mapped) -> BTreeMap<String, BTreeMap<String, [usize; 3]>> {
    let mut counts: BTreeMap<String, BTreeMap<String, [usize; 3]>> = BTreeMap::new();
    for record in &mapped.records {
        let split = record.sample.split.map_or("none", |split| split.as_str());
        for task in &mapped.summary.descriptor.tasks {
            let place = match record.label(&task.id, Track::Corrected).known() {
                Some(true) => 0,
                Some(false) => 1,
                None => 2,
            };
            counts
                .entry(task.id.clone())
                .or_default()
                .entry(split.into())
                .or_default()[place] += 1;
        }
    }
    counts
}

fn summary(mapped: &Mapped) -> serde_json::Value {
    let labels: BTreeMap<_, BTreeMap<_, _>> = counts(mapped)
        .into_iter()
        .map(|(task, splits)| {
            let splits = splits.into_iter().map(|(split, [positive, negative, unknown])| {
                (split, serde_json::json!({ "positive": positive, "negative": negative, "unknown": unknown }))
            });
            (task, splits.collect())
        })
        .collect();
    serde_json::json!({ "summary": mapped.summary, "labels": labels })
}

fn text(mapped: &Mapped) -> String {
    let s = &mapped.summary;
    let mut out = String::new();
    let mut line =
        |name: &str, value: String| writeln!(out, "{name:<10}{value}").expect("text takes text");
    line(
        "dataset",
        format!(
            "{} ({}), licence {}",
            s.descriptor.id, s.descriptor.title, s.descriptor.licence
        ),
    );
    if s.descriptor.synthetic {
        line(
            "",
            "SYNTHETIC: drawn by a program, says nothing about patients".into(),
        );
    }
    line(
        "mapper",
        format!("{}, blake3:{}", s.descriptor.version, s.mapper_digest),
    );
    for table in &s.tables {
        line("table", format!("{}: {} rows", table.path, table.rows));
    }
    line("records", mapped.records.len().to_string());
    if !s.missing.is_empty() {
        let few: Vec<_> = s.missing.iter().take(3).map(|m| m.image.clone()).collect();
        line(
            "missing",
            format!(
                "{} rows have no image file: {}",
                s.missing.len(),
                few.join(", ")
            ),
        );
    }
    if let Some(first) = s.unusable.first() {
        line(
            "unusable",
            format!(
                "{} masks or contours: `{}` {}",
                s.unusable.len(),
                first.file,
                first.reason
            ),
        );
    }
    if !s.unmatched.is_empty() {
        let few: Vec<_> = s.unmatched.iter().take(3).cloned().collect();
        line(
            "unlisted",
            format!(
                "{} image files have no row: {}",
                s.unmatched.len(),
                few.join(", ")
            ),
        );
    }
    let mut dropped: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &s.dropped {
        *dropped.entry(row.reason.as_str()).or_default() += 1;
    }
    for (reason, count) in dropped {
        line("dropped", format!("{count}: {reason}"));
    }
    let mut grid = plain_table();
    grid.set_header(["task", "split", "positive", "negative", "unknown"]);
    for (task, splits) in counts(mapped) {
        for (split, [positive, negative, unknown]) in splits {
            grid.add_row([
                task.clone(),
                split,
                positive.to_string(),
                negative.to_string(),
                unknown.to_string(),
            ]);
        }
    }
    out.push_str(&grid.to_string());
    out
}
