//! From stored generations to stored predictions: every task's test images, scored. Pure computing; repeatable from the run folder
//! alone, which is how `verify` checks it.

use super::PROMPTING;
use super::score::{Judged, judge};
use crate::eval::EvalError;
use crate::eval::cells::CellRecord;
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

/// Compute the cell of every prompt; `store` gets each one's predictions as they come. `without` are tasks that have no prompt.
pub fn compute_cells(
    file: &GenerationFile,
    records: &Records,
    dataset: &str,
    model: &str,
    without: &[String],
    store: &mut dyn FnMut(&Predictions) -> Result<(), EvalError>,
) -> Result<Vec<CellRecord>, EvalError> {
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
    let key = |task: &str| CellKey::new(dataset, task, PROMPTING, model);
    let mut cells = Vec::new();
    for task in &layout.prompts {
        let answers = by_task.remove(task.as_str()).unwrap_or_default();
        let Some((predictions, mass)) =
            predictions(key(task), &answers, records, &layout.variants)?
        else {
            cells.push(skipped(key(task), "no test image has a known label"));
            continue;
        };
        store(&predictions)?;
        cells.push(CellRecord {
            candidate_mass: mass,
            ..CellRecord::new(predictions.cell)
        });
    }
    cells.extend(
        without
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

type Cell = (Predictions, Option<CandidateMass>);

fn predictions(
    key: CellKey,
    answers: &Answers,
    records: &Records,
    variants: &[String],
) -> Result<Option<Cell>, EvalError> {
    let mut rows = Vec::new();
    let mut judged: Vec<Option<Judged>> = Vec::new();
    for (sample, answer) in answers {
        let record = &records.rows[*sample as usize];
        let label = record.labels.get(&key.task).copied();
        let published_label = record.published_labels.get(&key.task).copied();
        if label.is_none() && published_label.is_none() {
            continue;
        }
        let found = answer
            .generated
            .as_ref()
            .map(|said| judge(said, variants, answer.outcome == Outcome::Refused));
        rows.push(PredictionRow {
            sample: *sample,
            id: record.id.clone(),
            fold: Fold::Test,
            copy: 0,
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
