//! Every wanted task with every wanted method: from stored answers to stored predictions. Pure computing; repeatable from the
//! run folder alone, which is how `verify` checks it.

use super::EvalError;
use super::method::{FitSummary, Method, MethodInput, Scored};
use super::texts::Texts;
use crate::task::Track;
use focus_analysis::AS_PUBLISHED_SUFFIX;
use focus_plugin_abi::v1::message::InterfaceName;
use focus_probe::{Device, ProbeError};
use focus_store::{
    AnswerBatch, AnswerFile, CellKey, Fold, Outcome, PredictionRow, Predictions, Record, Records,
    StoreError,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// File name in the run folder of the list of cells.
pub const CELLS_FILE: &str = "cells.json";

/// A cell of the run: how its fit went, or why there is no prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellRecord {
    /// Which cell.
    pub cell: CellKey,
    /// How the fit went.
    pub fit: Option<FitSummary>,
    /// Why the cell has no predictions.
    pub skipped: Option<String>,
}

/// All answers of one model, in memory: `dim` values an answered image.
#[derive(Debug)]
pub struct Embeddings {
    dim: usize,
    values: Vec<f32>,
    /// By sample: its place in `values`, or outcome and reason.
    answers: BTreeMap<u32, Result<usize, (Outcome, String)>>,
}

impl Embeddings {
    /// Read them all. Each must be about the image that the records have under its number.
    pub fn read(file: &AnswerFile, records: &Records) -> Result<Self, StoreError> {
        let dim = file.dim();
        let (mut values, mut answers) = (Vec::new(), BTreeMap::new());
        for batch in file.batches()? {
            let batch = batch?;
            for row in 0..batch.len() {
                record_of(file.path(), &batch, row, records)?;
                let answer = match batch.embedding(row) {
                    Some(embedding) => {
                        values.extend_from_slice(embedding);
                        Ok(values.len() / dim - 1)
                    }
                    None => Err((
                        batch.outcome(row),
                        batch.reason(row).unwrap_or_default().to_owned(),
                    )),
                };
                answers.insert(batch.samples()[row], answer);
            }
        }
        Ok(Self {
            dim,
            values,
            answers,
        })
    }

    fn gather(&self, places: &[usize]) -> Vec<f32> {
        places
            .iter()
            .flat_map(|at| &self.values[at * self.dim..(at + 1) * self.dim])
            .copied()
            .collect()
    }
}

/// The record that an answer is about; an error if the records have another image, or none, under its number.
pub fn record_of<'a>(
    file: &Path,
    batch: &AnswerBatch,
    row: usize,
    records: &'a Records,
) -> Result<&'a Record, StoreError> {
    let sample = batch.samples()[row];
    match records.rows.get(sample as usize) {
        Some(record) if record.id == batch.id(row) => Ok(record),
        other => Err(StoreError::Rule {
            file: file.to_path_buf(),
            row: u64::from(sample),
            rule: "an answer's `id` must be that of its sample in `records.parquet`",
            found: format!(
                "`{}` against `{}`",
                batch.id(row),
                other.map_or("no record", |r| r.id.as_str())
            ),
        }),
    }
}

/// What the cells are computed from.
pub struct CellInputs<'a> {
    /// Records and labels.
    pub records: &'a Records,
    /// The samples that were asked about.
    pub asked: &'a BTreeSet<u32>,
    /// The answers.
    pub embeddings: &'a Embeddings,
    /// What the model made of the tasks' sentences, for methods of dual encoders.
    pub texts: Option<&'a Texts>,
    /// The dataset's id.
    pub dataset: &'a str,
    /// The model's id.
    pub model: &'a str,
    /// Where to compute.
    pub device: &'a Device,
}

/// Compute every cell; `store` gets each one's predictions as they come.
pub fn compute_cells(
    inputs: &CellInputs<'_>,
    tasks: &[String],
    methods: &[&Method],
    store: &mut dyn FnMut(&Predictions) -> Result<(), EvalError>,
) -> Result<Vec<CellRecord>, EvalError> {
    let mut cells = Vec::new();
    for task in tasks {
        let differ = inputs.asked.iter().any(|sample| {
            let record = &inputs.records.rows[*sample as usize];
            record.labels.get(task) != record.published_labels.get(task)
        });
        for method in methods {
            let key = |suffix: &str| {
                CellKey::new(
                    inputs.dataset,
                    task,
                    &format!("{}{suffix}", method.id),
                    inputs.model,
                )
            };
            cells.push(cell(
                inputs,
                task,
                method,
                key(""),
                Track::Corrected,
                store,
            )?);
            if differ && method.tracks.contains(&Track::AsPublished) {
                cells.push(cell(
                    inputs,
                    task,
                    method,
                    key(AS_PUBLISHED_SUFFIX),
                    Track::AsPublished,
                    store,
                )?);
            }
        }
    }
    Ok(cells)
}

