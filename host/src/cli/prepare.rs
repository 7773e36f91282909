//! `focus-host dataset prepare`.

use super::CommandResult;
use super::args::PrepareArgs;
use super::failure::{Code, Failure};
use super::output::Output;
use crate::config::Folders;
use crate::eval::{mapped_dataset, spec_of};
use focus_curation::{PrepareJob, PrepareOutcome, prepare_all};
use focus_images::{Limits, PixelCache};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

pub(crate) fn run(args: &PrepareArgs, out: &Output) -> CommandResult {
    let folders = Folders::from_environment();
    let asked = &args.dataset;
    let dataset = mapped_dataset(
        &asked.dataset,
        asked.data.as_deref(),
        &asked.options,
        &folders,
    )?;
    let mut specs = Vec::new();
    for plugin in &args.plugins {
        let described = super::plugin::described(plugin, &folders)?;
        let wanted = |id: &str| args.models.is_empty() || args.models.iter().any(|m| m == id);
        let cards = described.models.iter().filter(|model| wanted(&model.id));
        specs.extend(cards.filter_map(|model| {
            spec_of(
                &model.preprocessing,
                args.field,
                super::eval::decode(args.decode),
            )
        }));
    }
    specs.sort_by_key(focus_images::PrepareSpec::canonical);
    specs.dedup();
    if specs.is_empty() {
        return Err(Failure::new(
            Code::Plugin,
            "None of these models takes pixels of a fixed size",
        ));
    }
    let cache = PixelCache::open_limited(&folders.cache, args.pixel_cache << 20)
        .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    let bar = out.image_bar(dataset.files.len() as u64);
    let job = PrepareJob {
        files: &dataset.files,
        expected: &[],
        specs: &specs,
        cache: &cache,
        limits: Limits::default(),
        threads: 0,
    };
    let report = prepare_all(&job, &|progress| {
        if let Some(bar) = &bar {
            bar.set_position(progress.done);
        }
        ControlFlow::Continue(())
    })
    .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let failed: Vec<_> = report
        .outcomes
        .iter()
        .zip(&dataset.records.rows)
        .filter_map(|(outcome, record)| match outcome {
            PrepareOutcome::Failed { kind, message } => Some(serde_json::json!({
                "path": record.path, "kind": kind, "message": message,
            })),
            _ => None,
        })
        .collect();
    let told = serde_json::json!({
        "images": dataset.files.len(),
        "sizes": specs.iter().map(focus_images::PrepareSpec::canonical).collect::<Vec<_>>(),
        "made": report.made,
        "present": report.present,
        "entries": report.entries,
        "failed": failed,
    });
    out.either(&told, || {
        let mut text = format!(
            "{} images at {} sizes: {} prepared now, {} before, {} failed\n",
            dataset.files.len(),
            specs.len(),
            report.made,
            report.present,
            failed.len()
        );
        for spec in &specs {
            writeln!(text, "size     {}", spec.canonical()).expect("text takes text");
        }
        for (kind, count) in &report.failed {
            writeln!(text, "failed   {count} {kind}").expect("text takes text");
        }
        text
    })?;
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Code::CellFailed as u8)
    })
}
