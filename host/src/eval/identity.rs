//! What identifies a run and an embedding: everything that may change a bit of either, and nothing of the place or the moment.

use super::dataset::Dataset;
use super::method::Method;
use super::method::captions::captions_of;
use super::model::Chosen;
use super::permission;
use super::pixels::spec_of;
use super::{Advised, ERROR_BUDGET, EvalError, Facts, PluginFacts};
use crate::config::EvalConfig;
use crate::weights::resolve;
use focus_curation::splits::SplitKind;
use focus_plugin_abi::v1::message::{InterfaceName, OpenedModel, RANDOM_WEIGHTS};
use focus_store::{ModelIdentity, ModelKey, PluginIdentity, Records, RunManifest};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The model setting that asks for a size other than the published one, such as `tiny`.
pub const SIZE: &str = "size";
/// Name of the manifest option that holds the model's settings.
pub const SETTINGS_OPTION: &str = "settings";
/// Name of the manifest option that says how a split was made.
const SPLIT_OPTION: &str = "split";

/// What a report says of model and dataset.
pub fn facts(
    config: &EvalConfig,
    chosen: &Chosen,
    opened: &OpenedModel,
    dataset: &Dataset,
) -> Result<Facts, EvalError> {
    let mut opened = opened.clone();
    // Which of several equal cards was used changes nothing.
    opened.device.truncate(device_kind(&opened.device).len());
    let weights = match &config.weights {
        Some(folder) => Some(weights_digest(folder, &chosen.model.weight_files)?),
        None => None,
    };
    let Some(spec) = spec_of(&opened.preprocessing, config.field, config.decode) else {
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
        },
        weights,
        preprocessing: spec.canonical(),
        dataset: dataset.facts.clone(),
        prompting: None,
        adapter: None,
    })
}

/// What makes the run this run.
pub fn manifest(
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
    options.insert("records".into(), json(&records_digest(&dataset.records)));
    if let Some(weights) = &facts.weights {
        options.insert("weights".into(), json(weights));
    }
    if !dataset.options.is_empty() {
        options.insert("dataset_options".into(), json(&dataset.options));
    }
    // The source's own split follows from the label files.
    if let Some(plan) = &dataset.split
        && plan.account.kind != SplitKind::Source
    {
        let split = serde_json::json!({
            "digest": plan.digest(&dataset.records),
            "rule": plan.account.rule,
            "published": dataset.published.as_ref().map(|plan| plan.digest(&dataset.records)),
        });
        options.insert(SPLIT_OPTION.into(), split);
    }
    if let Some(size) = config.batch_size {
        options.insert("batch_size".into(), serde_json::json!(size));
    }
    if methods
        .iter()
        .any(|method| method.needs == InterfaceName::DualEncoder)
    {
        let captions: BTreeMap<&str, String> = tasks
            .iter()
            .filter_map(|task| Some((task.as_str(), captions_of(task)?.digest())))
            .collect();
        options.insert("captions".into(), json(&captions));
    }
    if !config.settings.is_empty() {
        options.insert(SETTINGS_OPTION.into(), json(&config.settings));
    }
    let mut permissions: Vec<String> = chosen
        .network
        .iter()
        .map(|host| format!("network:{host}"))
        .collect();
    if permission::needs_upload(&chosen.reach, dataset) {
        permissions.push(format!("upload:{}", dataset.facts.id));
    }
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
            id: cell_model(config, facts),
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
        seeds: BTreeMap::from([("bootstrap".into(), focus_analysis::SEED)]),
        permissions,
        synthetic: dataset.synthetic,
        options,
    }
}

/// The model's name in cells. Random weights make it another model, which no table may take for the trained one.
fn cell_model(config: &EvalConfig, facts: &Facts) -> String {
    let id = &facts.model.id;
    // A toy of the same architecture is another model too.
    let toy = config.settings.get(SIZE).map(|size| format!("+{size}"));
    // A server's name says which model answers; a folder without a known name is told by its weights.
    let served = facts.opened.facts.get("served_model");
    let served = served.map(|name| format!("+{}", name.replace('+', "_")));
    let digest = facts.weights.as_deref().filter(|_| id == "checkpoint");
    let folder = digest.and_then(|digest| digest.split(':').nth(1)?.get(..8));
    let folder = folder.map(|digits| format!("+{digits}"));
    let drawn = config.settings.get(RANDOM_WEIGHTS);
    let drawn = drawn.map(|drawn| format!("+{}", drawn.replace(':', "-")));
    format!(
        "{id}{}{}{}{}",
        served.unwrap_or_default(),
        folder.unwrap_or_default(),
        toy.unwrap_or_default(),
        drawn.unwrap_or_default()
    )
}

