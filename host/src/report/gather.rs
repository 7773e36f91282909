//! A report from a run folder: stored predictions through the analysis. And the same from the stored answers, for `verify`.

use super::{CellReport, FailureCount, REPORT_SCHEMA, Report, SplitCount};
use crate::eval::method::{self, Method};
use crate::eval::{
    ANSWERS, Advised, CELLS_FILE, CellRecord, DRIFT_FILE, Drift, ERROR_BUDGET, Embeddings,
    EvalError, FACTS_FILE, Facts, GENERATIONS, PromptedInputs, PromptingFacts, SETTINGS_OPTION,
    SIZE, SPLITS_FILE, SplitRecord, Texts, compute_cells, compute_prompted, notes_of, record_of,
};
use focus_analysis::{
    AS_PUBLISHED_SUFFIX, Catalogue, CellContext, CellStatus, Grid, Options, RunSource, analyse,
    metric_rows,
};
use focus_store::{
    AnswerFile, CellKey, ContentHash, GenerationFile, Metrics, Outcome, Predictions, Record,
    Records, RunView, StoreError,
};
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
    /// Stored tables that cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] focus_analysis::AnalysisError),
}

const UNFINISHED: &str = "The run may not be finished: repeat its `eval` command to resume it";

impl ReportError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(StoreError::Io { .. }) | Self::Json { .. } => Some(UNFINISHED.into()),
            Self::Store(error) => error.hint(),
            Self::Analysis(error) => error.hint(),
        }
    }
}

/// Files of paths named for each kind of failure.
const EXAMPLES: usize = 3;

/// The report and the metrics table of a run of `eval`, from what is stored.
pub fn gather(run: &RunView, options: &Options) -> Result<(Report, Metrics), ReportError> {
    let facts: Facts = read_json(&run.path().join(FACTS_FILE))?;
    let records = run.records()?;
    let listed: Vec<CellRecord> = read_json(&run.path().join(CELLS_FILE))?;
    let budget = run
        .manifest()
        .options
        .get(ERROR_BUDGET)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or(0.0);
    let apart: BTreeSet<CellKey> = listed
        .iter()
        .filter_map(|cell| published_twin_of(&cell.cell))
        .collect();
    let source = RunSource::open(run.path())?;
    let grid = Grid::open(vec![Box::new(source)], Catalogue::embedded())?;
    let mut notes = Vec::new();
    let mut cells = Vec::new();
    for cell in listed {
        if let Some(reason) = cell.skipped {
            notes.push(format!(
                "{} / {}: no result, {reason}",
                cell.cell.task, cell.cell.method
            ));
            continue;
        }
        let rows = grid.rows(&cell.cell)?;
        let context = CellContext {
            error_budget: budget,
            published_apart: apart.contains(&cell.cell),
        };
        let analysis = analyse(
            &rows,
            &grid.cohorts()[&cell.cell.dataset],
            &context,
            options,
        )?;
        if analysis.status == CellStatus::Failed {
            notes.push(format!(
                "{} / {}: FAILED, more test images without an answer than the error budget of {:.1} % allows",
                cell.cell.task,
                cell.cell.method,
                budget * 100.0
            ));
        }
        cells.push(CellReport {
            analysis,
            fit: cell.fit,
            candidate_mass: cell.candidate_mass,
        });
    }
    let images = match &facts.prompting {
        Some(prompting) => {
            let answers = run.generation_file(GENERATIONS, &prompting.layout())?;
            Images::of_generations(&records, &answers)?
        }
        None => Images::read(&records, &run.answer_file(ANSWERS)?)?,
    };
    notes.extend(
        facts
            .opened
            .notes
            .iter()
            .map(|note| format!("Model: {note}")),
    );
    notes.extend(splits(run)?.iter().flat_map(SplitRecord::notes));
    if facts.dataset.missing_images > 0 {
        notes.push(format!(
            "Rows of the label tables without an image file, left out: {}",
            facts.dataset.missing_images
        ));
    }
    notes.extend(contamination(&facts));
    notes.extend(images.remarks());
    notes.extend(drift(run.path())?);
    notes.extend(images.same_files());
    notes.extend(shared_patients(&records));
    notes.extend(cells.iter().filter_map(thin_answers));
    let analyses: Vec<_> = cells.iter().map(|cell| cell.analysis.clone()).collect();
    let metrics = Metrics::new(metric_rows(&analyses))?;
    let manifest = run.manifest();
    let report = Report {
        schema: REPORT_SCHEMA,
        tool_version: manifest.tool_version.clone(),
        synthetic: manifest.synthetic,
        control: control(&facts, manifest.options.get(SETTINGS_OPTION)),
        facts,
        device_kind: manifest.device_kind.clone(),
        permissions: manifest.permissions.clone(),
        splits: images.splits,
        failures: images.failures.into_values().collect(),
        cells,
        notes,
    };
    Ok((report, metrics))
}