/// The rows of one fold: records, and where their embeddings are.
#[derive(Default)]
struct FoldRows {
    samples: Vec<u32>,
    places: Vec<usize>,
    labels: Vec<bool>,
    failed: Vec<(u32, Outcome, String)>,
}

fn cell(
    inputs: &CellInputs<'_>,
    task: &str,
    method: &Method,
    key: CellKey,
    track: Track,
    store: &mut dyn FnMut(&Predictions) -> Result<(), EvalError>,
) -> Result<CellRecord, EvalError> {
    let train = if method.fits {
        fold_rows(inputs, task, track, Fold::Train)
    } else {
        FoldRows::default()
    };
    let test = fold_rows(inputs, task, track, Fold::Test);
    let skipped = |cell: CellKey, why: &str| {
        Ok(CellRecord {
            cell,
            fit: None,
            skipped: Some(why.into()),
        })
    };
    if test.samples.is_empty() && test.failed.is_empty() {
        return skipped(key, "no test image has a known label");
    }
    let texts = match method.needs {
        InterfaceName::DualEncoder => {
            let pair = inputs
                .texts
                .and_then(|texts| Some(texts.tasks.get(task)?.pair(texts.similarity)));
            if pair.is_none() {
                return skipped(key, "the task has no sentences to tell its classes by");
            }
            pair
        }
        _ => None,
    };
    let input = MethodInput {
        dim: inputs.embeddings.dim,
        train: &inputs.embeddings.gather(&train.places),
        train_labels: &train.labels,
        test: &inputs.embeddings.gather(&test.places),
        texts,
        device: inputs.device,
    };
    let output = match (method.run)(&input) {
        Ok(output) => output,
        Err(error @ (ProbeError::OneClass { .. } | ProbeError::NoRows)) => {
            return Ok(CellRecord {
                cell: key,
                fit: None,
                skipped: Some(error.to_string()),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let mut rows = Vec::new();
    // Of each row, its place among the answered test images.
    let mut places = Vec::new();
    for (fold, side, scored) in [
        (Fold::Train, &train, &output.train),
        (Fold::Test, &test, &output.test),
    ] {
        let answered = side
            .samples
            .iter()
            .zip(scored)
            .map(|(sample, scored)| (*sample, Outcome::Ok, None, Some(*scored)));
        let failed = side
            .failed
            .iter()
            .map(|(sample, outcome, reason)| (*sample, *outcome, Some(reason.clone()), None));
        places.extend((0..scored.len()).map(|at| (fold == Fold::Test).then_some(at)));
        places.extend(side.failed.iter().map(|_| None));
        rows.extend(
            answered
                .chain(failed)
                .map(|(sample, outcome, reason, scored)| {
                    prediction(
                        sample,
                        &inputs.records.rows[sample as usize],
                        task,
                        fold,
                        outcome,
                        reason,
                        scored,
                    )
                }),
        );
    }
    let spread = |values: Vec<f64>| places.iter().map(|at| Some(values[(*at)?])).collect();
    let extra = output
        .extra
        .into_iter()
        .map(|(name, values)| (name.to_owned(), spread(values)))
        .collect();
    store(&Predictions::new(key.clone(), rows, extra)?)?;
    Ok(CellRecord {
        cell: key,
        fit: output.fit,
        skipped: None,
    })
}

fn fold_rows(inputs: &CellInputs<'_>, task: &str, track: Track, fold: Fold) -> FoldRows {
    let mut rows = FoldRows::default();
    for sample in inputs.asked {
        let record = &inputs.records.rows[*sample as usize];
        let labels = match track {
            Track::Corrected => &record.labels,
            Track::AsPublished => &record.published_labels,
        };
        let (Some(label), true) = (
            labels.get(task),
            record.split.as_deref() == Some(fold.as_str()),
        ) else {
            continue;
        };
        match inputs.embeddings.answers.get(sample) {
            Some(Ok(place)) => {
                rows.samples.push(*sample);
                rows.places.push(*place);
                rows.labels.push(*label);
            }
            Some(Err((outcome, reason))) => rows.failed.push((*sample, *outcome, reason.clone())),
            None => rows
                .failed
                .push((*sample, Outcome::ModelError, "no_answer".into())),
        }
    }
    rows
}

fn prediction(
    sample: u32,
    record: &Record,
    task: &str,
    fold: Fold,
    outcome: Outcome,
    reason: Option<String>,
    scored: Option<Scored>,
) -> PredictionRow {
    PredictionRow {
        sample,
        id: record.id.clone(),
        fold,
        split: record.split.clone(),
        patient: record.patient.clone(),
        label: record.labels.get(task).copied(),
        published_label: record.published_labels.get(task).copied(),
        score: scored.map(|s| s.score),
        predicted: scored.map(|s| s.predicted),
        outcome,
        reason,
        text: None,
    }
}

#[cfg(test)]
mod tests;
