//! `adapter_config.json`, strictly: a field that would change what is computed and is not understood is an error. Knows no tensors.

use super::{LoraError, Targets};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Fields that say nothing about what is computed from loaded tensors: how they were made, by whom and for what.
const HARMLESS: [&str; 19] = [
    "arrow_config",
    "auto_mapping",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "inference_mode",
    "init_lora_weights",
    "lora_dropout",
    "lora_ga_config",
    "loftq_config",
    "megatron_config",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "task_type",
    "layers_pattern",
    "parent_library",
];

/// What an adapter's configuration says.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    peft_type: String,
    /// Rank, where no pattern says otherwise.
    pub r: u32,
    /// Alpha, where no pattern says otherwise.
    pub lora_alpha: f64,
    /// Whether the factor is alpha / sqrt(r) instead of alpha / r.
    #[serde(default)]
    pub use_rslora: bool,
    /// Which modules were trained.
    #[serde(default)]
    pub target_modules: Option<Targets>,
    /// Which of them were not.
    #[serde(default)]
    pub exclude_modules: Option<Targets>,
    /// Ranks by patterns of names, in the order of the file.
    #[serde(default)]
    pub rank_pattern: BTreeMap<String, u32>,
    /// Alphas by patterns of names.
    #[serde(default)]
    pub alpha_pattern: BTreeMap<String, f64>,
    /// Modules that were trained whole.
    #[serde(default)]
    pub modules_to_save: Option<Vec<String>>,
    /// Layers that were trained; all where absent.
    #[serde(default)]
    pub layers_to_transform: Option<Layers>,
    /// The base it was trained on.
    #[serde(default)]
    pub base_model_name_or_path: Option<String>,
    #[serde(default = "none")]
    bias: String,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// One layer or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Layers {
    /// One.
    One(usize),
    /// Several.
    Many(Vec<usize>),
}

fn none() -> String {
    "none".into()
}

impl Settings {
    /// Parse and refuse what is not supported.
    pub fn parse(json: &[u8]) -> Result<Self, LoraError> {
        let settings: Self = serde_json::from_slice(json)
            .map_err(|error| LoraError::Settings(format!("{error}")))?;
        let wrong = |reason: String| Err(LoraError::Settings(reason));
        if settings.peft_type != "LORA" {
            return wrong(format!(
                "expected `peft_type` LORA, found `{}`",
                settings.peft_type
            ));
        }
        if settings.bias != "none" {
            return wrong(format!("expected `bias` none, found `{}`", settings.bias));
        }
        if settings.r == 0 || settings.rank_pattern.values().any(|&rank| rank == 0) {
            return wrong("a rank is 0".into());
        }
        let alphas = settings
            .alpha_pattern
            .values()
            .chain([&settings.lora_alpha]);
        if alphas.into_iter().any(|alpha| !alpha.is_finite()) {
            return wrong("an alpha is not finite".into());
        }
        for (name, value) in &settings.rest {
            let idle = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty(),
                _ => false,
            };
            if !idle && !HARMLESS.contains(&name.as_str()) {
                return wrong(format!("`{name}` is {value}, which is not supported"));
            }
        }
        Ok(settings)
    }

    /// Rank of a module, by any of its spellings.
    pub(super) fn rank(&self, names: &[String]) -> Result<u32, LoraError> {
        Ok(by_pattern(&self.rank_pattern, names)?.unwrap_or(self.r))
    }

    /// Factor of a module.
    pub(super) fn scale(&self, names: &[String]) -> Result<f64, LoraError> {
        let alpha = by_pattern(&self.alpha_pattern, names)?.unwrap_or(self.lora_alpha);
        let rank = f64::from(self.rank(names)?);
        Ok(alpha / if self.use_rslora { rank.sqrt() } else { rank })
    }

    /// Whether a module's layer was trained, as far as its name says.
    pub(super) fn trains_layer_of(&self, name: &str) -> bool {
        let chosen: &[usize] = match &self.layers_to_transform {
            None => return true,
            Some(Layers::One(layer)) => std::slice::from_ref(layer),
            Some(Layers::Many(layers)) => layers,
        };
        name.split('.')
            .find_map(|part| part.parse::<usize>().ok())
            .is_some_and(|layer| chosen.contains(&layer))
    }
}

/// The value of the first pattern that a name ends in, at the beginning of a part of it.
fn by_pattern<T: Copy>(
    patterns: &BTreeMap<String, T>,
    names: &[String],
) -> Result<Option<T>, LoraError> {
    for (pattern, value) in patterns {
        let whole = super::target::compile(&format!(r"^(?:.*\.)?(?:{pattern})$"))?;
        for name in names {
            if super::target::matches(&whole, name)? {
                return Ok(Some(*value));
            }
        }
    }
    Ok(None)
}