/// How the run's images came into their splits; none in a folder from before that was kept.
fn splits(run: &RunView) -> Result<Option<SplitRecord>, ReportError> {
    let file = run.path().join(SPLITS_FILE);
    if file.exists() {
        read_json(&file).map(Some)
    } else {
        Ok(None)
    }
}

/// A warning where little of the first token's distribution lies on an answer: then the score says little.
fn thin_answers(cell: &CellReport) -> Option<String> {
    let mass = cell.candidate_mass?;
    let few = mass.mean < 0.5 || mass.under_half > 0.0;
    few.then(|| {
        format!(
            "WARNING: {} / {}: yes and no together have {:.3} of the first token's probability on average, under 0.5 in {:.1} % of {} images: the score says little there",
            cell.analysis.cell.task,
            cell.analysis.cell.method,
            mass.mean,
            mass.under_half * 100.0,
            mass.images
        )
    })
}

/// A sentence where the model is not the published one, but a control of its shape.
fn control(facts: &Facts, settings: Option<&serde_json::Value>) -> Option<String> {
    let size = settings.and_then(|s| s.get(SIZE)?.as_str());
    let digest = facts.opened.weights_digest.as_deref();
    let seed = digest.and_then(|digest| digest.strip_prefix("random:"));
    let what = match (seed, size) {
        (None, None) => return None,
        (Some(seed), None) => format!("RANDOM WEIGHTS (seed {seed})"),
        (None, Some(size)) => format!("SIZE `{size}`"),
        (Some(seed), Some(size)) => format!("RANDOM WEIGHTS (seed {seed}), SIZE `{size}`"),
    };
    Some(format!(
        "{what}: a control, nothing here says anything about the published model"
    ))
}

/// What fast decoding did to the embeddings, where the run decoded fast.
fn drift(run: &Path) -> Result<Option<String>, ReportError> {
    let file = run.join(DRIFT_FILE);
    if !file.exists() {
        return Ok(None);
    }
    let drift: Drift = read_json(&file)?;
    Ok(Some(
        match (drift.mean_cosine_distance, drift.max_cosine_distance) {
            (Some(mean), Some(max)) => format!(
                "JPEG decoded fast: embeddings of {} images lie a cosine distance of {mean:.1e} on average, {max:.1e} at most, from those of exactly decoded ones",
                drift.images
            ),
            _ => "JPEG decoded fast; no image could be compared with its exact decoding".into(),
        },
    ))
}

/// A remark where patients have images in both splits: a probe may know them.
fn shared_patients(records: &Records) -> Option<String> {
    let of = |split: &str| -> BTreeSet<&str> {
        let rows = records
            .rows
            .iter()
            .filter(|r| r.split.as_deref() == Some(split));
        rows.filter_map(|r| r.patient.as_deref()).collect()
    };
    let both = of("train").intersection(&of("test")).count();
    (both > 0)
        .then(|| format!("Patients with images in both the training and the test split: {both}"))
}

/// For a cell on the published labels, the cell that it stands beside.
fn published_twin_of(cell: &CellKey) -> Option<CellKey> {
    let method = cell.method.strip_suffix(AS_PUBLISHED_SUFFIX)?;
    Some(CellKey {
        method: method.to_owned(),
        ..cell.clone()
    })
}

