//! Dual encoders of pictures at large, and checkpoints of any origin. Data only. MedSigLIP has seen medical pictures, those of eyes among
//! them, and is counted among the general ones, as in the published benchmark.

use super::{Card, PLAIN, Packing};
use crate::config::Config;
use crate::preprocess::{clip, squash};
use focus_plugin_sdk::{Group, ResizeFilter};

const HALF: [f64; 3] = [0.5; 3];
const HUB_FILES: &[&str] = &["model.safetensors"];
const SIGLIP: &str = "Zhai, Mustafa, Kolesnikov, Beyer. Sigmoid loss for language image pre-training. ICCV 2023. arXiv:2303.15343";
const CLIP: &str = "Radford, Kim, Hallacy et al. Learning transferable visual models from natural language supervision. ICML 2021. arXiv:2103.00020";
const SIGLIP_PUBLISHED: &str = "the published code fills texts up to the longest of a task, not to 64: the text vector, taken at the last place, differs wholly";

/// The cards.
pub(super) fn cards() -> Vec<Card> {
    vec![
        Card {
            id: "openai/clip-vit-base-patch32",
            title: "CLIP ViT-B/32, 224 pixels",
            group: Group::General,
            config: Some(Config::clip_base_32()),
            files: &["model.safetensors", "pytorch_model.bin"],
            packing: PLAIN,
            preprocessing: clip(224),
            note: None,
            published_note: None,
            weights_license: Some("MIT"),
            papers: &[CLIP],
            reference_code: Some("https://github.com/openai/CLIP"),
            pretraining: None,
        },
        Card {
            id: "google/siglip2-base-patch16-224",
            title: "SigLIP 2 ViT-B/16, 224 pixels",
            group: Group::General,
            config: Some(Config::siglip2_base_224()),
            files: HUB_FILES,
            packing: PLAIN,
            preprocessing: squash(224, ResizeFilter::Bilinear, HALF, HALF),
            note: None,
            published_note: Some(SIGLIP_PUBLISHED),
            weights_license: Some("Apache-2.0"),
            papers: &[
                "Tschannen, Gritsenko, Wang et al. SigLIP 2: multilingual vision-language encoders with improved semantic understanding, localization, and dense features. 2025. arXiv:2502.14786",
                SIGLIP,
            ],
            reference_code: Some("https://github.com/google-research/big_vision"),
            pretraining: Some(&["webli"]),
        },
        Card {
            id: "google/medsiglip-448",
            title: "MedSigLIP, SigLIP at 448 pixels trained on medical pictures and texts",
            group: Group::General,
            config: Some(Config::medsiglip_448()),
            files: HUB_FILES,
            packing: PLAIN,
            preprocessing: squash(448, ResizeFilter::Bilinear, HALF, HALF),
            note: None,
            published_note: Some(SIGLIP_PUBLISHED),
            weights_license: Some("LicenseRef-Health-AI-Developer-Foundations"),
            papers: &[
                "Sellergren, Kazemzadeh, Jaroensri et al. MedGemma technical report. 2025. arXiv:2507.05201",
                SIGLIP,
            ],
            reference_code: Some("https://github.com/google-health/medsiglip"),
            pretraining: None,
        },
        Card {
            id: "checkpoint",
            title: "Any checkpoint of these architectures, by `config.json` and `preprocessor_config.json` in its folder",
            group: Group::General,
            config: None,
            files: &[],
            packing: Packing {
                under: None,
                prefixes: &["module."],
            },
            preprocessing: clip(224),
            note: None,
            published_note: None,
            weights_license: None,
            papers: &[CLIP],
            reference_code: None,
            pretraining: None,
        },
    ]
}
