//! The known models: literature, licence, files, what a reader must know. Data only.

use crate::config::Config;
use crate::preprocess::Processor;
use focus_plugin_sdk::{Family, Group, HubSource, InterfaceName, ModelDescriptor};

/// A known model.
#[derive(Debug, Clone)]
pub struct Card {
    /// Its name on the hub, where it has one.
    pub id: &'static str,
    /// One line.
    pub title: &'static str,
    /// Whether it is published on the hub under its id.
    pub hub: bool,
    /// Licence of the weights.
    pub weights_license: Option<&'static str>,
}

/// Any checkpoint of this architecture.
pub const CHECKPOINT: &str = "checkpoint";

/// Groups in one call.
const BATCH: u32 = 4;

const HUB_FILES: [&str; 6] = [
    "config.json",
    "generation_config.json",
    "model.safetensors.index.json",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
];

const PAPERS: [&str; 3] = [
    "Liu, Li, Li, Li, Zhang, Shen, Lee. LLaVA-NeXT: improved reasoning, OCR, and world knowledge. January 2024",
    "Li, Zhang, Zhang, Guo, Zhang, Li, Zhang, Liu, Li. LLaVA-NeXT: stronger LLMs supercharge multimodal capabilities in the wild. May 2024",
    "Liu, Li, Li, Lee. Improved baselines with visual instruction tuning. CVPR 2024. arXiv:2310.03744",
];

impl Card {
    /// As the host sees it.
    pub fn descriptor(&self) -> ModelDescriptor {
        let owned = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let devices: &[&str] = if cfg!(feature = "cuda") {
            &["cuda", "cpu"]
        } else {
            &["cpu"]
        };
        let config = Config::llama3_8b();
        ModelDescriptor {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            family: Family::Mllm,
            group: Group::General,
            interfaces: vec![InterfaceName::Generator, InterfaceName::LoraAdaptable],
            preprocessing: Processor::clip(config.vision.size as u32, config.pinpoints).card(),
            embedding_dim: None,
            // The published benchmark's first.
            dtypes: owned(&["bf16", "f32"]),
            devices: owned(devices),
            batch_size: BATCH,
            // What every copy has; the index names the shards. Of other checkpoints no file is known by name.
            weight_files: if self.hub {
                owned(&HUB_FILES)
            } else {
                Vec::new()
            },
            pretraining_datasets: None,
            weights_license: self.weights_license.map(str::to_owned),
            papers: owned(&PAPERS),
            reference_code: Some("https://github.com/LLaVA-VL/LLaVA-NeXT".into()),
            hub: self.hub.then(|| HubSource {
                repository: self.id.to_owned(),
                revision: None,
                gated: false,
            }),
        }
    }
}

/// All of them, sorted by id.
pub fn all() -> Vec<Card> {
    vec![
        Card {
            id: CHECKPOINT,
            title: "Any LLaVA-NeXT with a Llama, by the files in its folder",
            hub: false,
            weights_license: None,
        },
        Card {
            id: "llava-hf/llama3-llava-next-8b-hf",
            title: "LLaVA-NeXT with Llama 3 8B and CLIP ViT-L/14 at 336 pixels",
            hub: true,
            weights_license: Some("LicenseRef-Meta-Llama-3-Community"),
        },
    ]
}

/// By id.
pub fn by_id(id: &str) -> Option<Card> {
    all().into_iter().find(|card| card.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_registered() {
        let ids: Vec<_> = all().iter().map(|card| card.id).collect();
        assert_eq!(ids.len(), crate::REGISTERED);
        assert!(ids.is_sorted());
        assert!(by_id("llava-hf/llama3-llava-next-8b-hf").is_some() && by_id("llava").is_none());
    }
}
