//! One run in order: map, choose, open, identify, embed, fit, analyse, report. Each step's result lies in the run folder before
//! the next begins, so that a killed run goes on where it was.

use super::dataset::{self, Dataset};
use super::features::{self, FeatureCounts, FeatureError, Wanted};
use super::method::{self, Method};
use super::model::{self, Chosen};
use super::pixels::{FilePixels, spec_of};
use super::{Advised, CELLS_FILE, Embeddings, EvalError, FACTS_FILE, Facts, PluginFacts, cells};
use crate::analysis;
use crate::config::EvalConfig;
use crate::progress::Progress;
use crate::report::{self, Report};
use crate::task;
use focus_images::{Limits, PixelCache};
use focus_models::ImageEncoder;
use focus_store::{
    AnswerFile, AnswerLogOptions, Answers, ContentHash, EmbeddingCache, ModelIdentity, ModelKey,
    PluginIdentity, RunFolder, RunManifest, write_atomic,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Name of the answers in the run folder.
pub const ANSWERS: &str = "embeddings";
/// Name of the manifest option that holds the error budget.
pub const ERROR_BUDGET: &str = "error_budget";

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

/// Do it.
pub fn run(config: &EvalConfig, progress: &dyn Progress) -> Result<RunOutcome, EvalError> {
    progress.begin("Mapping labels", 0);
    let dataset = dataset::open(config)?;
    progress.end(&mapped_line(&dataset));
    let tasks = choose_tasks(&config.tasks, &dataset)?;
    let wanted = choose_samples(&dataset, &tasks, config.limit)?;
    let device = focus_probe::parse_device(&config.device)?;

    progress.begin("Opening model", 0);
    let chosen = model::choose(config)?;
    let methods = choose_methods(&config.methods, &chosen)?;
    let mut encoder = chosen.open(config)?.encoder;
    progress.end(&format!(
        "{} of {} {}, {} values an image",
        chosen.model.id,
        chosen.plugin.descriptor.name,
        chosen.plugin.descriptor.version,
        encoder.opened().embedding_dim
    ));

    let facts = facts(&chosen, encoder.as_ref(), &dataset)?;
    let manifest = manifest(config, &chosen, &facts, &dataset, &tasks, &methods);
    let folder = config
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&manifest));
    let run = RunFolder::create_or_resume(&folder, &manifest)?;
    if !run.records_path().exists() {
        run.write_records(&dataset.records)?;
    }
    write_json(&folder.join(FACTS_FILE), &facts)?;

    let (answers, counts) = embed(
        config,
        &run,
        &dataset,
        &wanted,
        encoder.as_mut(),
        &facts,
        &chosen,
        progress,
    )?;
    drop(encoder);

    progress.begin("Fitting probes", 0);
    let inputs = cells::CellInputs {
        records: &dataset.records,
        asked: &wanted.iter().map(|w| w.sample).collect::<BTreeSet<_>>(),
        embeddings: &Embeddings::read(&answers)?,
        dataset: &facts.dataset.id,
        model: &facts.model.id,
        device: &device,
    };
    let cells = cells::compute_cells(&inputs, &tasks, &methods, &mut |predictions| {
        Ok(run.write_predictions(predictions)?)
    })?;
    write_json(&folder.join(CELLS_FILE), &cells)?;
    progress.end(&format!("{} cells", cells.len()));

    let (report, metrics) = report::gather(&run)?;
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

