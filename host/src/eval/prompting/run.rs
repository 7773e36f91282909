//! A prompting run in order: questions, adapters, generations, predictions, report; the base first, then each adapter over the same
//! loaded model, each in a run folder of its own. Each step's result lies in the folder before the next begins.

use super::adapter::{self, Adapter, AdapterFacts};
use super::facts::PromptingFacts;
use super::generate::{cacheable, generate};
use super::identity::{Subject, weights_of};
use super::picture::{FilePictures, PictureSource, Preparation};
use super::question::{GENERATIONS, Question};
use super::{cells, prompt};
use crate::config::EvalConfig;
use crate::eval::dataset::Dataset;
use crate::eval::features::{FeatureCounts, FeatureError, Wanted};
use crate::eval::method::Method;
use crate::eval::model::Chosen;
use crate::eval::run::{MACHINE_FILE, RunOutcome, unreadable, write_json};
use crate::eval::{
    Advised, CELLS_FILE, EvalError, FACTS_FILE, Facts, SPLITS_FILE, choice, identity, splits,
};
use crate::progress::Progress;
use crate::report;
use focus_images::{Limits, PixelCache};
use focus_models::Generator;
use focus_store::{
    AnswerLogOptions, GenerationCache, GenerationFile, GenerationRow, Generations, RunFolder,
    StoreError, write_atomic,
};
use std::collections::BTreeSet;

/// What a prompting run is asked to do.
pub struct Job<'a> {
    /// The configuration.
    pub config: &'a EvalConfig,
    /// The plugin and the model's card.
    pub chosen: &'a Chosen,
    /// The dataset.
    pub dataset: &'a Dataset,
    /// The tasks chosen.
    pub tasks: &'a [String],
    /// The method, as it was looked up.
    pub methods: &'a [&'static Method],
    /// Where to say how far it is.
    pub progress: &'a dyn Progress,
}

/// What is known before the model is opened.
struct Prepared {
    question: Question,
    without: Vec<String>,
    adapters: Vec<Adapter>,
}

/// Do it. `open` opens the model, once everything that needs none has been checked.
pub fn evaluate<'g>(
    job: &Job<'_>,
    open: &mut dyn FnMut() -> Result<Box<dyn Generator + 'g>, EvalError>,
) -> Result<Vec<RunOutcome>, EvalError> {
    let prepared = job.prepare()?;
    let weights = weights_of(job.config, job.chosen)?;
    let mut generator = open()?;
    let opened = generator.opened().clone();
    job.progress.end(&format!(
        "{} of {} {}, {} images a call",
        job.chosen.model.id,
        job.chosen.plugin.descriptor.name,
        job.chosen.plugin.descriptor.version,
        opened.batch_size
    ));
    let preparation = Preparation::of(&opened, job.config.field, job.config.decode)?;
    let source = job.source(&preparation)?;
    // All at once: the last adapter's fault shall not cost the first one's hours.
    let mut arms = vec![None];
    for adapter in &prepared.adapters {
        arms.push(Some((
            adapter,
            adapter::attach(adapter, generator.as_mut())?,
        )));
    }
    let subject = Subject {
        config: job.config,
        chosen: job.chosen,
        dataset: job.dataset,
        methods: job.methods,
        weights,
    };
    let several = arms.len() > 1;
    let mut outcomes = Vec::with_capacity(arms.len());
    for arm in arms {
        let run = Arm::new(job, &prepared, arm, &subject, &opened, &preparation);
        outcomes.push(run.go(&source, generator.as_mut(), several)?);
    }
    Ok(outcomes)
}

