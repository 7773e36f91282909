//! `focus-host verify`: everything right of the stored answers is computed anew and compared.
//!
//! Scores are compared to 1e-9, since another processor may round a fit's last bits differently; metrics and reports, which follow
//! from the stored scores, byte for byte.

use super::CommandResult;
use super::args::VerifyArgs;
use super::failure::{Code, Failure};
use super::output::Output;
use super::report::{failure, open};
use crate::report;
use focus_analysis::Options;
use focus_store::{Metrics, Predictions, RunView};
use serde::Serialize;
use std::process::ExitCode;

/// Largest difference of a score between two computations of the same fit.
const SCORE_TOLERANCE: f64 = 1e-9;

#[derive(Debug, Serialize)]
struct Check {
    what: String,
    agrees: bool,
    detail: String,
}

pub(crate) fn run(args: &VerifyArgs, out: &Output) -> CommandResult {
    let run = open(&args.run)?;
    let checks = if report::has_answers(&run) {
        of_answers(&run)?
    } else {
        of_predictions(&run)?
    };
    tell(&checks, out)
}

/// A folder of predictions alone (imported, simulated): metrics and tables follow from them.
fn of_predictions(run: &RunView) -> Result<Vec<Check>, Failure> {
    let (metrics, forms) = report::stored_grid_forms(run).map_err(failure)?;
    let mut checks = vec![metrics_check(run, &metrics)?];
    checks.extend(form_checks(run, &forms));
    Ok(checks)
}

/// A run of `eval`: the fits anew from the answers, then what follows from the stored scores.
fn of_answers(run: &RunView) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    let (_, rebuilt) = report::rebuild(run)?;
    let stored = run
        .prediction_files()
        .map_err(|e| Failure::from_error(Code::Input, &e, e.hint()))?;
    checks.push(check(
        "cells",
        stored.len() == rebuilt.len(),
        format!("{} stored, {} rebuilt", stored.len(), rebuilt.len()),
    ));
    for predictions in &rebuilt {
        let cell = &predictions.cell;
        let what = format!("scores of {} / {}", cell.task, cell.method);
        match run.predictions(cell) {
            Ok(found) => {
                let (agrees, detail) = compare(&found, predictions);
                checks.push(check(&what, agrees, detail));
            }
            Err(error) => checks.push(check(&what, false, error.to_string())),
        }
    }

    let (report, metrics) = report::gather(run, &Options::default()).map_err(failure)?;
    checks.push(metrics_check(run, &metrics)?);
    checks.extend(form_checks(run, &report::stored_forms(&report)));
    Ok(checks)
}

fn metrics_check(run: &RunView, metrics: &Metrics) -> Result<Check, Failure> {
    let stored = run
        .metrics()
        .map_err(|e| Failure::from_error(Code::Input, &e, e.hint()))?;
    let detail = format!("{} values", metrics.rows.len());
    Ok(check("metrics.parquet", stored == *metrics, detail))
}

fn form_checks(run: &RunView, forms: &[(&str, String)]) -> Vec<Check> {
    let one = |(file, text): &(&str, String)| {
        let stored = std::fs::read(run.path().join(file)).unwrap_or_default();
        let detail = format!("{} bytes", text.len());
        check(file, stored == text.as_bytes(), detail)
    };
    forms.iter().map(one).collect()
}

fn tell(checks: &[Check], out: &Output) -> CommandResult {
    let good = checks.iter().all(|check| check.agrees);
    out.either(
        &serde_json::json!({ "agrees": good, "checks": checks }),
        || {
            let line = |c: &Check| {
                format!(
                    "{:<8} {} ({})\n",
                    if c.agrees { "same" } else { "DIFFERS" },
                    c.what,
                    c.detail
                )
            };
            checks.iter().map(line).collect()
        },
    )?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Code::Difference as u8)
    })
}

fn check(what: &str, agrees: bool, detail: String) -> Check {
    Check {
        what: what.into(),
        agrees,
        detail,
    }
}

fn compare(stored: &Predictions, rebuilt: &Predictions) -> (bool, String) {
    if stored.rows.len() != rebuilt.rows.len() {
        return (
            false,
            format!(
                "{} rows stored, {} rebuilt",
                stored.rows.len(),
                rebuilt.rows.len()
            ),
        );
    }
    let mut worst = 0.0f64;
    let names = |p: &Predictions| p.extra.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    if names(stored) != names(rebuilt) {
        return (
            false,
            format!(
                "further numbers: {:?} stored, {:?} rebuilt",
                names(stored),
                names(rebuilt)
            ),
        );
    }
    for ((name, a), (_, b)) in stored.extra.iter().zip(&rebuilt.extra) {
        for (row, pair) in a.iter().zip(b).enumerate() {
            match pair {
                (Some(x), Some(y)) => worst = worst.max((x - y).abs()),
                (None, None) => {}
                _ => return (false, format!("row {row}: `{name}` on one side only")),
            }
        }
    }
    for (row, (a, b)) in stored.rows.iter().zip(&rebuilt.rows).enumerate() {
        let difference = match (a.score, b.score) {
            (Some(x), Some(y)) => (x - y).abs(),
            (None, None) => 0.0,
            _ => return (false, format!("row {row}: a score on one side only")),
        };
        worst = worst.max(difference);
        let apart = (
            &a.id,
            a.sample,
            a.fold,
            a.label,
            a.published_label,
            a.outcome,
            &a.reason,
        ) != (
            &b.id,
            b.sample,
            b.fold,
            b.label,
            b.published_label,
            b.outcome,
            &b.reason,
        );
        // A decision may flip only where its score sits on the fence.
        let flipped =
            a.predicted != b.predicted && a.score.is_none_or(|s| (s - 0.5).abs() > SCORE_TOLERANCE);
        if apart || flipped {
            return (
                false,
                format!("row {row}, id `{}`: stored and rebuilt rows differ", a.id),
            );
        }
    }
    (
        worst <= SCORE_TOLERANCE,
        format!("{} rows, largest difference {worst:.1e}", stored.rows.len()),
    )
}