fn choose_tasks(asked: &[String], dataset: &Dataset) -> Result<Vec<String>, EvalError> {
    let known: Vec<&str> = task::all().iter().map(|task| task.id).collect();
    let offered: Vec<&str> = known
        .iter()
        .copied()
        .filter(|id| dataset.tasks.iter().any(|t| t == id))
        .collect();
    let list = |ids: &[&str]| {
        ids.iter()
            .map(|id| format!("`{id}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    for id in asked {
        if !known.contains(&id.as_str()) {
            let hint = format!("Tasks: {}", list(&known));
            return Err(EvalError::Request(Advised::new(
                format!("No task named `{id}`"),
                hint,
            )));
        }
        if !offered.contains(&id.as_str()) {
            let message = format!(
                "Dataset `{}` has no labels for the task `{id}`",
                dataset.facts.id
            );
            return Err(EvalError::Request(Advised::new(
                message,
                format!("It has: {}", list(&offered)),
            )));
        }
    }
    let chosen = offered
        .iter()
        .filter(|id| asked.is_empty() || asked.iter().any(|a| a == *id));
    let chosen: Vec<String> = chosen.map(|id| (*id).to_owned()).collect();
    if chosen.is_empty() {
        let message = format!(
            "Dataset `{}` offers none of the tasks: {}",
            dataset.facts.id,
            list(&known)
        );
        return Err(EvalError::Input(Advised::plain(message)));
    }
    Ok(chosen)
}

fn choose_methods(asked: &[String], chosen: &Chosen) -> Result<Vec<&'static Method>, EvalError> {
    let all = method::all();
    for id in asked {
        if !all.iter().any(|method| method.id == id) {
            let names: Vec<_> = all
                .iter()
                .map(|method| format!("`{}`", method.id))
                .collect();
            let hint = format!("Methods: {}", names.join(", "));
            return Err(EvalError::Request(Advised::new(
                format!("No method named `{id}`"),
                hint,
            )));
        }
    }
    let fits = |method: &&Method| chosen.model.interfaces.contains(&method.needs);
    if let Some(method) = all
        .iter()
        .find(|m| asked.iter().any(|id| m.id == id) && !fits(m))
    {
        let message = format!(
            "Model `{}` lacks the interface that `{}` needs",
            chosen.model.id, method.id
        );
        return Err(EvalError::Request(Advised::plain(message)));
    }
    Ok(all
        .into_iter()
        .filter(|m| fits(m) && (asked.is_empty() || asked.iter().any(|id| m.id == id)))
        .collect())
}

/// Training and test images with a known label, in either track, in some wanted task, in record order.
fn choose_samples(
    dataset: &Dataset,
    tasks: &[String],
    limit: usize,
) -> Result<Vec<Wanted>, EvalError> {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wanted = Vec::new();
    for (sample, record) in dataset.records.rows.iter().enumerate() {
        let Some(split @ ("train" | "test")) = record.split.as_deref() else {
            continue;
        };
        let known = tasks
            .iter()
            .any(|t| record.labels.contains_key(t) || record.published_labels.contains_key(t));
        let count = taken.entry(split).or_default();
        if known && (limit == 0 || *count < limit) {
            *count += 1;
            wanted.push(Wanted {
                sample: sample as u32,
                id: record.id.clone(),
            });
        }
    }
    for split in ["train", "test"] {
        if taken.get(split).is_none_or(|count| *count == 0) {
            let message = format!(
                "Dataset `{}` has no labelled image in its {split} split for: {}",
                dataset.facts.id,
                tasks.join(", ")
            );
            let hint = "A linear probe is fitted on the source's training split and tested on its test split; the mapper must name both";
            return Err(EvalError::Input(Advised::new(message, hint)));
        }
    }
    Ok(wanted)
}

fn facts(
    chosen: &Chosen,
    encoder: &dyn ImageEncoder,
    dataset: &Dataset,
) -> Result<Facts, EvalError> {
    let opened = encoder.opened().clone();
    let Some(spec) = spec_of(&opened.preprocessing) else {
        return Err(EvalError::Plugin(Advised::plain(format!(
            "Model `{}` resizes for itself, which this version does not offer yet: found mode {:?}",
            opened.model, opened.preprocessing.mode
        ))));
    };
    Ok(Facts {
        model: chosen.model.clone(),
        opened,
        plugin: PluginFacts {
            name: chosen.plugin.descriptor.name.clone(),
            version: chosen.plugin.descriptor.version.clone(),
            digest: chosen.plugin.digest.clone(),
            sandbox: chosen.plugin.sandbox.clone(),
        },
        preprocessing: spec.canonical(),
        dataset: dataset.facts.clone(),
    })
}

fn manifest(
    config: &EvalConfig,
    chosen: &Chosen,
    facts: &Facts,
    dataset: &Dataset,
    tasks: &[String],
    methods: &[&Method],
) -> RunManifest {
    let json = |value: &dyn erased::Json| value.json();
    let mut options = BTreeMap::from([(
        ERROR_BUDGET.to_owned(),
        serde_json::json!(config.error_budget),
    )]);
    if config.limit > 0 {
        options.insert("limit".into(), serde_json::json!(config.limit));
    }
    if !config.settings.is_empty() {
        options.insert("settings".into(), json(&config.settings));
    }
    let mut permissions: Vec<String> = chosen
        .network
        .iter()
        .map(|host| format!("network:{host}"))
        .collect();
    if !config.worker.sandbox {
        permissions.push("no_sandbox".into());
    }
    if config.worker.in_process {
        permissions.push("in_process".into());
    }
    permissions.sort();
    RunManifest {
        tool_version: env!("CARGO_PKG_VERSION").into(),
        models: vec![ModelIdentity {
            id: facts.model.id.clone(),
            plugin: Some(PluginIdentity {
                name: facts.plugin.name.clone(),
                version: facts.plugin.version.clone(),
                digest: facts.plugin.digest.clone(),
            }),
            opened: json(&facts.opened),
            preprocessing_key: facts.preprocessing.clone(),
        }],
        datasets: vec![dataset.identity.clone()],
        tasks: tasks.to_vec(),
        methods: methods.iter().map(|method| method.id.to_owned()).collect(),
        device_kind: device_kind(&config.device).into(),
        seeds: BTreeMap::from([("bootstrap".into(), analysis::SEED)]),
        permissions,
        synthetic: dataset.synthetic,
        options,
    }
}

mod erased {
    //! Anything serialisable as a JSON value, without a generic at each call.

    pub(super) trait Json {
        fn json(&self) -> serde_json::Value;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> serde_json::Value {
            serde_json::to_value(self).expect("plain data is JSON")
        }
    }
}

/// `cuda` for `cuda:1`.
fn device_kind(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}

/// `runs/idrid-handcrafted-0123abcd`, the digits from the run's identity.
fn default_folder(manifest: &RunManifest) -> PathBuf {
    let identity = serde_json::to_vec(manifest).expect("a manifest is JSON");
    let digest = blake3::hash(&identity).to_hex();
    let name = format!(
        "{}-{}-{}",
        manifest.datasets[0].id,
        manifest.models[0].id,
        &digest[..8]
    );
    Path::new("runs").join(name.replace('/', "_"))
}

fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), EvalError> {
    let mut text = serde_json::to_string_pretty(value).expect("plain data is JSON");
    text.push('\n');
    Ok(write_atomic(path, text.as_bytes())?)
}

