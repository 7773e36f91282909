//! Every wanted task with every wanted method: from stored answers to stored predictions. Pure computing; repeatable from the
//! run folder alone, which is how `verify` checks it.

mod rows;

use super::EvalError;
use super::method::{FitSummary, How, Method, MethodInput, Scored};
use super::prompting::CandidateMass;
use super::texts::Texts;
use crate::task::Track;
use focus_analysis::AS_PUBLISHED_SUFFIX;
use focus_curation::splits::Use;
use focus_plugin_abi::v1::message::InterfaceName;
use focus_probe::{Device, ProbeError};
use focus_store::{
    AnswerBatch, AnswerFile, CellKey, Fold, Outcome, PredictionRow, Predictions, Record, Records,
    StoreError,
};
use rows::Listed;
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
    /// Of a prompted model: how much of the first token's distribution lay on answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_mass: Option<CandidateMass>,
}

impl CellRecord {
    /// A cell of which nothing else is known yet.
    pub fn new(cell: CellKey) -> Self {
        Self {
            cell,
            fit: None,
            skipped: None,
            candidate_mass: None,
        }
    }
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
    /// What the published code is fitted and scored on, where the split is a published file.
    pub uses: Option<&'a [Use]>,
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
        let differ = inputs.uses.is_some()
            || inputs.asked.iter().any(|sample| {
                let record = &inputs.records.rows[*sample as usize];
                record.labels.get(task) != record.published_labels.get(task)
            });
        for method in methods {
            if matches!(method.how, How::Generations) {
                continue;
            }
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

/// The rows of one fold: those with an embedding and where it is, and those without.
#[derive(Default)]
struct FoldRows {
    rows: Vec<Listed>,
    places: Vec<usize>,
    failed: Vec<(Listed, Outcome, String)>,
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
            skipped: Some(why.into()),
            ..CellRecord::new(cell)
        })
    };
    if test.rows.is_empty() && test.failed.is_empty() {
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
    let train_labels: Vec<bool> = train.rows.iter().map(|row| row.label).collect();
    let input = MethodInput {
        dim: inputs.embeddings.dim,
        train: &inputs.embeddings.gather(&train.places),
        train_labels: &train_labels,
        test: &inputs.embeddings.gather(&test.places),
        texts,
        device: inputs.device,
    };
    let How::Embeddings(run) = method.how else {
        return skipped(key, "the method asks a generative model");
    };
    let output = match run(&input) {
        Ok(output) => output,
        Err(error @ (ProbeError::OneClass { .. } | ProbeError::NoRows)) => {
            return Ok(CellRecord {
                skipped: Some(error.to_string()),
                ..CellRecord::new(key)
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
        let answered = side.rows.iter().zip(scored);
        let answered = answered.map(|(row, scored)| (*row, Outcome::Ok, None, Some(*scored)));
        let failed = side.failed.iter();
        let failed = failed.map(|(row, outcome, reason)| (*row, *outcome, Some(reason), None));
        places.extend((0..scored.len()).map(|at| (fold == Fold::Test).then_some(at)));
        places.extend(side.failed.iter().map(|_| None));
        rows.extend(
            answered
                .chain(failed)
                .map(|(row, outcome, reason, scored)| {
                    let record = &inputs.records.rows[row.sample as usize];
                    prediction(row, record, task, fold, track, (outcome, reason, scored))
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
        fit: output.fit,
        ..CellRecord::new(key)
    })
}

fn fold_rows(inputs: &CellInputs<'_>, task: &str, track: Track, fold: Fold) -> FoldRows {
    let listed = match (track, inputs.uses) {
        (Track::AsPublished, Some(uses)) => rows::published(inputs, uses, task, fold),
        _ => rows::plain(inputs, task, track, fold),
    };
    let mut found = FoldRows::default();
    for row in listed {
        match inputs.embeddings.answers.get(&row.sample) {
            Some(Ok(place)) => {
                found.rows.push(row);
                found.places.push(*place);
            }
            Some(Err((outcome, reason))) => found.failed.push((row, *outcome, reason.clone())),
            None => found
                .failed
                .push((row, Outcome::ModelError, "no_answer".into())),
        }
    }
    found
}

type Answered<'a> = (Outcome, Option<&'a String>, Option<Scored>);

fn prediction(
    row: Listed,
    record: &Record,
    task: &str,
    fold: Fold,
    track: Track,
    (outcome, reason, scored): Answered<'_>,
) -> PredictionRow {
    let published = record.published_labels.get(task).copied();
    PredictionRow {
        sample: row.sample,
        id: record.id.clone(),
        fold,
        copy: row.copy,
        split: record.split.clone(),
        patient: record.patient.clone(),
        label: record.labels.get(task).copied(),
        published_label: match track {
            Track::Corrected => published,
            Track::AsPublished => Some(row.label),
        },
        score: scored.map(|s| s.score),
        predicted: scored.map(|s| s.predicted),
        outcome,
        reason: reason.cloned(),
        text: None,
    }
}

#[cfg(test)]
mod tests;
