//! From stored generations to stored predictions: every task's test images, scored. Pure computing; repeatable from the run folder
//! alone, which is how `verify` checks it.

use super::PROMPTING;
use super::score::{Judged, judge};
use crate::eval::EvalError;
use crate::eval::cells::CellRecord;
use crate::eval::splits::PublishedReading;
use focus_analysis::AS_PUBLISHED_SUFFIX;
use focus_curation::splits::{FileShape, Split};
use focus_store::{
    CellKey, Fold, GenerationFile, GenerationRow, Outcome, PredictionRow, Predictions, Records,
    StoreError,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much of the first token's distribution lay on answers at all, over a cell's labelled test images that told both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateMass {
    /// Images.
    pub images: u64,
    /// Mean of p+ + p-.
    pub mean: f64,
    /// Share of them under one half.
    pub under_half: f64,
}

/// Generations of one task by sample.
type Answers = BTreeMap<u32, GenerationRow>;

/// What prompted cells are computed from.
pub struct PromptedInputs<'a> {
    /// The answers.
    pub file: &'a GenerationFile,
    /// Records and labels.
    pub records: &'a Records,
    /// What the published code makes of the split, where it is a published file.
    pub published: Option<&'a PublishedReading>,
    /// The dataset's id.
    pub dataset: &'a str,
    /// The model's id.
    pub model: &'a str,
    /// Tasks that have no prompt.
    pub without: &'a [String],
}

/// Compute the cell of every prompt; `store` gets each one's predictions as they come.
pub fn compute_cells(
    inputs: &PromptedInputs<'_>,
    store: &mut dyn FnMut(&Predictions) -> Result<(), EvalError>,
) -> Result<Vec<CellRecord>, EvalError> {
    let PromptedInputs { file, records, .. } = *inputs;
    let layout = file.layout();
    let mut by_task: BTreeMap<&str, Answers> = BTreeMap::new();
    for batch in file.batches()? {
        for row in batch? {
            check_id(file, &row, records)?;
            let place = layout.prompts.iter().position(|name| *name == row.prompt);
            let task = layout.prompts[place.expect("the store checked the layout")].as_str();
            by_task.entry(task).or_default().insert(row.sample, row);
        }
    }
    let key = |task: &str| CellKey::new(inputs.dataset, task, PROMPTING, inputs.model);
    let mut cells = Vec::new();
    for task in &layout.prompts {
        let answers = by_task.remove(task.as_str()).unwrap_or_default();
        let tested = |sample: &u32| {
            let split = records.rows[*sample as usize].split.as_deref();
            split == Some(Fold::Test.as_str())
        };
        let own = answers.keys().copied().filter(tested).map(Listed::plain);
        let mut wanted = vec![(key(task), own.collect())];
        if let Some(published) = inputs.published {
            let twin = CellKey {
                method: format!("{PROMPTING}{AS_PUBLISHED_SUFFIX}"),
                ..key(task)
            };
            wanted.push((twin, published_rows(published, &answers, task)));
        }
        for (key, rows) in wanted {
            let made = predictions(key.clone(), &rows, &answers, records, &layout.variants)?;
            let Some((predictions, mass)) = made else {
                cells.push(skipped(key, "no test image has a known label"));
                continue;
            };
            store(&predictions)?;
            cells.push(CellRecord {
                candidate_mass: mass,
                ..CellRecord::new(predictions.cell)
            });
        }
    }
    cells.extend(
        inputs
            .without
            .iter()
            .map(|task| skipped(key(task), "there is no prompt for this task")),
    );
    Ok(cells)
}

fn skipped(cell: CellKey, reason: &str) -> CellRecord {
    CellRecord {
        skipped: Some(reason.into()),
        ..CellRecord::new(cell)
    }
}

/// An answer must be about the image that the records have under its number.
fn check_id(
    file: &GenerationFile,
    row: &GenerationRow,
    records: &Records,
) -> Result<(), StoreError> {
    let found = records.rows.get(row.sample as usize).map(|r| r.id.as_str());
    if found == Some(row.id.as_str()) {
        return Ok(());
    }
    Err(StoreError::Rule {
        file: file.path().to_path_buf(),
        row: u64::from(row.sample),
        rule: "an answer's `id` must be that of its sample in `records.parquet`",
        found: format!("`{}` against `{}`", row.id, found.unwrap_or("no record")),
    })
}

