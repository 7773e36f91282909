//! Simulated readers: scores of known AUROC, calibration and group gaps on images that were never taken, so that an
//! analysis can be held against the truth. It must not know any analysis.
//!
//! A reader sees x, normal with variance 1 about a mean that depends on label and groups, and says
//! score = logistic(a + b (logit(prevalence) + d x - d^2 / 2)); with a = 0, b = 1 and no group effects its scores are
//! probabilities. Labels, patients and groups are drawn once for each dataset; then the x of each cell, correlated
//! between the eyes of a patient, between readers (hard images) and between the arms of a comparison.

mod maths;
mod people;
mod plan;
mod random;
mod truth;

pub use plan::{
    Attribute, Calibration, Effect, Preset, SimCell, SimDataset, SimModel, SimPlan, SimTask,
};
pub use truth::{CellTruth, GapTruth, GroupTruth};

use crate::error::Result;
use focus_store::{
    ContentHash, DatasetIdentity, Fold, ModelIdentity, Outcome, PredictionRow, Predictions,
    Records, RunFolder, RunManifest, write_atomic,
};
use people::{People, correlated, people};
use random::Stream;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};
use truth::reader;

/// What is true of a whole simulation; `truth.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Truth {
    /// `focus-truth`.
    pub schema: String,
    /// 1.
    pub schema_version: u32,
    /// What was drawn.
    pub plan: SimPlan,
    /// What is true of each cell, in the order of the plan.
    pub cells: Vec<CellTruth>,
}

/// A simulation in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// The images.
    pub records: Records,
    /// The cells, in the order of the plan.
    pub cells: Vec<Predictions>,
    /// What is true of them.
    pub truth: Truth,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SimSummary {
    /// Images.
    pub images: usize,
    /// Cells.
    pub cells: usize,
    /// Prediction rows.
    pub rows: usize,
}

/// Draw everything into memory.
pub fn draw(plan: &SimPlan) -> Result<Simulated> {
    let stage = Stage::new(plan)?;
    let drawn = (0..plan.cells.len())
        .into_par_iter()
        .map(|i| stage.cell(i))
        .collect::<Result<Vec<_>>>()?;
    let (cells, truths) = drawn.into_iter().unzip();
    Ok(Simulated {
        truth: stage.truth(truths),
        records: stage.records(),
        cells,
    })
}

/// Draw everything into the run folder `out`, which says that it is synthetic, with `truth.json` in it.
pub fn simulate(plan: &SimPlan, out: &Path, tool_version: &str) -> Result<SimSummary> {
    let stage = Stage::new(plan)?;
    let run = RunFolder::create_or_resume(out, &manifest(plan, tool_version))?;
    let records = stage.records();
    run.write_records(&records)?;
    let written = (0..plan.cells.len())
        .into_par_iter()
        .map(|i| {
            let (predictions, truth) = stage.cell(i)?;
            run.write_predictions(&predictions)?;
            Ok((predictions.rows.len(), truth))
        })
        .collect::<Result<Vec<_>>>()?;
    let (rows, truths): (Vec<usize>, Vec<CellTruth>) = written.into_iter().unzip();
    let summary = SimSummary {
        images: records.rows.len(),
        cells: rows.len(),
        rows: rows.iter().sum(),
    };
    let mut text = serde_json::to_string_pretty(&stage.truth(truths)).expect("truth is JSON");
    text.push('\n');
    write_atomic(&run.path().join("truth.json"), text.as_bytes())?;
    Ok(summary)
}

struct Stage<'a> {
    plan: &'a SimPlan,
    /// By dataset id: the images, and the number of the first.
    people: HashMap<&'a str, (People, u32)>,
    /// By dataset and task: how hard each image is to every reader.
    difficulty: HashMap<(&'a str, &'a str), Vec<f64>>,
}

impl<'a> Stage<'a> {
    fn new(plan: &'a SimPlan) -> Result<Self> {
        plan.check()?;
        let mut first = 0;
        let people = plan.datasets.iter().map(|set| {
            let place = first;
            first += set.images as u32;
            (set.id.as_str(), (people(set, plan.seed), place))
        });
        let mut stage = Self {
            plan,
            people: people.collect(),
            difficulty: HashMap::new(),
        };
        for set in &plan.datasets {
            for task in &set.tasks {
                let (people, _) = &stage.people[set.id.as_str()];
                let numbers = stage.numbers(people, &["difficulty", &set.id, &task.task]);
                stage.difficulty.insert((&set.id, &task.task), numbers);
            }
        }
        Ok(stage)
    }

    // A standard normal number for each image, alike in the eyes of a patient.
    fn numbers(&self, people: &People, purpose: &[&str]) -> Vec<f64> {
        let patients = people.patient.iter().max().map_or(0, |p| p + 1);
        let mut stream = Stream::new(self.plan.seed, purpose);
        correlated(
            &mut stream,
            &people.patient,
            patients,
            self.plan.patient_correlation,
        )
    }

