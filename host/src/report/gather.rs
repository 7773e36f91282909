//! A report from a run folder: stored predictions through the analysis. And the same from the stored answers, for `verify`.

use super::{CellReport, FailureCount, REPORT_SCHEMA, Report, SplitCount};
use crate::analysis::{self, CellStatus};
use crate::eval::method::{self, Method};
use crate::eval::{ANSWERS, CELLS_FILE, CellRecord, ERROR_BUDGET, Embeddings, EvalError, FACTS_FILE, Facts, compute_cells};
use focus_store::{AnswerFile, Metrics, Outcome, Predictions, Records, RunView, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A run folder that cannot be reported on.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A stored table.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored JSON file.
    #[error("`{}` cannot be read: {reason}", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A stored value that a metric refuses.
    #[error(transparent)]
    Metric(#[from] focus_metrics::MetricError),
}

impl ReportError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Metric(error) => error.hint(),
            Self::Json { .. } => Some("The run may not be finished: repeat its `eval` command to resume it".into()),
        }
    }
}

/// Files of paths named for each kind of failure.
const EXAMPLES: usize = 3;

/// The report and the metrics table, from what is stored.
pub fn gather(run: &RunView) -> Result<(Report, Metrics), ReportError> {
    let facts: Facts = read_json(&run.path().join(FACTS_FILE))?;
    let records = run.records()?;
    let answers = run.answer_file(ANSWERS)?;
    let listed: Vec<CellRecord> = read_json(&run.path().join(CELLS_FILE))?;
    let budget = run.manifest().options.get(ERROR_BUDGET).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
    let mut notes = Vec::new();
    let mut cells = Vec::new();
    for cell in listed {
        if let Some(reason) = cell.skipped {
            notes.push(format!("{} / {}: no result, {reason}", cell.cell.task, cell.cell.method));
            continue;
        }
        let analysis = analysis::analyse(&run.predictions(&cell.cell)?, budget)?;
        if analysis.status == CellStatus::Failed {
            notes.push(format!(
                "{} / {}: FAILED, more test images without an answer than the error budget of {:.1} % allows",
                cell.cell.task,
                cell.cell.method,
                budget * 100.0
            ));
        }
        cells.push(CellReport { analysis, fit: cell.fit });
    }
    notes.extend(contamination(&facts));
    let analyses: Vec<_> = cells.iter().map(|cell| cell.analysis.clone()).collect();
    let metrics = Metrics::new(analysis::metric_rows(&analyses))?;
    let (splits, failures) = images(&records, &answers)?;
    let manifest = run.manifest();
    let report = Report {
        schema: REPORT_SCHEMA,
        tool_version: manifest.tool_version.clone(),
        synthetic: manifest.synthetic,
        facts,
        device_kind: manifest.device_kind.clone(),
        permissions: manifest.permissions.clone(),
        splits,
        failures,
        cells,
        notes,
    };
    Ok((report, metrics))
}

/// A remark where the model's card says that it has seen this dataset, or part of it, or does not know what it has seen.
fn contamination(facts: &Facts) -> Option<String> {
    let dataset = &facts.dataset.id;
    match &facts.model.pretraining_datasets {
        None => Some("The model's card does not say on which datasets it was trained".into()),
        Some(seen) => {
            let part = format!("{dataset}-");
            let seen = seen.iter().find(|id| *id == dataset || id.starts_with(&part))?;
            Some(format!("The model's card names `{seen}` among the data it was made with"))
        }
    }
}

/// The cells and predictions computed anew from the stored answers, on the CPU.
pub fn rebuild(run: &RunView) -> Result<(Vec<CellRecord>, Vec<Predictions>), EvalError> {
    let records = run.records()?;
    let answers = run.answer_file(ANSWERS)?;
    let manifest = run.manifest();
    let methods: Vec<&Method> = method::all().into_iter().filter(|m| manifest.methods.iter().any(|id| id == m.id)).collect();
    let inputs = crate::eval::CellInputs {
        records: &records,
        asked: &asked(&answers)?,
        embeddings: &Embeddings::read(&answers)?,
        dataset: manifest.datasets.first().map_or("", |dataset| dataset.id.as_str()),
        model: manifest.models.first().map_or("", |model| model.id.as_str()),
        device: &focus_probe::Device::Cpu,
    };
    let mut predictions = Vec::new();
    let cells = compute_cells(&inputs, &manifest.tasks, &methods, &mut |cell| {
        predictions.push(cell.clone());
        Ok(())
    })?;
    Ok((cells, predictions))
}

fn asked(answers: &AnswerFile) -> Result<BTreeSet<u32>, StoreError> {
    let mut samples = BTreeSet::new();
    for batch in answers.batches()? {
        samples.extend(batch?.samples());
    }
    Ok(samples)
}

fn images(
    records: &Records,
    answers: &AnswerFile,
) -> Result<(BTreeMap<String, SplitCount>, Vec<FailureCount>), StoreError> {
    let mut splits: BTreeMap<String, SplitCount> = BTreeMap::new();
    let split_of = |record: &focus_store::Record| record.split.clone().unwrap_or_else(|| "none".into());
    for record in &records.rows {
        splits.entry(split_of(record)).or_default().images += 1;
    }
    let mut failures: BTreeMap<(String, String), FailureCount> = BTreeMap::new();
    for batch in answers.batches()? {
        let batch = batch?;
        for row in 0..batch.len() {
            let record = &records.rows[batch.samples()[row] as usize];
            let count = splits.entry(split_of(record)).or_default();
            count.asked += 1;
            let outcome = batch.outcome(row);
            if outcome == Outcome::Ok {
                count.answered += 1;
                continue;
            }
            let reason = batch.reason(row).unwrap_or("unknown").to_owned();
            let failure = failures.entry((outcome.as_str().into(), reason.clone())).or_insert_with(|| FailureCount {
                outcome: outcome.as_str().into(),
                reason,
                count: 0,
                examples: Vec::new(),
            });
            failure.count += 1;
            if failure.examples.len() < EXAMPLES {
                failure.examples.push(record.path.clone().unwrap_or_else(|| record.id.clone()));
            }
        }
    }
    Ok((splits, failures.into_values().collect()))
}

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, ReportError> {
    let fault = |reason: String| ReportError::Json { file: file.to_path_buf(), reason };
    let text = std::fs::read(file).map_err(|error| fault(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))
}