/// A row of a cell.
#[derive(Debug, Clone, Copy)]
struct Listed {
    sample: u32,
    copy: u32,
    /// The published label, where it is not the record's.
    label: Option<bool>,
}

impl Listed {
    fn plain(sample: u32) -> Self {
        Self {
            sample,
            copy: 0,
            label: None,
        }
    }
}

/// The rows of the published analysis. Its join by row position (mBRSET) is of the encoders' results alone: prompted answers keep
/// their own labels there.
fn published_rows(reading: &PublishedReading, answers: &Answers, task: &str) -> Vec<Listed> {
    let shape = reading.account.file.as_ref().map(|file| file.shape);
    let mut copies: BTreeMap<u32, u32> = BTreeMap::new();
    let mut rows = Vec::new();
    for used in reading.uses.iter().filter(|used| used.split == Split::Test) {
        let (labels, times) = match shape {
            Some(FileShape::Mbrset) => (None, used.rows),
            _ => (used.labels.as_ref(), used.analysed),
        };
        let label = labels.map(|labels| labels.get(task).copied());
        if !answers.contains_key(&used.sample) || label == Some(None) {
            continue;
        }
        for _ in 0..times {
            let copy = copies.entry(used.sample).or_default();
            rows.push(Listed {
                sample: used.sample,
                copy: *copy,
                label: label.flatten(),
            });
            *copy += 1;
        }
    }
    rows
}

type Cell = (Predictions, Option<CandidateMass>);

fn predictions(
    key: CellKey,
    listed: &[Listed],
    answers: &Answers,
    records: &Records,
    variants: &[String],
) -> Result<Option<Cell>, EvalError> {
    let mut rows = Vec::new();
    let mut judged: Vec<Option<Judged>> = Vec::new();
    for row in listed {
        let answer = &answers[&row.sample];
        let record = &records.rows[row.sample as usize];
        let label = record.labels.get(&key.task).copied();
        let published_label = row
            .label
            .or_else(|| record.published_labels.get(&key.task).copied());
        if label.is_none() && published_label.is_none() {
            continue;
        }
        let found = answer
            .generated
            .as_ref()
            .map(|said| judge(said, variants, answer.outcome == Outcome::Refused));
        rows.push(PredictionRow {
            sample: row.sample,
            id: record.id.clone(),
            fold: Fold::Test,
            copy: row.copy,
            split: record.split.clone(),
            patient: record.patient.clone(),
            label,
            published_label,
            score: found.as_ref().and_then(|j| j.score),
            predicted: found.as_ref().and_then(|j| j.label),
            outcome: found.as_ref().map_or(answer.outcome, |j| j.outcome),
            reason: match &found {
                Some(judged) => judged.reason.map(str::to_owned),
                None => answer.reason.clone(),
            },
            text: answer.generated.as_ref().map(|said| said.text.clone()),
        });
        judged.push(found);
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let column = |name: &str, value: fn(&Judged) -> Option<f64>| {
        let values = judged.iter().map(|j| value(j.as_ref()?)).collect();
        (name.to_owned(), values)
    };
    let extra = vec![
        column("p_minus", |j| j.negative),
        column("candidate_mass", Judged::candidate_mass),
        column("p_normalised", Judged::normalised),
    ];
    let masses: Vec<f64> = judged
        .iter()
        .filter_map(|j| j.as_ref()?.candidate_mass())
        .collect();
    Ok(Some((
        Predictions::new(key, rows, extra)?,
        candidate_mass(&masses),
    )))
}

fn candidate_mass(masses: &[f64]) -> Option<CandidateMass> {
    let n = masses.len() as f64;
    (!masses.is_empty()).then(|| CandidateMass {
        images: masses.len() as u64,
        mean: masses.iter().sum::<f64>() / n,
        under_half: masses.iter().filter(|mass| **mass < 0.5).count() as f64 / n,
    })
}