    fn records(&self) -> Records {
        let sets = &self.plan.datasets;
        Records {
            tasks: sets
                .iter()
                .flat_map(|set| &set.tasks)
                .map(|task| task.task.clone())
                .collect(),
            rows: sets
                .iter()
                .flat_map(|set| self.people[set.id.as_str()].0.records.clone())
                .collect(),
        }
    }

    fn cell(&self, i: usize) -> Result<(Predictions, CellTruth)> {
        let cell = &self.plan.cells[i];
        let (set, task) = self.plan.place(cell)?;
        let (people, first) = &self.people[set.id.as_str()];
        let (reader, mut truth) = reader(self.plan, cell, people)?;
        if let Some(base) = cell.base {
            let base = &self.plan.cells[base];
            let (_, other) = truth::reader(self.plan, base, people)?;
            let between = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
            truth.base = Some(base.cell.model.clone());
            truth.delta_auroc = between(truth.overall.auroc, other.overall.auroc);
            truth.delta_ece = between(truth.overall.ece, other.overall.ece);
        }
        let noise = self.noise(cell, people);
        let prompted = cell.cell.method.starts_with("prompting");
        let rows = people.records.iter().enumerate().map(|(at, record)| {
            let logit = reader.alpha + reader.beta * (reader.mean[at] + noise[at]);
            let predicted = logit > 0.0;
            let label = record.labels.get(&task.task).copied();
            PredictionRow {
                sample: first + at as u32,
                id: record.id.clone(),
                fold: Fold::Test,
                copy: 0,
                split: record.split.clone(),
                patient: record.patient.clone(),
                label,
                published_label: label,
                score: Some(maths::logistic(logit)),
                predicted: Some(predicted),
                outcome: Outcome::Ok,
                reason: None,
                text: prompted.then(|| if predicted { "yes" } else { "no" }.to_owned()),
            }
        });
        let predictions = Predictions::new(cell.cell.clone(), rows.collect(), Vec::new())?;
        Ok((predictions, truth))
    }

    // Standard normal for each image: what all readers share, and the reader's own, which an arm shares with its base.
    fn noise(&self, cell: &SimCell, people: &People) -> Vec<f64> {
        let plan = self.plan;
        let shared = &self.difficulty[&(cell.cell.dataset.as_str(), cell.cell.task.as_str())];
        let mut own = self.numbers(people, &["own", &cell.cell.file_stem()]);
        if let Some(base) = cell.base {
            let base = self.numbers(people, &["own", &plan.cells[base].cell.file_stem()]);
            let (with, without) = (
                plan.arm_correlation,
                (1.0 - plan.arm_correlation * plan.arm_correlation).sqrt(),
            );
            own = own
                .iter()
                .zip(base)
                .map(|(own, base)| with * base + without * own)
                .collect();
        }
        let (common, rest) = (
            plan.shared_difficulty.sqrt(),
            (1.0 - plan.shared_difficulty).sqrt(),
        );
        shared
            .iter()
            .zip(own)
            .map(|(shared, own)| common * shared + rest * own)
            .collect()
    }

    fn truth(&self, cells: Vec<CellTruth>) -> Truth {
        Truth {
            schema: "focus-truth".into(),
            schema_version: 1,
            plan: self.plan.clone(),
            cells,
        }
    }
}

fn manifest(plan: &SimPlan, tool_version: &str) -> RunManifest {
    let distinct = |get: fn(&SimCell) -> &String| -> BTreeSet<String> {
        plan.cells.iter().map(|cell| get(cell).clone()).collect()
    };
    let models = distinct(|c| &c.cell.model)
        .into_iter()
        .map(|id| ModelIdentity {
            id,
            plugin: None,
            opened: Value::Null,
            preprocessing_key: "simulated".into(),
        });
    let datasets = distinct(|c| &c.cell.dataset)
        .into_iter()
        .map(|id| DatasetIdentity {
            id,
            mapper_digest: None,
            tables: BTreeMap::new(),
        });
    let text = serde_json::to_vec(plan).expect("a plan is JSON");
    RunManifest {
        tool_version: tool_version.into(),
        models: models.collect(),
        datasets: datasets.collect(),
        tasks: distinct(|c| &c.cell.task).into_iter().collect(),
        methods: distinct(|c| &c.cell.method).into_iter().collect(),
        device_kind: "simulated".into(),
        seeds: BTreeMap::from([("simulate".into(), plan.seed)]),
        permissions: Vec::new(),
        synthetic: true,
        options: BTreeMap::from([
            ("simulate".into(), json!("focus-truth 1")),
            (
                "plan".into(),
                json!(format!("blake3:{}", ContentHash::of(&text))),
            ),
        ]),
    }
}

#[cfg(test)]
mod tests;