/// A remark where the model's card says that it has seen this dataset, or part of it, or does not know what it has seen.
fn contamination(facts: &Facts) -> Option<String> {
    let dataset = &facts.dataset.id;
    match &facts.model.pretraining_datasets {
        None => Some("The model's card does not say on which datasets it was trained".into()),
        Some(seen) => {
            let part = format!("{dataset}-");
            let seen = seen
                .iter()
                .find(|id| *id == dataset || id.starts_with(&part))?;
            Some(format!(
                "The model's card names `{seen}` among the data it was made with"
            ))
        }
    }
}

/// The cells and predictions computed anew from the stored answers, on the CPU.
pub fn rebuild(run: &RunView) -> Result<(Vec<CellRecord>, Vec<Predictions>), EvalError> {
    let records = run.records()?;
    let facts: Facts = read_json(&run.path().join(FACTS_FILE))?;
    if let Some(prompting) = &facts.prompting {
        return rebuild_prompted(run, &records, prompting);
    }
    let answers = run.answer_file(ANSWERS)?;
    let manifest = run.manifest();
    let splits = splits_of(run)?;
    let published = splits.as_ref().and_then(|splits| splits.published.as_ref());
    let methods: Vec<&Method> = method::all()
        .into_iter()
        .filter(|m| manifest.methods.iter().any(|id| id == m.id))
        .collect();
    let texts = Texts::read(run.path(), answers.dim())?;
    let inputs = crate::eval::CellInputs {
        records: &records,
        asked: &asked(&answers)?,
        embeddings: &Embeddings::read(&answers, &records)?,
        uses: published.map(|reading| reading.uses.as_slice()),
        texts: texts.as_ref(),
        dataset: manifest
            .datasets
            .first()
            .map_or("", |dataset| dataset.id.as_str()),
        model: manifest
            .models
            .first()
            .map_or("", |model| model.id.as_str()),
        device: &focus_probe::Device::Cpu,
    };
    let mut predictions = Vec::new();
    let cells = compute_cells(&inputs, &manifest.tasks, &methods, &mut |cell| {
        predictions.push(cell.clone());
        Ok(())
    })?;
    Ok((cells, predictions))
}

/// The same for a prompted model.
fn splits_of(run: &RunView) -> Result<Option<SplitRecord>, EvalError> {
    splits(run).map_err(|error| {
        EvalError::Input(Advised {
            message: error.to_string(),
            hint: error.hint(),
        })
    })
}