impl Job<'_> {
    fn prepare(&self) -> Result<Prepared, EvalError> {
        let prompts = prompt::read(self.config.prompting.folder.as_deref())?;
        let (question, without) = Question::new(self.tasks, prompts, &self.config.prompting);
        let asked = without
            .iter()
            .find(|task| question.prompts.is_empty() || self.config.tasks.contains(task));
        if let Some(task) = asked {
            return Err(EvalError::Request(Advised::new(
                format!("There is no prompt for the task `{task}`"),
                format!("Give one: --prompts DIR with a file `{task}.txt`"),
            )));
        }
        let adapters = adapter::look(&self.config.adapters, &self.chosen.model, &question.tasks())?;
        Ok(Prepared {
            question,
            without,
            adapters,
        })
    }

    fn source(&self, preparation: &Preparation) -> Result<FilePictures, EvalError> {
        let config = self.config;
        let open = || {
            PixelCache::open_limited(&config.folders.cache, config.pixel_cache).map_err(|error| {
                EvalError::Input(Advised {
                    message: error.to_string(),
                    hint: error.hint(),
                })
            })
        };
        let cached = config.cache && *preparation != Preparation::Full;
        Ok(FilePictures {
            files: self.dataset.files.clone(),
            preparation: preparation.clone(),
            limits: Limits::default(),
            cache: cached.then(open).transpose()?,
        })
    }

    /// Test images with a known label, in either track, in some task, in record order.
    fn wanted(&self, tasks: &[String]) -> Result<Vec<Wanted>, EvalError> {
        choice::choose_samples(self.dataset, tasks, self.methods, self.config.limit)
    }
}

/// The base or an adapter.
struct Arm<'a> {
    job: &'a Job<'a>,
    question: Question,
    prompting: PromptingFacts,
    facts: Facts,
    subject: &'a Subject<'a>,
}

impl<'a> Arm<'a> {
    fn new(
        job: &'a Job<'a>,
        prepared: &Prepared,
        adapter: Option<(&Adapter, AdapterFacts)>,
        subject: &'a Subject<'a>,
        opened: &focus_plugin_abi::v1::message::OpenedModel,
        preparation: &Preparation,
    ) -> Self {
        let mut question = prepared.question.clone();
        let mut without = prepared.without.clone();
        if let Some((adapter, attached)) = &adapter {
            // An adapter answers the question that it was trained on.
            if question.tasks().contains(&adapter.name.task) {
                question = question.about(&adapter.name.task);
                without.clear();
            }
            question = question.under(Some(&attached.name));
        }
        let prompting = PromptingFacts::of(&question, &without);
        let adapter = adapter.map(|(_, facts)| facts);
        let facts = subject.facts(opened, preparation, prompting.clone(), adapter);
        Self {
            job,
            question,
            prompting,
            facts,
            subject,
        }
    }

