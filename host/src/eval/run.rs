//! One run in order: map, choose, open, identify, embed, fit, analyse, report. Each step's result lies in the run folder before
//! the next begins, so that a killed run goes on where it was.

use super::cells::record_of;
use super::dataset::{self, Dataset};
use super::drift::{self, DRIFT_FILE};
use super::features::{self, FeatureCounts, FeatureError, Wanted};
use super::method::{How, Method};
use super::model::{Chosen, OpenModel};
use super::pixels::{FilePixels, ImageFailure, PixelSource, picture_part, spec_of};
use super::texts::Texts;
use super::{
    Advised, CELLS_FILE, Embeddings, EvalError, FACTS_FILE, Facts, SPLITS_FILE, cells, choice,
    identity, model, permission, prompting, splits,
};
use crate::config::EvalConfig;
use crate::progress::Progress;
use crate::report::{self, Report};
use crate::weights;
use focus_images::{Decode, Limits, PixelCache};
use focus_models::ImageEncoder;
use focus_plugin_abi::v1::message::{InterfaceName, RANDOM_WEIGHTS};
use focus_store::{
    AnswerBatch, AnswerFile, AnswerLogOptions, Answers, ContentHash, EmbeddingCache, ModelKey,
    RunFolder, StoreError, write_atomic,
};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Name of the answers in the run folder.
pub const ANSWERS: &str = "embeddings";
/// Name of the manifest option that holds the error budget.
pub const ERROR_BUDGET: &str = "error_budget";

/// File name in the run folder of what is true of this machine only; no report reads it.
pub const MACHINE_FILE: &str = "machine.json";

/// What a run came to.
#[derive(Debug)]
pub struct RunOutcome {
    /// Its folder.
    pub folder: PathBuf,
    /// What the expensive stage did.
    pub counts: FeatureCounts,
    /// The report.
    pub report: Report,
}

/// Do it. One run, or the base's and one for each adapter.
pub fn run(config: &EvalConfig, progress: &dyn Progress) -> Result<Vec<RunOutcome>, EvalError> {
    choice::check_names(&config.tasks, &config.methods)?;
    focus_probe::parse_device(&config.device)?;
    progress.begin("Mapping labels", 0);
    let dataset = dataset::open(config)?;
    progress.end(&mapped_line(&dataset));
    let tasks = choice::choose_tasks(&config.tasks, &dataset)?;
    progress.begin("Opening model", 0);
    let chosen = model::choose(config)?;
    permission::check_upload(&chosen.reach, &dataset, &config.worker.allow_upload)?;
    let config = &with_weights(config, &chosen)?;
    let methods = choice::choose_methods(&config.methods, &chosen)?;
    if methods.iter().any(|m| matches!(m.how, How::Generations)) {
        let job = prompting::Job {
            config,
            chosen: &chosen,
            dataset: &dataset,
            tasks: &tasks,
            methods: &methods,
            progress,
        };
        return prompting::evaluate(&job, &mut || chosen.open_generator(config));
    }
    if !config.adapters.is_empty() {
        let message = format!("Model `{}` takes no adapters", chosen.model.id);
        return Err(EvalError::Request(Advised::plain(message)));
    }
    embed(config, &chosen, &dataset, &tasks, &methods, progress).map(|outcome| vec![outcome])
}

/// The configuration with the weights that are on this machine, where it names none and the model needs some.
fn with_weights(config: &EvalConfig, chosen: &Chosen) -> Result<EvalConfig, EvalError> {
    let mut config = config.clone();
    let drawn = config.settings.contains_key(RANDOM_WEIGHTS);
    if config.weights.is_none() && !drawn {
        let model = &chosen.model;
        let fetched = weights::fetch::fetched(&model.id, &model.weight_files, &config.folders);
        config.weights = match fetched {
            Some(folder) => Some(folder),
            None => weights::in_cache(model, &config.folders.hub)?,
        };
    }
    Ok(config)
}

