//! `focus-host compare`.

use super::CommandResult;
use super::args::CompareArgs;
use super::failure::{Code, Failure};
use super::output::{Output, plain_table};
use super::report::{catalogue, open, options};
use crate::report::probability;
use comfy_table::CellAlignment;
use focus_analysis::{CompareSide, RunComparison, RunSource, compare};
use std::fmt::Write;

pub(crate) fn run(args: &CompareArgs, out: &Output) -> CommandResult {
    let source = |folder: &std::path::PathBuf| -> Result<RunSource, Failure> {
        Ok(RunSource::new(folder.display().to_string(), open(folder)?))
    };
    let (a, b) = (source(&args.base)?, source(&args.other)?);
    let sides = [
        CompareSide {
            method: args.base_method.clone(),
            model: args.base_model.clone(),
        },
        CompareSide {
            method: args.other_method.clone(),
            model: args.other_model.clone(),
        },
    ];
    let catalogue = catalogue(args.analysis.catalogue.as_deref())?;
    let found = compare(&a, &b, &sides, &catalogue, &options(&args.analysis))
        .map_err(|error| Failure::from_error(Code::Input, &error, error.hint()))?;
    out.either(&found, || text(&found))
}

fn text(found: &RunComparison) -> String {
    let mut out = String::new();
    let mut line =
        |name: &str, value: &str| writeln!(out, "{name:<9}{value}").expect("text takes text");
    line("base", &found.a);
    line("other", &found.b);
    if found.synthetic {
        line("images", "SYNTHETIC, some or all: drawn by a program");
    }
    for task in &found.tasks {
        let (a, b) = (&task.a, &task.b);
        writeln!(
            out,
            "\n{} {}: {} {} minus {} {}",
            a.dataset, a.task, b.method, b.model, a.method, a.model
        )
        .expect("text takes text");
        writeln!(
            out,
            "{} images in both ({} positive), intervals from resampled {}s",
            task.n, task.n_pos, task.resampled
        )
        .expect("text takes text");
        for (count, what) in [
            (task.only_in_a, "images are in the base alone"),
            (task.only_in_b, "images are in the other alone"),
            (task.failed_in_a, "images have no score in the base"),
            (task.failed_in_b, "images have no score in the other"),
        ] {
            if count > 0 {
                writeln!(out, "note     {count} {what}").expect("text takes text");
            }
        }
        let mut grid = plain_table();
        grid.set_header(["metric", "base", "other", "difference [95 %]", "p", "q"]);
        let three = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.3}"));
        for delta in &task.deltas {
            let difference = match (delta.delta, delta.interval) {
                (Some(d), Some([low, high])) => format!("{d:+.3} [{low:+.3}, {high:+.3}]"),
                (Some(d), None) => format!("{d:+.3}"),
                _ => "-".into(),
            };
            grid.add_row([
                delta.metric.to_owned(),
                three(delta.base),
                three(delta.other),
                difference,
                probability(delta.p),
                probability(delta.q),
            ]);
        }
        for column in 1..6 {
            if let Some(column) = grid.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for row in grid.to_string().lines() {
            writeln!(out, "{}", row.trim_end()).expect("text takes text");
        }
    }
    for family in &found.families {
        writeln!(
            out,
            "note     q of {}: Benjamini-Hochberg over m = {}, B = {}; smallest q of a lone finding {}",
            family.metric,
            family.size,
            family.resamples,
            probability(family.smallest_lone_q)
        )
        .expect("text takes text");
    }
    for cell in &found.unpaired {
        writeln!(
            out,
            "note     not paired ({}): {}: {}",
            cell.side, cell.cell, cell.reason
        )
        .expect("text takes text");
    }
    out
}
