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
use focus_store::Predictions;
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
    let mut checks = Vec::new();

    let (_, rebuilt) = report::rebuild(&run)?;
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

    let (report, metrics) = report::gather(&run).map_err(failure)?;
    let same = run
        .metrics()
        .map_err(|e| Failure::from_error(Code::Input, &e, e.hint()))?
        == metrics;
    checks.push(check(
        "metrics.parquet",
        same,
        format!("{} values", metrics.rows.len()),
    ));
    for (file, text) in report::stored_forms(&report) {
        let stored = std::fs::read(args.run.join(file)).unwrap_or_default();
        checks.push(check(
            file,
            stored == text.as_bytes(),
            format!("{} bytes", text.len()),
        ));
    }

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