#[expect(
    clippy::too_many_arguments,
    reason = "the stage where everything meets"
)]
fn embed(
    config: &EvalConfig,
    run: &RunFolder,
    dataset: &Dataset,
    wanted: &[Wanted],
    encoder: &mut dyn ImageEncoder,
    facts: &Facts,
    chosen: &Chosen,
    progress: &dyn Progress,
) -> Result<(AnswerFile, FeatureCounts), EvalError> {
    let dim = facts.opened.embedding_dim as usize;
    let mut log = match run.answers(ANSWERS, dim, AnswerLogOptions::default())? {
        Answers::Finished(file) => {
            progress.begin("Embedding images", 0);
            progress.end(&format!("{} images: all answered before", file.rows()));
            return Ok((
                file,
                FeatureCounts {
                    resumed: wanted.len(),
                    ..FeatureCounts::default()
                },
            ));
        }
        Answers::Open(log, _) => log,
    };
    let spec = spec_of(&facts.opened.preprocessing).expect("checked when the facts were gathered");
    let image_error = |e: focus_images::ImageError| {
        EvalError::Input(Advised {
            message: e.to_string(),
            hint: e.hint(),
        })
    };
    let pixel_cache = if config.cache {
        Some(PixelCache::open(config.folders.pixels()).map_err(image_error)?)
    } else {
        None
    };
    let cache = if config.cache {
        Some(EmbeddingCache::open(
            &config.folders.embeddings(),
            &model_key(config, chosen, facts),
        )?)
    } else {
        None
    };
    let pixels = FilePixels {
        files: dataset.files.clone(),
        spec,
        limits: Limits::default(),
        cache: pixel_cache,
    };
    let counts = features::extract(wanted, &pixels, encoder, &mut log, cache.as_ref(), progress)
        .map_err(|error| match error {
            FeatureError::Model(error) => EvalError::Model(error),
            FeatureError::Store(error) => EvalError::Store(error),
        })?;
    if let Some(left) = wanted.iter().find(|w| !log.done().contains(&w.sample)) {
        let message = format!(
            "Model `{}` gave no answer for sample {} and said nothing",
            facts.model.id, left.sample
        );
        return Err(EvalError::Plugin(Advised::plain(message)));
    }
    let file = run.finish_answers(log)?;
    if let Some(cache) = cache.filter(|_| counts.computed > 0) {
        remember(&file, &cache)?;
    }
    Ok((file, counts))
}

/// Put a finished run's embeddings into the cache, a row group at a time.
fn remember(file: &AnswerFile, cache: &EmbeddingCache) -> Result<(), EvalError> {
    for batch in file.batches()? {
        let batch = batch?;
        let rows: Vec<(ContentHash, &[f32])> = (0..batch.len())
            .filter_map(|row| Some((batch.content_hash(row)?, batch.embedding(row)?)))
            .collect();
        cache.insert(&rows)?;
    }
    Ok(())
}

/// Everything but the image that may change one bit of an embedding.
fn model_key(config: &EvalConfig, chosen: &Chosen, facts: &Facts) -> ModelKey {
    let text = |value: &dyn erased::Json| value.json().to_string();
    ModelKey::from_parts(&BTreeMap::from([
        ("plugin", facts.plugin.digest.clone()),
        ("contract", chosen.plugin.contract.to_string()),
        ("opened", text(&facts.opened)),
        ("settings", text(&config.settings)),
        ("pixels", facts.preprocessing.clone()),
        ("device", device_kind(&config.device).to_owned()),
        ("cpu", cpu_features()),
    ]))
}

/// What of this processor kernels choose by: results differ in the last bits between them.
fn cpu_features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let found = [
            ("avx2", std::arch::is_x86_feature_detected!("avx2")),
            ("fma", std::arch::is_x86_feature_detected!("fma")),
            ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
            (
                "avx512bf16",
                std::arch::is_x86_feature_detected!("avx512bf16"),
            ),
        ];
        let names: Vec<_> = found
            .iter()
            .filter(|(_, there)| *there)
            .map(|(name, _)| *name)
            .collect();
        format!("x86_64 {}", names.join(" "))
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::env::consts::ARCH.to_owned()
    }
}
