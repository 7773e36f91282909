//! What identifies a prompting run and its generations: the encoder run's identity, and the question and the adapter beside it.

use super::adapter::AdapterFacts;
use super::facts::PromptingFacts;
use super::picture::Preparation;
use crate::config::EvalConfig;
use crate::eval::dataset::Dataset;
use crate::eval::identity::{self, device_kind};
use crate::eval::method::Method;
use crate::eval::model::Chosen;
use crate::eval::{EvalError, Facts, PluginFacts};
use focus_plugin_abi::v1::message::OpenedModel;
use focus_store::{ModelKey, RunManifest};
use std::collections::BTreeMap;

/// Everything that a prompting run is identified by.
pub struct Subject<'a> {
    /// What is asked for.
    pub config: &'a EvalConfig,
    /// The model's plugin and card.
    pub chosen: &'a Chosen,
    /// The dataset.
    pub dataset: &'a Dataset,
    /// The method.
    pub methods: &'a [&'static Method],
    /// `blake3:hex` of the weight files; none for a model without.
    pub weights: Option<String>,
}

impl Subject<'_> {
    /// What a report says.
    pub fn facts(
        &self,
        opened: &OpenedModel,
        preparation: &Preparation,
        prompting: PromptingFacts,
        adapter: Option<AdapterFacts>,
    ) -> Facts {
        let mut opened = opened.clone();
        // Which of several equal cards was used changes nothing.
        opened.device.truncate(device_kind(&opened.device).len());
        let plugin = &self.chosen.plugin;
        Facts {
            model: self.chosen.model.clone(),
            opened,
            plugin: PluginFacts {
                name: plugin.descriptor.name.clone(),
                version: plugin.descriptor.version.clone(),
                digest: plugin.digest.clone(),
            },
            weights: self.weights.clone(),
            preprocessing: preparation.key(),
            dataset: self.dataset.facts.clone(),
            prompting: Some(prompting),
            adapter,
        }
    }

    /// What makes the run this run.
    pub fn manifest(&self, facts: &Facts, prompting: &PromptingFacts) -> RunManifest {
        let mut tasks: Vec<String> = prompting.prompts.iter().map(|p| p.task.clone()).collect();
        tasks.extend(prompting.without_prompt.iter().cloned());
        let mut manifest = identity::manifest(
            self.config,
            self.chosen,
            facts,
            self.dataset,
            &tasks,
            self.methods,
        );
        let json =
            |value: &PromptingFacts| serde_json::to_value(value).expect("plain data is JSON");
        manifest.options.insert("prompting".into(), json(prompting));
        if let Some(adapter) = &facts.adapter {
            let model = &mut manifest.models[0];
            model.id = format!("{}+lora-{}", model.id, adapter.name);
            let identity = serde_json::json!({
                "name": adapter.name,
                "digest": adapter.digest,
                "attached": adapter.attached.digest,
            });
            manifest.options.insert("adapter".into(), identity);
        }
        manifest
    }

    /// Everything but the image that may change one bit of a generation.
    pub fn key(&self, facts: &Facts, prompting: &PromptingFacts) -> ModelKey {
        let text = |value: serde_json::Result<String>| value.expect("plain data is JSON");
        let adapter = facts.adapter.as_ref();
        ModelKey::from_parts(&BTreeMap::from([
            ("plugin", facts.plugin.digest.clone()),
            ("contract", self.chosen.plugin.contract.to_string()),
            ("opened", text(serde_json::to_string(&facts.opened))),
            ("weights", facts.weights.clone().unwrap_or_default()),
            (
                "adapter",
                adapter.map_or(String::new(), |a| {
                    format!("{} {}", a.digest, a.attached.digest)
                }),
            ),
            (
                "settings",
                text(serde_json::to_string(&self.config.settings)),
            ),
            ("question", text(serde_json::to_string(prompting))),
            ("pixels", facts.preprocessing.clone()),
            ("device", device_kind(&self.config.device).to_owned()),
            ("cpu", identity::cpu_features()),
        ]))
    }
}

/// `blake3:hex` of the weight files of a configuration.
pub fn weights_of(config: &EvalConfig, chosen: &Chosen) -> Result<Option<String>, EvalError> {
    let digest = |folder| identity::weights_digest(folder, &chosen.model.weight_files);
    config.weights.as_deref().map(digest).transpose()
}
