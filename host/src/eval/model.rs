//! Opening the model a configuration names: sidecar, description, choice, worker. The only room of `eval` that knows plugins are files.

use super::{Advised, EvalError};
use crate::config::{EvalConfig, WorkerConfig};
use crate::weights;
use focus_models::{
    ClientOptions, DescribedPlugin, DualEncoder, Generator, ImageEncoder, InProcessEncoder,
    Timeouts, WorkerClient, WorkerOptions, describe, describe_in_process,
};
use focus_plugin_abi::v1::message::{
    Group, InterfaceName, ModelDescriptor, OpenOptions, OpenedModel, PluginDescriptor,
    RANDOM_WEIGHTS,
};
use focus_worker::Sidecar;
use std::path::Path;

/// A described plugin and the model chosen.
pub struct Chosen {
    /// The plugin.
    pub plugin: DescribedPlugin,
    /// Its model.
    pub model: ModelDescriptor,
    /// Network hosts granted by both the sidecar and the user.
    pub network: Vec<String>,
    /// Network hosts that the plugin can in fact reach: without a sandbox, all that it wants.
    pub reach: Vec<String>,
    worker: WorkerOptions,
}

/// An open model, by what it can be asked.
pub enum OpenModel {
    /// About images.
    Images(Box<dyn ImageEncoder>),
    /// About images and texts.
    Both(Box<dyn DualEncoder>),
}

impl OpenModel {
    /// What was opened.
    pub fn opened(&self) -> &OpenedModel {
        match self {
            Self::Images(encoder) => encoder.opened(),
            Self::Both(encoder) => encoder.opened(),
        }
    }

    /// Its image side.
    pub fn images(&mut self) -> &mut dyn ImageEncoder {
        match self {
            Self::Images(encoder) => encoder.as_mut(),
            Self::Both(encoder) => encoder.as_mut(),
        }
    }

    /// Both sides, where its text side is open.
    pub fn texts(&mut self) -> Option<&mut dyn DualEncoder> {
        match self {
            Self::Both(encoder) if encoder.opened().similarity.is_some() => Some(encoder.as_mut()),
            _ => None,
        }
    }

    /// Whether there is a text side.
    pub fn offers_texts(&self) -> bool {
        matches!(self, Self::Both(encoder) if encoder.opened().similarity.is_some())
    }
}

/// How to run the worker of a plugin file, by its sidecar and the user's options.
pub fn worker_options(library: &Path, worker: &WorkerConfig) -> Result<WorkerOptions, EvalError> {
    let sidecar = Sidecar::read_for(library).map_err(|error| plugin_error(&error, error.hint()))?;
    let mut options = WorkerOptions::new(library, sidecar.digest.clone());
    options.library_paths = sidecar.library_folders(library);
    options.network = sidecar.granted_network(&worker.allow_network);
    options.environment = sidecar.granted_environment(&worker.allow_network);
    options.sandbox = worker.sandbox;
    options.memory_limit = Some(worker.memory);
    options.timeouts = Timeouts {
        load: worker.load_timeout,
        describe: worker.load_timeout,
        open: worker.open_timeout,
        batch: worker.batch_timeout,
    };
    Ok(options)
}

/// Describe the plugin and choose its model.
pub fn choose(config: &EvalConfig) -> Result<Chosen, EvalError> {
    let worker = worker_options(&config.plugin, &config.worker)?;
    let sidecar =
        Sidecar::read_for(&config.plugin).map_err(|error| plugin_error(&error, error.hint()))?;
    check_device(&sidecar, &config.device)?;
    let plugin = if config.worker.in_process {
        describe_in_process(&worker)?
    } else {
        describe(&worker)?
    };
    check_agreement(&sidecar, &plugin.descriptor)?;
    let models = &plugin.descriptor.models;
    let known = || {
        models
            .iter()
            .map(|m| format!("`{}`", m.id))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let model = match &config.model {
        Some(id) => models
            .iter()
            .find(|model| model.id == *id)
            .cloned()
            .ok_or_else(|| {
                EvalError::Request(Advised::new(
                    format!("Plugin `{}` has no model `{id}`", plugin.descriptor.name),
                    format!("Its models: {}", known()),
                ))
            })?,
        None => by_default(models, config).cloned().ok_or_else(|| {
            EvalError::Plugin(Advised::plain(format!(
                "Plugin `{}` offers no model",
                plugin.descriptor.name
            )))
        })?,
    };
    let known = [InterfaceName::ImageEncoder, InterfaceName::Generator];
    if !known.iter().any(|known| model.interfaces.contains(known)) {
        return Err(EvalError::Plugin(Advised::plain(format!(
            "Model `{}` offers no interface that this version can evaluate: found {:?}",
            model.id, model.interfaces
        ))));
    }
    Ok(Chosen {
        reach: if config.worker.sandbox && !config.worker.in_process {
            worker.network.clone()
        } else {
            // Its sidecar is the author's word; nothing holds the plugin to it.
            vec!["any host (no sandbox)".to_owned()]
        },
        network: worker.network.clone(),
        worker,
        plugin,
        model,
    })
}

/// The model when none is named: the first; where weights are needed and none are given, the first whose weights are on this
/// machine, else the first that is published somewhere, so that the way to its weights can be told.
fn by_default<'a>(
    models: &'a [ModelDescriptor],
    config: &EvalConfig,
) -> Option<&'a ModelDescriptor> {
    if config.weights.is_some() || config.settings.contains_key(RANDOM_WEIGHTS) {
        return models.first();
    }
    let at_hand = |model: &&ModelDescriptor| {
        let (id, files) = (&model.id, &model.weight_files);
        weights::fetch::fetched(id, files, &config.folders).is_some()
            || matches!(weights::in_cache(model, &config.folders.hub), Ok(Some(_)))
    };
    let published = || models.iter().filter(|model| model.hub.is_some());
    // A plugin named for a medical model means that one, not its general kin.
    let of_the_field = |model: &&ModelDescriptor| model.group != Group::General;
    models
        .iter()
        .find(at_hand)
        .or_else(|| published().find(of_the_field))
        .or_else(|| published().next())
        .or(models.first())
}