fn rebuild_prompted(
    run: &RunView,
    records: &Records,
    prompting: &PromptingFacts,
) -> Result<(Vec<CellRecord>, Vec<Predictions>), EvalError> {
    let answers = run.generation_file(GENERATIONS, &prompting.layout())?;
    let manifest = run.manifest();
    let splits = splits_of(run)?;
    let first = |ids: Option<&String>| ids.cloned().unwrap_or_default();
    let dataset = first(manifest.datasets.first().map(|dataset| &dataset.id));
    let model = first(manifest.models.first().map(|model| &model.id));
    let mut predictions = Vec::new();
    let inputs = PromptedInputs {
        file: &answers,
        records,
        published: splits.as_ref().and_then(|splits| splits.published.as_ref()),
        dataset: &dataset,
        model: &model,
        without: &prompting.without_prompt,
    };
    let cells = compute_prompted(&inputs, &mut |cell| {
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

/// What was said about an image.
struct Said<'a> {
    hash: Option<ContentHash>,
    outcome: Outcome,
    reason: Option<&'a str>,
    message: Option<&'a str>,
}

/// Where the images of a run went, and which of them are the same file.
#[derive(Default)]
struct Images {
    splits: BTreeMap<String, SplitCount>,
    failures: BTreeMap<(String, String), FailureCount>,
    /// Paths by what was odd about the files or pictures, of images that were answered.
    remarks: BTreeMap<String, Vec<String>>,
    /// Paths by content, per split.
    contents: BTreeMap<ContentHash, Vec<(String, String)>>,
}

impl Images {
    fn read(records: &Records, answers: &AnswerFile) -> Result<Self, StoreError> {
        let mut images = Self::default();
        for record in &records.rows {
            images.splits.entry(split_of(record)).or_default().images += 1;
        }
        for batch in answers.batches()? {
            let batch = batch?;
            for row in 0..batch.len() {
                let said = Said {
                    hash: batch.content_hash(row),
                    outcome: batch.outcome(row),
                    reason: batch.reason(row),
                    message: batch.message(row),
                };
                images.add(record_of(answers.path(), &batch, row, records)?, &said);
            }
        }
        Ok(images)
    }

    /// An image's prompts fail together, so the first one's answer tells.
    fn of_generations(records: &Records, answers: &GenerationFile) -> Result<Self, StoreError> {
        let mut images = Self::default();
        for record in &records.rows {
            images.splits.entry(split_of(record)).or_default().images += 1;
        }
        let mut last = None;
        for batch in answers.batches()? {
            for row in batch? {
                let record = records.rows.get(row.sample as usize);
                let Some(record) = record.filter(|_| last != Some(row.sample)) else {
                    continue;
                };
                last = Some(row.sample);
                let said = Said {
                    hash: row.content_hash,
                    outcome: if row.outcome.is_error() {
                        row.outcome
                    } else {
                        Outcome::Ok
                    },
                    reason: row.reason.as_deref(),
                    message: row.message.as_deref(),
                };
                images.add(record, &said);
            }
        }
        Ok(images)
    }

    fn add(&mut self, record: &Record, said: &Said<'_>) {
        let path = record.path.clone().unwrap_or_else(|| record.id.clone());
        if let Some(hash) = said.hash {
            self.contents
                .entry(hash)
                .or_default()
                .push((split_of(record), path.clone()));
        }
        let count = self.splits.entry(split_of(record)).or_default();
        count.asked += 1;
        let outcome = said.outcome;
        if outcome == Outcome::Ok {
            count.answered += 1;
            for note in said.message.into_iter().flat_map(notes_of) {
                self.remarks
                    .entry(note.to_owned())
                    .or_default()
                    .push(path.clone());
            }
            return;
        }
        let reason = said.reason.unwrap_or("unknown").to_owned();
        let key = (outcome.as_str().to_owned(), reason.clone());
        let failure = self.failures.entry(key).or_insert_with(|| FailureCount {
            outcome: outcome.as_str().into(),
            reason,
            count: 0,
            examples: Vec::new(),
        });
        failure.count += 1;
        if failure.examples.len() < EXAMPLES {
            failure.examples.push(path);
        }
    }

    /// One line for each kind of oddity.
    fn remarks(&self) -> Vec<String> {
        let line = |(note, paths): (&String, &Vec<String>)| {
            let few = paths
                .iter()
                .take(EXAMPLES)
                .map(|p| format!("`{p}`"))
                .collect::<Vec<_>>();
            let images = if paths.len() == 1 { "image" } else { "images" };
            format!("{} {images}: {note} ({})", paths.len(), few.join(", "))
        };
        self.remarks.iter().map(line).collect()
    }

    /// Remarks on files that are the same: a test image that is a training image flatters a probe.
    fn same_files(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let in_split = |files: &[(String, String)], wanted: &str| -> Vec<String> {
            files
                .iter()
                .filter(|(split, _)| split == wanted)
                .map(|(_, path)| path.clone())
                .collect()
        };
        let mut leaks = Vec::new();
        for files in self.contents.values() {
            let (train, test) = (in_split(files, "train"), in_split(files, "test"));
            if let Some(first) = train.first() {
                leaks.extend(test.iter().map(|path| format!("`{path}` is `{first}`")));
            }
        }
        leaks.sort();
        if !leaks.is_empty() {
            let verb = if leaks.len() == 1 {
                "image has"
            } else {
                "images have"
            };
            let few = leaks
                .iter()
                .take(EXAMPLES)
                .cloned()
                .collect::<Vec<_>>()
                .join("; ");
            notes.push(format!(
                "{} test {verb} the same bytes as a training image, kept as the source has it: {few}",
                leaks.len()
            ));
        }
        let twice = self
            .contents
            .values()
            .filter(|files| files.len() > 1)
            .count();
        if twice > 0 {
            notes.push(format!(
                "Photographs in the dataset under more than one name: {twice}"
            ));
        }
        notes
    }
}

fn split_of(record: &Record) -> String {
    record.split.clone().unwrap_or_else(|| "none".into())
}

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, ReportError> {
    let fault = |reason: String| ReportError::Json {
        file: file.to_path_buf(),
        reason,
    };
    let text = std::fs::read(file).map_err(|error| fault(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))
}