/// A run of an encoder: embed, fit, analyse.
fn embed(
    config: &EvalConfig,
    chosen: &Chosen,
    dataset: &Dataset,
    tasks: &[String],
    methods: &[&'static Method],
    progress: &dyn Progress,
) -> Result<RunOutcome, EvalError> {
    let device = focus_probe::parse_device(&config.device)?;
    let wanted = choice::choose_samples(dataset, tasks, methods, config.limit)?;
    let mut encoder = chosen.open(config)?;
    let methods = choice::allowed(&config.methods, methods.to_vec(), &encoder)?;
    progress.end(&format!(
        "{} of {} {}, {} values an image",
        chosen.model.id,
        chosen.plugin.descriptor.name,
        chosen.plugin.descriptor.version,
        encoder.opened().embedding_dim
    ));

    let facts = identity::facts(config, chosen, encoder.opened(), dataset)?;
    let manifest = identity::manifest(config, chosen, &facts, dataset, tasks, &methods);
    let folder = config
        .out
        .clone()
        .unwrap_or_else(|| identity::default_folder(&manifest));
    let run = RunFolder::create_or_resume(&folder, &manifest)?;
    if !run.records_path().exists() {
        run.write_records(&dataset.records)?;
    }
    write_json(&folder.join(FACTS_FILE), &facts)?;
    let splits = splits::record(dataset);
    if let Some(splits) = &splits {
        write_json(&folder.join(SPLITS_FILE), splits)?;
    }
    write_json(&folder.join(MACHINE_FILE), &identity::machine(chosen))?;

    let stage = Stage {
        config,
        run: &run,
        dataset,
        wanted: &wanted,
        facts: &facts,
        progress,
    };
    stage.measure_drift(encoder.images())?;
    let texts = if methods
        .iter()
        .any(|method| method.needs == InterfaceName::DualEncoder)
    {
        stage.texts(&mut encoder, tasks)?
    } else {
        None
    };
    let (answers, counts) = stage.embed(
        encoder.images(),
        &identity::model_key(config, chosen, &facts),
    )?;
    drop(encoder);

    progress.begin("Fitting probes", 0);
    let inputs = cells::CellInputs {
        records: &dataset.records,
        asked: &wanted.iter().map(|w| w.sample).collect::<BTreeSet<_>>(),
        embeddings: &Embeddings::read(&answers, &dataset.records)?,
        uses: splits
            .as_ref()
            .and_then(|splits| Some(splits.published.as_ref()?.uses.as_slice())),
        texts: texts.as_ref(),
        dataset: &facts.dataset.id,
        model: &manifest.models[0].id,
        device: &device,
    };
    let cells = cells::compute_cells(&inputs, tasks, &methods, &mut |predictions| {
        Ok(run.write_predictions(predictions)?)
    })?;
    write_json(&folder.join(CELLS_FILE), &cells)?;
    progress.end(&format!("{} cells", cells.len()));

    let (report, metrics) = report::gather(&run, &focus_analysis::Options::default())?;
    run.write_metrics(&metrics)?;
    for (file, text) in report::stored_forms(&report) {
        write_atomic(&folder.join(file), text.as_bytes())?;
    }
    Ok(RunOutcome {
        folder,
        counts,
        report,
    })
}

fn mapped_line(dataset: &Dataset) -> String {
    let facts = &dataset.facts;
    let dropped: u64 = facts.dropped.values().sum();
    let mut line = format!(
        "{} images from {} rows of {}",
        dataset.records.rows.len(),
        facts.rows,
        facts.title
    );
    if dropped > 0 {
        line.push_str(&format!(", {dropped} rows dropped"));
    }
    if facts.missing_images > 0 {
        line.push_str(&format!(
            ", {} rows without an image file",
            facts.missing_images
        ));
    }
    line
}

pub(super) fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), EvalError> {
    let mut text = serde_json::to_string_pretty(value).expect("plain data is JSON");
    text.push('\n');
    Ok(write_atomic(path, text.as_bytes())?)
}

/// A photograph that was answered and cannot be read now: nothing says that it changed.
pub(super) fn unreadable(path: &str, failure: &ImageFailure) -> EvalError {
    EvalError::Input(Advised::new(
        format!(
            "Cannot read photograph `{path}`, which this run has answers about: {}",
            failure.message
        ),
        "Make the dataset's folder readable as it was and run the same command again",
    ))
}

/// The expensive stage and what it needs.
struct Stage<'a> {
    config: &'a EvalConfig,
    run: &'a RunFolder,
    dataset: &'a Dataset,
    wanted: &'a [Wanted],
    facts: &'a Facts,
    progress: &'a dyn Progress,
}