impl Chosen {
    /// Open the model, in its worker or in this process.
    pub fn open(&self, config: &EvalConfig) -> Result<OpenModel, EvalError> {
        let options = self.client_options(config);
        let texts = self.model.interfaces.contains(&InterfaceName::DualEncoder);
        let model = if config.worker.in_process {
            let encoder = InProcessEncoder::open(&options.worker, &options.open)?;
            if texts {
                OpenModel::Both(Box::new(encoder))
            } else {
                OpenModel::Images(Box::new(encoder))
            }
        } else {
            let client = WorkerClient::open(&options)?;
            if texts {
                OpenModel::Both(Box::new(client))
            } else {
                OpenModel::Images(Box::new(client))
            }
        };
        check_batch_size(config.batch_size, model.opened())?;
        Ok(model)
    }

    /// Open a generative model likewise.
    pub fn open_generator(&self, config: &EvalConfig) -> Result<Box<dyn Generator>, EvalError> {
        let options = self.client_options(config);
        let generator: Box<dyn Generator> = if config.worker.in_process {
            Box::new(InProcessEncoder::open(&options.worker, &options.open)?)
        } else {
            Box::new(WorkerClient::open(&options)?)
        };
        check_batch_size(config.batch_size, generator.opened())?;
        Ok(generator)
    }

    fn client_options(&self, config: &EvalConfig) -> ClientOptions {
        let open = OpenOptions {
            model: self.model.id.clone(),
            device: config.device.clone(),
            dtype: config.dtype.clone(),
            weights: config
                .weights
                .as_ref()
                .map(|folder| folder.display().to_string()),
            threads: config.worker.threads,
            batch_size: config.batch_size,
            settings: config.settings.clone(),
            network: self.network.clone(),
        };
        let mut options = ClientOptions::new(self.worker.clone(), open);
        options.max_restarts = config.worker.max_restarts;
        options
    }
}

/// A model that was asked for a batch size runs in it, or not at all.
fn check_batch_size(asked: Option<u32>, opened: &OpenedModel) -> Result<(), EvalError> {
    match asked {
        Some(asked) if asked != opened.batch_size => Err(EvalError::Request(Advised::new(
            format!(
                "Model `{}` does not take another batch size: expected {asked}, found {}",
                opened.model, opened.batch_size
            ),
            "Leave out --batch-size, and the model chooses",
        ))),
        _ => Ok(()),
    }
}

/// A build for other devices is refused before it is loaded.
fn check_device(sidecar: &Sidecar, device: &str) -> Result<(), EvalError> {
    let kind = super::identity::device_kind(device);
    if sidecar.devices.iter().any(|d| d == kind) {
        return Ok(());
    }
    let message = format!(
        "Plugin `{}` is not built for `{kind}`: found {}",
        sidecar.name,
        sidecar.devices.join(", ")
    );
    Err(EvalError::Request(Advised::new(
        message,
        "Choose another --device, or the plugin's build for this one",
    )))
}

/// A sidecar that names another plugin was not made for this one.
fn check_agreement(sidecar: &Sidecar, plugin: &PluginDescriptor) -> Result<(), EvalError> {
    if (&sidecar.name, &sidecar.version) == (&plugin.name, &plugin.version) {
        return Ok(());
    }
    let message = format!(
        "Sidecar and plugin disagree: expected `{} {}`, found `{} {}`",
        sidecar.name, sidecar.version, plugin.name, plugin.version
    );
    Err(EvalError::Plugin(Advised::new(
        message,
        "If you trust the file, seal it again: `focus-host plugin seal`",
    )))
}

fn plugin_error(error: &dyn std::error::Error, hint: Option<String>) -> EvalError {
    EvalError::Plugin(Advised {
        message: error.to_string(),
        hint,
    })
}

#[cfg(test)]
impl Chosen {
    /// A generative model of a plugin that does not exist, for runs on fakes.
    pub(super) fn pretended(digest: &str) -> Self {
        let card = serde_json::json!({
            "id": "fake-mllm", "title": "Fake", "family": "mllm", "group": "general",
            "interfaces": ["generator", "lora_adaptable"],
            "preprocessing": {
                "mode": "self", "width": 0, "height": 0, "geometry": {"kind": "squash"}, "filter": "bicubic",
            },
            "dtypes": ["f32"], "devices": ["cpu"], "batch_size": 3,
        });
        let model: ModelDescriptor = serde_json::from_value(card).expect("a card");
        Self {
            plugin: DescribedPlugin {
                descriptor: PluginDescriptor {
                    name: "fake".into(),
                    version: "0.1.0".into(),
                    license: "MIT".into(),
                    models: vec![model.clone()],
                },
                digest: digest.into(),
                contract: 1,
                sandbox: Vec::new(),
            },
            model,
            network: Vec::new(),
            reach: Vec::new(),
            worker: WorkerOptions::new(Path::new("libfake.so"), digest.to_owned()),
        }
    }
}
