//! Small tables in memory.

use focus_analysis::{
    Catalogue, CellAnalysis, CellContext, CellRows, Cohorts, Grid, GridAnalysis, MemorySource,
    Options, analyse,
};
use focus_store::{CellKey, Fold, Outcome, PredictionRow, Predictions, Record, Records};

/// Few draws: values and counts are exact whatever B.
pub fn few() -> Options {
    Options {
        resamples: 200,
        secondary_resamples: 50,
        permutations: 99,
        family_resamples: 400,
        published_resamples: 100,
        ..Options::default()
    }
}

/// A test image of `dataset` that knows nothing but its label.
pub fn record(dataset: &str, id: &str, task: &str, label: bool) -> Record {
    Record {
        dataset: dataset.into(),
        id: id.into(),
        split: Some("test".into()),
        labels: [(task.to_owned(), label)].into(),
        published_labels: [(task.to_owned(), label)].into(),
        ..Record::default()
    }
}

pub fn records(rows: Vec<Record>) -> Records {
    Records {
        tasks: rows
            .iter()
            .flat_map(|row| row.labels.keys().cloned())
            .collect(),
        rows,
    }
}

/// An answered test image.
pub fn row(sample: u32, id: &str, label: bool, score: f64) -> PredictionRow {
    PredictionRow {
        sample,
        id: id.into(),
        fold: Fold::Test,
        copy: 0,
        split: Some("test".into()),
        patient: None,
        label: Some(label),
        published_label: Some(label),
        score: Some(score),
        predicted: Some(score > 0.5),
        outcome: Outcome::Ok,
        reason: None,
        text: None,
    }
}

/// The same image with another outcome.
pub fn failed(mut row: PredictionRow, outcome: Outcome, score: Option<f64>) -> PredictionRow {
    row.outcome = outcome;
    row.score = score;
    row.predicted = None;
    row.reason = Some("because".into());
    row
}

/// A cell without the store's own checks, which come before an analysis.
pub fn unchecked(names: [&str; 4], rows: Vec<PredictionRow>) -> Predictions {
    let [dataset, task, method, model] = names;
    Predictions {
        cell: CellKey::new(dataset, task, method, model),
        rows,
        extra: vec![],
    }
}

/// A cell of records with scores in their order.
pub fn cell(names: [&str; 4], records: &Records, scores: &[f64]) -> Predictions {
    let rows = (0..)
        .zip(&records.rows)
        .filter(|(_, record)| record.dataset == names[0] && record.labels.contains_key(names[1]))
        .zip(scores)
        .map(|((sample, record), score)| row(sample, &record.id, record.labels[names[1]], *score))
        .collect();
    let cell = CellKey::new(names[0], names[1], names[2], names[3]);
    Predictions::new(cell, rows, vec![]).expect("sound predictions")
}

/// One cell analysed by itself.
pub fn alone(records: &Records, predictions: &Predictions, budget: f64) -> CellAnalysis {
    let mut cohorts = Cohorts::default();
    cohorts.add("run", records).expect("records agree");
    let cohort = cohorts
        .finish()
        .remove(&predictions.cell.dataset)
        .expect("the dataset is there");
    let rows = CellRows::join(predictions, &cohort, "run").expect("joins");
    let context = CellContext {
        error_budget: budget,
        published_apart: false,
    };
    analyse(&rows, &cohort, &context, &few()).expect("analyses")
}

pub fn grid(sources: Vec<MemorySource>) -> Grid {
    Grid::open(
        sources
            .into_iter()
            .map(|source| Box::new(source) as _)
            .collect(),
        Catalogue::embedded(),
    )
    .expect("opens")
}

pub fn analysed(sources: Vec<MemorySource>) -> GridAnalysis {
    grid(sources).analyse(&few()).expect("analyses")
}

/// Numbers in [0, 1) that look random and are the same everywhere.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as f64) / f64::from(1_u32 << 31)
    }

    /// A score that tends to be higher for positives, with two decimals so that ties occur.
    pub fn score(&mut self, label: bool, skill: f64) -> f64 {
        let shift = if label { skill } else { -skill };
        let middle = f64::midpoint(self.next(), self.next());
        ((middle + shift).clamp(0.0, 1.0) * 100.0).round() / 100.0
    }
}

/// `n` test images with two images for each patient, ages, sexes, qualities, eyes and grades.
pub fn rich(dataset: &str, tasks: &[&str], n: u32, seed: u64) -> Records {
    let mut noise = Noise(seed);
    let rows = (0..n)
        .map(|i| {
            let patient = i / 2;
            let grade = (noise.next() * 5.0) as i32;
            let mut record = Record {
                patient: Some(format!("p{patient:04}")),
                eye: Some(if i % 2 == 0 { "left" } else { "right" }.into()),
                age: Some(f64::from(30 + patient * 7 % 50)),
                sex: Some(if patient % 3 == 0 { "female" } else { "male" }.into()),
                quality: Some(if noise.next() < 0.4 { "poor" } else { "good" }.into()),
                grade: Some(grade),
                ..record(dataset, &format!("i{i:04}"), tasks[0], grade > 0)
            };
            for (place, task) in tasks.iter().enumerate() {
                let label = if place == 0 {
                    grade > 1
                } else {
                    noise.next() < 0.4
                };
                record.labels.insert((*task).into(), label);
                record.published_labels.insert((*task).into(), label);
            }
            record
        })
        .collect();
    records(rows)
}

/// A cell of all of a dataset's images with random scores.
pub fn random_cell(names: [&str; 4], records: &Records, skill: f64, seed: u64) -> Predictions {
    let mut noise = Noise(seed);
    let scores: Vec<f64> = records
        .rows
        .iter()
        .filter(|r| r.dataset == names[0] && r.labels.contains_key(names[1]))
        .map(|r| noise.score(r.labels[names[1]], skill))
        .collect();
    cell(names, records, &scores)
}