impl Stage<'_> {
    fn embed(
        &self,
        encoder: &mut dyn ImageEncoder,
        key: &ModelKey,
    ) -> Result<(AnswerFile, FeatureCounts), EvalError> {
        let dim = self.facts.opened.embedding_dim as usize;
        let pixels = self.pixels()?;
        let mut log = match self
            .run
            .answers(ANSWERS, dim, AnswerLogOptions::default())?
        {
            Answers::Finished(file) => {
                self.unchanged(file.batches()?, &pixels)?;
                self.progress.begin("Embedding images", 0);
                self.progress
                    .end(&format!("{} images: all answered before", file.rows()));
                return Ok((
                    file,
                    FeatureCounts {
                        resumed: self.wanted.len(),
                        ..FeatureCounts::default()
                    },
                ));
            }
            Answers::Open(log, _) => {
                self.unchanged(log.batches(), &pixels)?;
                log
            }
        };
        let cache = if self.config.cache {
            Some(EmbeddingCache::open(
                &self.config.folders.embeddings(),
                key,
            )?)
        } else {
            None
        };
        let counts = features::extract(
            self.wanted,
            &pixels,
            encoder,
            &mut log,
            cache.as_ref(),
            self.progress,
        )
        .map_err(|error| match error {
            FeatureError::Model(error) => EvalError::Model(error),
            FeatureError::Store(error) => EvalError::Store(error),
        })?;
        if let Some(left) = self.wanted.iter().find(|w| !log.done().contains(&w.sample)) {
            let model = &self.facts.model.id;
            let message = format!(
                "Model `{model}` gave no answer for sample {} and said nothing",
                left.sample
            );
            return Err(EvalError::Plugin(Advised::plain(message)));
        }
        let file = self.run.finish_answers(log)?;
        if let Some(cache) = cache.filter(|_| counts.computed > 0) {
            remember(&file, &cache)?;
        }
        Ok((file, counts))
    }

    /// What the model makes of the tasks' sentences: those kept, or asked now. `None` for a model that takes no texts.
    fn texts(&self, model: &mut OpenModel, tasks: &[String]) -> Result<Option<Texts>, EvalError> {
        let Some(encoder) = model.texts() else {
            return Ok(None);
        };
        let dim = self.facts.opened.embedding_dim as usize;
        if let Some(texts) = Texts::read(self.run.path(), dim)? {
            return Ok(Some(texts));
        }
        self.progress.begin("Embedding texts", 0);
        let texts = Texts::embed(encoder, tasks)?;
        texts.write(self.run.path())?;
        self.progress
            .end(&format!("sentences of {} tasks", texts.tasks.len()));
        for (task, text) in texts.truncated() {
            tracing::warn!(
                task,
                text,
                "A sentence is longer than the model takes, and was cut"
            );
        }
        Ok(Some(texts))
    }

    /// How far fast decoding moves the embeddings: measured once, when the run begins.
    fn measure_drift(&self, encoder: &mut dyn ImageEncoder) -> Result<(), EvalError> {
        let file = self.run.path().join(DRIFT_FILE);
        if self.config.decode == Decode::Exact || file.exists() {
            return Ok(());
        }
        self.progress.begin("Comparing with exact decoding", 0);
        let exact = self.pixels_decoded(Decode::Exact)?;
        let found = drift::measure(self.wanted, &exact, &self.pixels()?, encoder)?;
        write_json(&file, &found)?;
        self.progress.end(
            &match (found.mean_cosine_distance, found.max_cosine_distance) {
                (Some(mean), Some(max)) => format!(
                    "cosine distance of {} embeddings: mean {mean:.1e}, largest {max:.1e}",
                    found.images
                ),
                _ => "no photograph could be compared".into(),
            },
        );
        Ok(())
    }

    /// Stored answers must be about the photographs that are there now: one that was replaced since would be mixed with others.
    fn unchanged(
        &self,
        batches: impl Iterator<Item = Result<AnswerBatch, StoreError>>,
        pixels: &FilePixels,
    ) -> Result<(), EvalError> {
        for batch in batches {
            let batch = batch?;
            let changed = (0..batch.len()).into_par_iter().find_first(|row| {
                let sample = batch.samples()[*row];
                // The answer's own record is checked below; a number out of range is not a file to read.
                let known = (sample as usize) < pixels.files.len();
                let now = if known {
                    pixels.read(sample).ok().map(|file| file.hash)
                } else {
                    None
                };
                !known || now != batch.content_hash(*row)
            });
            if let Some(row) = changed {
                let record = record_of(self.run.path(), &batch, row, &self.dataset.records)?;
                let path = record.path.as_deref().unwrap_or(&record.id);
                if let Err(failure) = pixels.read(batch.samples()[row])
                    && batch.content_hash(row).is_some()
                {
                    return Err(unreadable(path, &failure));
                }
                let message =
                    format!("Photograph `{path}` has changed since this run asked about it");
                let hint = "Give another run folder (--out): answers about the new photographs do not belong with these";
                return Err(EvalError::Changed(Advised::new(message, hint)));
            }
        }
        Ok(())
    }

    fn pixels(&self) -> Result<FilePixels, EvalError> {
        self.pixels_decoded(self.config.decode)
    }

    fn pixels_decoded(&self, decode: Decode) -> Result<FilePixels, EvalError> {
        let spec = spec_of(&self.facts.opened.preprocessing, self.config.field, decode)
            .expect("checked when the facts were gathered");
        let open = |folder: &Path| {
            PixelCache::open_limited(folder, self.config.pixel_cache).map_err(|error| {
                EvalError::Input(Advised {
                    message: error.to_string(),
                    hint: error.hint(),
                })
            })
        };
        let cache = if self.config.cache {
            Some(open(&self.config.folders.cache)?)
        } else {
            None
        };
        Ok(FilePixels {
            files: self.dataset.files.clone(),
            spec,
            limits: Limits::default(),
            cache,
        })
    }
}

/// Put a finished run's embeddings into the cache, a row group at a time.
fn remember(file: &AnswerFile, cache: &EmbeddingCache) -> Result<(), EvalError> {
    for batch in file.batches()? {
        let batch = batch?;
        let rows: Vec<(ContentHash, &[f32], Option<&str>)> = (0..batch.len())
            .filter_map(|row| {
                let note = batch.message(row).and_then(picture_part);
                Some((batch.content_hash(row)?, batch.embedding(row)?, note))
            })
            .collect();
        cache.insert(&rows)?;
    }
    Ok(())
}
