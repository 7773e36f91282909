//! Dual encoders of the retina. Data only.

use super::{Card, Packing};
use crate::config::Config;
use crate::preprocess::{CLIP_MEAN, CLIP_STD, clip, flair, squash};
use focus_plugin_sdk::{Group, ResizeFilter};

/// The cards.
pub(super) fn cards() -> Vec<Card> {
    vec![eye_clip(), ret_clip(), flair_card()]
}

fn eye_clip() -> Card {
    Card {
        id: "EyeCLIP",
        title: "EyeCLIP, CLIP ViT-B/32 trained on ophthalmic pictures and reports",
        group: Group::Ophthalmic,
        config: Some(Config::openai_base_32()),
        files: &["eyeclip_visual.pt", "eyeclip_visual_new.pt"],
        packing: Packing {
            under: Some("model_state_dict"),
            prefixes: &["module."],
        },
        preprocessing: clip(224),
        note: None,
        published_note: Some(
            "the published code lays this file over OpenAI's CLIP, so what the file lacks is OpenAI's, and runs in f16 on a GPU (`--dtype f16`)",
        ),
        weights_license: None,
        papers: &[
            "Shi, Zhang, Yang et al. A multimodal visual-language foundation model for computational ophthalmology. npj Digital Medicine 2025; 8: 381. doi:10.1038/s41746-025-01772-2",
        ],
        reference_code: Some("https://github.com/Michi-3000/EyeCLIP"),
        pretraining: None,
    }
}

fn ret_clip() -> Card {
    Card {
        id: "RET-CLIP",
        title: "RET-CLIP, ViT-B/16 and a Chinese RoBERTa, trained on both eyes' photographs and reports",
        group: Group::Ophthalmic,
        config: Some(Config::ret_clip()),
        files: &["ret-clip.pt", "checkpoint.pt"],
        packing: Packing {
            under: Some("state_dict"),
            prefixes: &["module."],
        },
        preprocessing: squash(224, ResizeFilter::Bicubic, CLIP_MEAN, CLIP_STD),
        note: Some(
            "vector of one eye, before the maps that join both eyes, as the authors' code gives for a single photograph",
        ),
        published_note: Some("the published code runs in f16 on a GPU (`--dtype f16`)"),
        weights_license: None,
        papers: &[
            "Du, Guo, Zhang et al. RET-CLIP: a retinal image foundation model pre-trained with clinical diagnostic reports. MICCAI 2024. arXiv:2405.14137",
        ],
        reference_code: Some("https://github.com/sStonemason/RET-CLIP"),
        pretraining: None,
    }
}

fn flair_card() -> Card {
    Card {
        id: "jusiro2/FLAIR",
        title: "FLAIR, ResNet-50 and Bio_ClinicalBERT, 512 pixels",
        group: Group::Ophthalmic,
        config: Some(Config::flair()),
        files: &["model.safetensors", "flair_resnet.pth"],
        packing: Packing {
            under: None,
            prefixes: &["module."],
        },
        preprocessing: flair(512),
        note: None,
        published_note: Some(
            "the published code puts FLAIR's caption before prompts that have it already and embeds all classes at once, where padding is in the mean",
        ),
        weights_license: None,
        papers: &[
            "Silva-Rodríguez, Chakor, Kobbi, Dolz, Ben Ayed. A foundation language-image model of the retina (FLAIR): encoding expert knowledge in text supervision. Medical Image Analysis 2025; 99: 103357. arXiv:2308.07898",
        ],
        reference_code: Some("https://github.com/jusiro/FLAIR"),
        // From the default list of its training; more than these, but what an evaluation here can run into.
        pretraining: Some(&[
            "imagenet-1k",
            "idrid",
            "rfmid",
            "jsiec",
            "papila",
            "g1020",
            "brset",
        ]),
    }
}
