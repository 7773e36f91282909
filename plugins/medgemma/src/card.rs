//! The known models: literature, licences, where they are published, what a reader must know. Data only: numbers come from the folder's
//! `config.json`.

use crate::preprocess;
use focus_plugin_sdk::{Family, Group, HubSource, InterfaceName, ModelDescriptor};

/// Groups in one call.
pub const BATCH: u32 = 4;
/// Most pixels along a side of the published models.
const SIDE: u32 = 896;

const GEMMA: &str = "Gemma Team. Gemma 3 technical report. 2025. arXiv:2503.19786";
const MEDGEMMA: &str =
    "Sellergren, Kazemzadeh, Jaroensri et al. MedGemma technical report. 2025. arXiv:2507.05201";
const SIGLIP: &str = "Zhai, Mustafa, Kolesnikov, Beyer. Sigmoid loss for language image pre-training. ICCV 2023. arXiv:2303.15343";
const SEEN: &str = "its tower was trained on medical pictures, fundus photographs of a screening programme among them";

/// A known model.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    /// Its name on the hub, where it has one.
    pub id: &'static str,
    /// One line.
    pub title: &'static str,
    /// FOCUS group.
    pub group: Group,
    /// Whether it is published on a model hub under `id`, behind terms that must be accepted there.
    pub hub: bool,
    /// What a reader must know.
    pub note: Option<&'static str>,
    /// Licence of the weights.
    pub weights_license: Option<&'static str>,
    /// Literature.
    pub papers: &'static [&'static str],
    /// The authors' code.
    pub reference_code: Option<&'static str>,
    /// Number types, best first.
    pub dtypes: &'static [&'static str],
}

const HALF_FIRST: &[&str] = &["bf16", "f32"];

const fn medgemma(id: &'static str, title: &'static str) -> Card {
    Card {
        id,
        title,
        group: Group::Medical,
        hub: true,
        note: Some(SEEN),
        weights_license: Some("LicenseRef-Health-AI-Developer-Foundations"),
        papers: &[MEDGEMMA, GEMMA, SIGLIP],
        reference_code: Some("https://github.com/google-health/medgemma"),
        dtypes: HALF_FIRST,
    }
}

/// Sorted by id.
const CARDS: [Card; 5] = [
    Card {
        id: "checkpoint",
        title: "Any checkpoint of Gemma 3's architecture with pictures, by the files in its folder",
        group: Group::General,
        hub: false,
        note: None,
        weights_license: None,
        papers: &[GEMMA],
        reference_code: None,
        dtypes: &["f32", "bf16"],
    },
    Card {
        id: "google/gemma-3-27b-it",
        title: "Gemma 3, 27 billion weights, tuned to instructions",
        group: Group::General,
        hub: true,
        note: None,
        weights_license: Some("LicenseRef-Gemma"),
        papers: &[GEMMA, SIGLIP],
        reference_code: Some("https://github.com/google-deepmind/gemma"),
        dtypes: HALF_FIRST,
    },
    medgemma(
        "google/medgemma-1.5-4b-it",
        "MedGemma 1.5, 4 billion weights, tuned to instructions",
    ),
    medgemma(
        "google/medgemma-27b-it",
        "MedGemma, 27 billion weights with pictures, tuned to instructions",
    ),
    medgemma(
        "google/medgemma-4b-it",
        "MedGemma, 4 billion weights, tuned to instructions",
    ),
];

/// All of them, sorted by id.
pub fn all() -> &'static [Card] {
    &CARDS
}

/// By id.
pub fn by_id(id: &str) -> Option<&'static Card> {
    CARDS.iter().find(|card| card.id == id)
}

impl Card {
    /// As the host sees it.
    pub fn descriptor(&self) -> ModelDescriptor {
        let owned = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let devices: &[&str] = if cfg!(feature = "cuda") {
            &["cuda", "cpu"]
        } else {
            &["cpu"]
        };
        ModelDescriptor {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            family: Family::Mllm,
            group: self.group,
            interfaces: vec![InterfaceName::Generator, InterfaceName::LoraAdaptable],
            preprocessing: preprocess::square(SIDE),
            embedding_dim: None,
            dtypes: owned(self.dtypes),
            devices: owned(devices),
            batch_size: BATCH,
            // One file or shards: whichever is there is found by itself.
            weight_files: owned(&["model.safetensors.index.json", "model.safetensors"]),
            pretraining_datasets: None,
            weights_license: self.weights_license.map(str::to_owned),
            papers: owned(self.papers),
            reference_code: self.reference_code.map(str::to_owned),
            hub: self.hub.then(|| HubSource {
                repository: self.id.to_owned(),
                revision: None,
                gated: true,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_sorted_and_every_one_is_registered() {
        assert!(CARDS.windows(2).all(|pair| pair[0].id < pair[1].id));
        assert_eq!(CARDS.len(), crate::REGISTERED);
        for card in all() {
            assert_eq!(by_id(card.id).map(|card| card.title), Some(card.title));
            assert_eq!(
                card.descriptor().hub.is_some(),
                card.id.starts_with("google/")
            );
        }
    }
}
