//! Low-rank adapters of a run: their names, folders and digests, and their attachment. Reads no tensor: that is the plugin's.

use crate::config::AdapterChoice;
use crate::eval::identity::weights_digest;
use crate::eval::{Advised, EvalError};
use crate::task;
use focus_models::Generator;
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest, InterfaceName, ModelDescriptor};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a PEFT folder holds.
const FILES: [&str; 2] = ["adapter_config.json", "adapter_model.safetensors"];

/// What an adapter was trained on: `<dataset>-<task>`, the part of a cell's model name behind `+lora-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdapterName {
    /// The training dataset.
    pub dataset: String,
    /// The task; `all` and the like for one that was trained for no single task.
    pub task: String,
}

impl AdapterName {
    fn parse(text: &str) -> Option<Self> {
        let word = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        let (dataset, task) = text.rsplit_once('-')?;
        (word(dataset) && word(task)).then(|| Self {
            dataset: dataset.into(),
            task: task.into(),
        })
    }
}

impl std::fmt::Display for AdapterName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.dataset, self.task)
    }
}

/// An adapter that was looked at, not attached yet.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// Its name.
    pub name: AdapterName,
    /// Its folder.
    pub folder: PathBuf,
    /// `blake3:hex` of its two files.
    pub digest: String,
}

/// What a report says of an attached adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterFacts {
    /// `<training dataset>-<task>`.
    pub name: String,
    /// `blake3:hex` of its two files, computed by the host.
    pub digest: String,
    /// What the plugin said when it was attached.
    pub attached: AttachReply,
}

/// Look at the adapters of a configuration. `tasks` are those that will be asked about.
pub fn look(
    choices: &[AdapterChoice],
    model: &ModelDescriptor,
    tasks: &[String],
) -> Result<Vec<Adapter>, EvalError> {
    if !choices.is_empty() && !model.interfaces.contains(&InterfaceName::LoraAdaptable) {
        let message = format!("Model `{}` takes no adapters", model.id);
        return Err(EvalError::Request(Advised::plain(message)));
    }
    let mut found: Vec<Adapter> = Vec::new();
    for choice in choices {
        let adapter = one(choice)?;
        let name = &adapter.name;
        if found.iter().any(|other| other.name == *name) {
            let message = format!("Adapter `{name}` is given twice");
            return Err(EvalError::Request(Advised::new(message, NAMING)));
        }
        if task::by_id(&name.task).is_none() && name.task != "all" {
            let message = format!("Adapter `{name}` names no task: found `{}`", name.task);
            return Err(EvalError::Request(Advised::new(message, NAMING)));
        }
        if task::by_id(&name.task).is_some() && !tasks.contains(&name.task) {
            let message = format!(
                "Adapter `{name}` was trained for `{}`, which is not among the tasks of this run: found {}",
                name.task,
                tasks.join(", ")
            );
            return Err(EvalError::Request(Advised::new(
                message,
                "Leave the adapter out, or add its task to --tasks",
            )));
        }
        found.push(adapter);
    }
    Ok(found)
}

const NAMING: &str = "An adapter is named for what it was trained on, by its folder or in front of it: --adapter brset-binary_dr=DIR";

fn one(choice: &AdapterChoice) -> Result<Adapter, EvalError> {
    let folder = choice.folder.canonicalize().map_err(|error| {
        let message = format!("Cannot read adapter `{}`: {error}", choice.folder.display());
        EvalError::Input(Advised::new(message, FOLDER))
    })?;
    if let Some(file) = FILES.iter().find(|file| !folder.join(file).is_file()) {
        let message = format!("Adapter `{}` has no `{file}`", choice.folder.display());
        return Err(EvalError::Input(Advised::new(message, FOLDER)));
    }
    let named = choice.name.clone().unwrap_or_else(|| {
        let own = folder.file_name().unwrap_or_default().to_string_lossy();
        own.strip_prefix("lora-").unwrap_or(&own).to_owned()
    });
    let name = AdapterName::parse(&named).ok_or_else(|| {
        let message =
            format!("Adapter name `{named}` is malformed: expected `<training dataset>-<task>`");
        EvalError::Request(Advised::new(message, NAMING))
    })?;
    Ok(Adapter {
        name,
        digest: digest(&folder)?,
        folder,
    })
}

const FOLDER: &str =
    "An adapter is a PEFT folder: `adapter_config.json` beside `adapter_model.safetensors`";

fn digest(folder: &Path) -> Result<String, EvalError> {
    weights_digest(folder, &FILES.map(str::to_owned))
}

/// Attach it. An adapter that leaves the logits alone would be the base under another name: an error.
pub fn attach(adapter: &Adapter, generator: &mut dyn Generator) -> Result<AdapterFacts, EvalError> {
    let name = adapter.name.to_string();
    let attached = generator.attach(&AttachRequest {
        name: name.clone(),
        folder: adapter.folder.display().to_string(),
    })?;
    if !(attached.probe_change.is_finite() && attached.probe_change > 0.0) {
        let message = format!(
            "Adapter `{name}` does not change the model: expected other logits than the base's, found a change of {}",
            attached.probe_change
        );
        let hint = "Its tensors may all be zero (an untrained adapter), or belong to another model";
        return Err(EvalError::Plugin(Advised::new(message, hint)));
    }
    Ok(AdapterFacts {
        name,
        digest: adapter.digest.clone(),
        attached,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_dataset_and_task() {
        let name = AdapterName::parse("my-set-binary_dr").expect("a name");
        assert_eq!(
            (name.dataset.as_str(), name.task.as_str()),
            ("my-set", "binary_dr")
        );
        assert_eq!(name.to_string(), "my-set-binary_dr");
        let whole = format!("m+lora-{name}");
        assert!(focus_analysis::ModelName::parse(&whole).is_ok());
        for text in [
            "", "brset", "-dr", "brset-", "a b-dr", "a-b+c", "a/b-c", "a-\u{e9}",
        ] {
            assert_eq!(AdapterName::parse(text), None, "{text:?}");
        }
    }
}
