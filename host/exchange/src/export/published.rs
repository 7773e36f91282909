//! The published code's layout: its file names and columns, from a run's cells. What it cannot say is left out and
//! counted. It must not know how such files are read, but for the names that both directions share.

use super::{ExportSummary, folder::NewFolder, spreadsheet::number};
use crate::{
    error::{ExchangeError, Result},
    import::{ERROR_TEXT, slug},
};
use focus_store::{CellKey, Fold, Outcome, PredictionRow, Predictions, RunView};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

const ENCODERS: [&str; 2] = ["linear_probing", "zero_shot"];
/// Prompt strategies that the published code has; another would be read as part of the model's name.
const STRATEGIES: [&str; 2] = ["cot", "role"];

/// The path of `cell`'s file as the published code would name it; none for methods and models that it has no name for.
/// `vision`: the model is a vision encoder.
pub fn published_name(cell: &CellKey, vision: bool) -> Option<String> {
    let (base, variant) = match cell.model.split_once('+') {
        Some((base, variant)) => (base, Some(variant)),
        None => (cell.model.as_str(), None),
    };
    let CellKey {
        dataset,
        task,
        method,
        ..
    } = cell;
    let model = slug(base);
    if ENCODERS.contains(&method.as_str()) {
        return variant.is_none().then(|| {
            if vision {
                format!(
                    "cv_{dataset}_{task}_{method}_{}.csv",
                    model.replace('-', "_")
                )
            } else {
                format!("{dataset}_{task}_{method}_{model}.csv")
            }
        });
    }
    let strategy = match method.split_once('+') {
        Some(("prompting", strategy)) if STRATEGIES.contains(&strategy) => Some(strategy),
        None if method == "prompting" => None,
        _ => return None,
    };
    let Some(variant) = variant else {
        let strategy = strategy.map_or_else(String::new, |s| format!("_{s}"));
        return Some(format!("{dataset}_{task}{strategy}_{model}.csv"));
    };
    let parts: Vec<&str> = variant.split('-').collect();
    let (kind, train_dataset, train_task, train_strategy) = match parts[..] {
        [kind, dataset, task] => (kind, dataset, task, "base"),
        [kind, dataset, task, strategy] => (kind, dataset, task, strategy),
        _ => return None,
    };
    let folder = match kind {
        "lora" => "evals_sft",
        "grpo" => "evals_grpo",
        _ => return None,
    };
    let strategy = strategy.unwrap_or("base");
    Some(format!(
        "{folder}/train_model-{model}_train_dataset-{train_dataset}_train_task-{train_task}_train_strategy-{train_strategy}__test_model-{model}_test_dataset-{dataset}_test_task-{task}_test_strategy-{strategy}_split-test.csv"
    ))
}

pub(super) fn write(
    run: &RunView,
    folder: &NewFolder,
    vision: &BTreeSet<String>,
    summary: &mut ExportSummary,
) -> Result<()> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let records = run.records()?;
    for (file, cell) in run.prediction_files()?.iter().zip(run.all_predictions()?) {
        let cell = cell?;
        records.check_predictions(&cell, file)?;
        let Some(name) = published_name(&cell.cell, vision.contains(&cell.cell.model)) else {
            let reason = "its method or model has no name there";
            *summary.cells_left_out.entry(reason.into()).or_default() += 1;
            continue;
        };
        if let Some(other) = names.insert(name.clone(), cell.cell.to_string()) {
            return Err(ExchangeError::SameCell {
                cell: format!("the file {name}"),
                first: other,
                second: cell.cell.to_string(),
            });
        }
        let prompted = cell.cell.method.starts_with("prompting");
        let rows = if prompted {
            prompted_rows(&cell, summary)
        } else {
            encoder_rows(&cell, summary)
        };
        if rows.len() == 1 {
            *summary
                .cells_left_out
                .entry("none of its rows can be said there".into())
                .or_default() += 1;
            continue;
        }
        folder.file(&name, |sink| {
            let mut writer = csv::Writer::from_writer(sink);
            rows.iter()
                .try_for_each(|row| writer.write_record(row))
                .map_err(io::Error::from)?;
            writer.flush()
        })?;
        summary.files += 1;
        summary.cells += 1;
        summary.rows += rows.len() as u64 - 1;
    }
    Ok(())
}

fn label(value: Option<bool>) -> String {
    value.map_or_else(String::new, |v| u8::from(v).to_string())
}

fn score(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}

fn count(summary: &mut ExportSummary, reason: &str) {
    *summary.rows_left_out.entry(reason.into()).or_default() += 1;
}

fn test_rows<'a>(
    cell: &'a Predictions,
    summary: &mut ExportSummary,
) -> Vec<(usize, &'a PredictionRow)> {
    let rows: Vec<_> = cell
        .rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.fold == Fold::Test)
        .collect();
    for _ in rows.len()..cell.rows.len() {
        count(summary, "rows of the training side");
    }
    rows
}

fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn encoder_rows(cell: &Predictions, summary: &mut ExportSummary) -> Vec<Vec<String>> {
    let mut rows = vec![header(&["id", "ground_truth", "prediction", "prob_1"])];
    for (_, row) in test_rows(cell, summary) {
        if row.predicted.is_none() {
            count(summary, "rows of encoders without a predicted label");
            continue;
        }
        rows.push(vec![
            row.id.clone(),
            label(row.published_label),
            label(row.predicted),
            score(row.score),
        ]);
    }
    rows
}

fn prompted_rows(cell: &Predictions, summary: &mut ExportSummary) -> Vec<Vec<String>> {
    let prob_no = cell
        .extra
        .iter()
        .find(|(name, _)| name == "prob_no")
        .map(|(_, values)| values);
    let mut names = vec!["id", "ground_truth", "prediction_text", "prob_yes"];
    if prob_no.is_some() {
        names.push("prob_no");
    }
    let mut rows = vec![header(&names)];
    for (i, row) in test_rows(cell, summary) {
        let text = match (row.outcome, &row.text, row.predicted) {
            (Outcome::ImageError, ..) => {
                count(
                    summary,
                    "unreadable images, written as failures of the model",
                );
                ERROR_TEXT.to_owned()
            }
            (Outcome::ModelError, ..) => ERROR_TEXT.to_owned(),
            (_, Some(text), _) => text.clone(),
            (_, None, Some(predicted)) => {
                count(summary, "answers without a text, written as yes or no");
                if predicted { "yes" } else { "no" }.to_owned()
            }
            (_, None, None) => String::new(),
        };
        let mut cells = vec![
            row.id.clone(),
            label(row.published_label),
            text,
            score(row.score),
        ];
        if let Some(values) = prob_no {
            cells.push(score(values[i]));
        }
        rows.push(cells);
    }
    rows
}
