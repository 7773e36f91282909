//! `adapter_config.json`, strictly: a field that would change what is computed and is not understood is an error. Knows no tensors.

use super::{LoraError, Targets};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Fields that say nothing about what is computed from loaded tensors: how they were made, by whom and for what.
const HARMLESS: [&str; 18] = [
    "arrow_config",
    "auto_mapping",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "inference_mode",
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

/// Beginnings of `lora_A` and `lora_B` that leave the base's weights alone. Others (`pissa`, `olora`) take their product out of the base,
/// which a loaded adapter would have to repeat.
const STARTS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

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
    pub rank_pattern: Patterns<u32>,
    /// Alphas by patterns of names, likewise.
    #[serde(default)]
    pub alpha_pattern: Patterns<f64>,
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
    #[serde(default)]
    init_lora_weights: Value,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// Values by patterns of names, in the order of the file: the first that fits counts.
#[derive(Debug, Clone)]
pub struct Patterns<T>(pub Vec<(String, T)>);

impl<T> Default for Patterns<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patterns<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Pairs<T> {
            type Value = Patterns<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("values by patterns")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Patterns(pairs))
            }
        }
        from.deserialize_map(Pairs(PhantomData))
    }
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
        if settings.r == 0 || settings.rank_pattern.0.iter().any(|(_, rank)| *rank == 0) {
            return wrong("a rank is 0".into());
        }
        let alphas = settings
            .alpha_pattern
            .0
            .iter()
            .map(|(_, alpha)| alpha)
            .chain([&settings.lora_alpha]);
        if alphas.into_iter().any(|alpha| !alpha.is_finite()) {
            return wrong("an alpha is not finite".into());
        }
        match &settings.init_lora_weights {
            Value::Null | Value::Bool(_) => {}
            Value::String(word) if STARTS.contains(&word.as_str()) => {}
            other => {
                return wrong(format!(
                    "`init_lora_weights` is {other}, which changes the base"
                ));
            }
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
fn by_pattern<T: Copy>(patterns: &Patterns<T>, names: &[String]) -> Result<Option<T>, LoraError> {
    for (pattern, value) in &patterns.0 {
        let whole = super::target::compile(&format!(r"^(?:.*\.)?(?:{pattern})$"))?;
        for name in names {
            if super::target::matches(&whole, name)? {
                return Ok(Some(*value));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(more: &str) -> Result<Settings, LoraError> {
        let json = format!(r#"{{"peft_type": "LORA", "r": 8, "lora_alpha": 16{more}}}"#);
        Settings::parse(json.as_bytes())
    }

    #[test]
    fn the_first_pattern_of_the_file_counts() {
        let text = r#", "rank_pattern": {"up_proj": 2, "layers.3.mlp.up_proj": 4}, "alpha_pattern": {"q_proj|k_proj": 32}"#;
        let settings = parse(text).unwrap();
        let rank = |name: &str| settings.rank(&[name.to_owned()]).unwrap();
        assert_eq!(rank("model.layers.3.mlp.up_proj"), 2);
        assert_eq!(rank("model.layers.3.mlp.down_proj"), 8);
        assert_eq!(rank("model.layers.3.mlp.not_up_proj"), 8);
        let scale = |name: &str| settings.scale(&[name.to_owned()]).unwrap();
        assert_eq!(scale("model.layers.0.self_attn.k_proj"), 4.0);
        assert_eq!(scale("model.layers.3.mlp.up_proj"), 8.0);
        let rooted = parse(r#", "use_rslora": true, "r": 4"#);
        assert!(rooted.is_err(), "a field given twice is refused");
        let rooted = parse(r#", "use_rslora": true, "rank_pattern": {"x": 4}"#).unwrap();
        assert_eq!(rooted.scale(&["x".to_owned()]).unwrap(), 8.0);
    }

    #[test]
    fn starts_that_change_the_base_are_refused() {
        for good in ["true", "false", "null", "\"gaussian\""] {
            assert!(
                parse(&format!(r#", "init_lora_weights": {good}"#)).is_ok(),
                "{good}"
            );
        }
        for bad in ["\"pissa_niter_4\"", "\"olora\"", "3"] {
            let error = parse(&format!(r#", "init_lora_weights": {bad}"#)).unwrap_err();
            assert!(error.to_string().contains("changes the base"), "{error}");
        }
        assert!(
            parse(r#", "rank_pattern": {"(": 4}"#)
                .unwrap()
                .rank(&["x".to_owned()])
                .is_err()
        );
        assert!(parse(r#", "rank_pattern": {"x": 0}"#).is_err());
    }
}