/// `blake3:hex` over the records in order: which image has which number, split and labels. A photograph added to the folder, or
/// taken away, shifts the numbers, and answers are stored by number.
fn records_digest(records: &Records) -> String {
    let mut hasher = blake3::Hasher::new();
    for record in &records.rows {
        let text = serde_json::json!([
            record.id,
            record.split,
            record.patient,
            record.labels,
            record.published_labels
        ])
        .to_string();
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    format!("blake3:{}", hasher.finalize().to_hex())
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
pub fn device_kind(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}

/// `runs/idrid-handcrafted-0123abcd`, the digits from the run's identity.
pub fn default_folder(manifest: &RunManifest) -> PathBuf {
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

/// Size in bytes up to which a file beside the listed weights is taken for part of the model: configuration, tokenizer, template.
const SMALL: u64 = 64 << 20;

/// `blake3:hex` over names and contents of the weight files that the card lists, shards too, and of every small file beside them; of
/// every file in the folder where the card lists none. The host's own word: a plugin that leaves `weights_digest` out must not be given another's embeddings.
pub fn weights_digest(folder: &Path, listed: &[String]) -> Result<String, EvalError> {
    let fault = |path: &Path, error: std::io::Error| {
        let hint = "Give the folder that holds the model's weight files: --weights DIR";
        EvalError::Input(Advised::new(
            format!("Cannot read weights `{}`: {error}", path.display()),
            hint,
        ))
    };
    let named = resolve(folder, listed).map_err(|missing| {
        let hint = "Give the folder that holds the model's weight files: --weights DIR";
        EvalError::Input(Advised::new(
            format!(
                "Cannot read weights in `{}`: expected {}, which is not there",
                folder.display(),
                missing.join(", ")
            ),
            hint,
        ))
    })?;
    let mut names: BTreeSet<String> = named.into_iter().collect();
    for entry in std::fs::read_dir(folder).map_err(|e| fault(folder, e))? {
        let path = entry.map_err(|e| fault(folder, e))?.path();
        // Through links: files of a hub's cache are links.
        let Ok(file) = std::fs::metadata(&path) else {
            continue;
        };
        if file.is_file() && (listed.is_empty() || file.len() <= SMALL) {
            let name = path.file_name().unwrap_or_default();
            names.insert(name.to_string_lossy().into_owned());
        }
    }
    let mut all = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    for name in names {
        let path = folder.join(&name);
        let mut file = std::fs::File::open(&path).map_err(|e| fault(&path, e))?;
        let mut hasher = blake3::Hasher::new();
        loop {
            let read = file.read(&mut buffer).map_err(|e| fault(&path, e))?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
        }
        all.update(&(name.len() as u64).to_le_bytes());
        all.update(name.as_bytes());
        all.update(hasher.finalize().as_bytes());
    }
    Ok(format!("blake3:{}", all.finalize().to_hex()))
}

/// Everything but the image that may change one bit of an embedding.
pub fn model_key(config: &EvalConfig, chosen: &Chosen, facts: &Facts) -> ModelKey {
    let text = |value: &dyn erased::Json| value.json().to_string();
    ModelKey::from_parts(&BTreeMap::from([
        ("plugin", facts.plugin.digest.clone()),
        ("contract", chosen.plugin.contract.to_string()),
        ("opened", text(&facts.opened)),
        ("weights", facts.weights.clone().unwrap_or_default()),
        ("settings", text(&config.settings)),
        ("pixels", facts.preprocessing.clone()),
        ("device", device_kind(&config.device).to_owned()),
        ("cpu", cpu_features()),
    ]))
}

/// What is true of this machine only, for `machine.json`.
pub fn machine(chosen: &Chosen) -> serde_json::Value {
    serde_json::json!({ "cpu": cpu_features(), "sandbox": chosen.plugin.sandbox })
}

/// What of this processor kernels choose by: results differ in the last bits between them.
pub fn cpu_features() -> String {
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