    fn go(
        &self,
        source: &dyn PictureSource,
        generator: &mut dyn Generator,
        several: bool,
    ) -> Result<RunOutcome, EvalError> {
        let job = self.job;
        let wanted = job.wanted(&self.question.tasks())?;
        let manifest = self.subject.manifest(&self.facts, &self.prompting);
        let name = match &self.facts.adapter {
            Some(adapter) => format!("lora-{}", adapter.name),
            None => "base".into(),
        };
        let folder = match &job.config.out {
            Some(out) if several => out.join(name),
            Some(out) => out.clone(),
            None => identity::default_folder(&manifest),
        };
        let run = RunFolder::create_or_resume(&folder, &manifest)?;
        if !run.records_path().exists() {
            run.write_records(&job.dataset.records)?;
        }
        write_json(&folder.join(FACTS_FILE), &self.facts)?;
        let splits = splits::record(job.dataset);
        if let Some(splits) = &splits {
            write_json(&folder.join(SPLITS_FILE), splits)?;
        }
        write_json(&folder.join(MACHINE_FILE), &identity::machine(job.chosen))?;
        let (answers, counts) = self.ask(&run, &wanted, source, generator)?;

        job.progress.begin("Reading answers", 0);
        let inputs = cells::PromptedInputs {
            file: &answers,
            records: &job.dataset.records,
            published: splits.as_ref().and_then(|splits| splits.published.as_ref()),
            dataset: &self.facts.dataset.id,
            model: &manifest.models[0].id,
            without: &self.prompting.without_prompt,
        };
        let cells = cells::compute_cells(&inputs, &mut |predictions| {
            Ok(run.write_predictions(predictions)?)
        })?;
        write_json(&folder.join(CELLS_FILE), &cells)?;
        job.progress.end(&format!("{} cells", cells.len()));
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

    fn ask(
        &self,
        run: &RunFolder,
        wanted: &[Wanted],
        source: &dyn PictureSource,
        generator: &mut dyn Generator,
    ) -> Result<(GenerationFile, FeatureCounts), EvalError> {
        let progress = self.job.progress;
        let layout = self.question.layout();
        let options = AnswerLogOptions::default();
        let mut log = match run.generations(GENERATIONS, &layout, options)? {
            Generations::Finished(file) => {
                self.unchanged(file.batches()?, source)?;
                progress.begin("Asking about images", 0);
                progress.end(&format!("{} images: all answered before", wanted.len()));
                let counts = FeatureCounts {
                    resumed: wanted.len(),
                    ..FeatureCounts::default()
                };
                return Ok((file, counts));
            }
            Generations::Open(log) => {
                self.unchanged(log.batches(), source)?;
                log
            }
        };
        let mut cache = if self.job.config.cache {
            let key = self.subject.key(&self.facts, &self.prompting);
            let folder = self.job.config.folders.generations();
            Some(GenerationCache::open(&folder, &key, &layout)?)
        } else {
            None
        };
        let counts = generate(
            wanted,
            source,
            generator,
            &self.question,
            &mut log,
            cache.as_ref(),
            progress,
        )
        .map_err(|error| match error {
            FeatureError::Model(error) => EvalError::Model(error),
            FeatureError::Store(error) => EvalError::Store(error),
        })?;
        if let Some(left) = wanted.iter().find(|w| !log.done().contains(&w.sample)) {
            let message = format!(
                "Model `{}` gave no answer for sample {} and said nothing",
                self.facts.model.id, left.sample
            );
            return Err(EvalError::Plugin(Advised::plain(message)));
        }
        let file = run.finish_generations(log)?;
        if let Some(cache) = cache.as_mut().filter(|_| counts.computed > 0) {
            remember(&file, cache)?;
        }
        Ok((file, counts))
    }

    /// Stored answers must be about the photographs that are there now.
    fn unchanged(
        &self,
        batches: impl Iterator<Item = Result<Vec<GenerationRow>, StoreError>>,
        source: &dyn PictureSource,
    ) -> Result<(), EvalError> {
        let mut seen = BTreeSet::new();
        for batch in batches {
            for row in batch? {
                if !seen.insert(row.sample) {
                    continue;
                }
                let record = self.job.dataset.records.rows.get(row.sample as usize);
                let known = record.filter(|record| record.id == row.id);
                let read = known.map(|_| source.read(row.sample));
                if let (Some(Err(failure)), true) = (&read, row.content_hash.is_some()) {
                    return Err(unreadable(
                        known.and_then(|r| r.path.as_deref()).unwrap_or(&row.id),
                        failure,
                    ));
                }
                let now = read.and_then(|read| read.ok().map(|file| file.hash));
                if known.is_none() || now != row.content_hash {
                    let path = known.and_then(|r| r.path.as_deref()).unwrap_or(&row.id);
                    let message =
                        format!("Photograph `{path}` has changed since this run asked about it");
                    let hint = "Give another run folder (--out): answers about the new photographs do not belong with these";
                    return Err(EvalError::Changed(Advised::new(message, hint)));
                }
            }
        }
        Ok(())
    }
}

/// Put a finished run's answers into the cache.
fn remember(file: &GenerationFile, cache: &mut GenerationCache) -> Result<(), EvalError> {
    let prompts = file.layout().prompts.len();
    let mut groups = Vec::new();
    // A row group may end within a sample's rows.
    let mut rest: Vec<GenerationRow> = Vec::new();
    for batch in file.batches()? {
        rest.extend(batch?);
        let whole = rest.len() - rest.len() % prompts;
        groups.extend(cacheable(&rest[..whole], prompts));
        rest.drain(..whole);
    }
    cache.insert(&groups)?;
    Ok(())
}
