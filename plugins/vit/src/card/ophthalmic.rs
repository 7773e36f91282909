//! Encoders of the retina. Data only.

use super::{Card, Packing, Recipe, google_vit, imagenet_crop, squash};
use crate::config::{Position, VitConfig};
use crate::pool::Pool;
use focus_nn::position::Interpolation;
use focus_plugin_sdk::{Geometry, Group, PreprocessingCard, ResizeFilter};

const RETFOUND: &str = "Zhou, Chia, Wagner et al. A foundation model for generalizable disease detection from retinal images. Nature 2023. doi:10.1038/s41586-023-06555-x";
const RETFOUND_LATER: &str = "Zhou et al. Generalist versus specialist vision foundation models for ocular disease and oculomics. 2025. arXiv:2509.03421";
const RETFOUND_CODE: &str = "https://github.com/rmaphoh/RETFound";

// VisionFM's own statistics of fundus photographs.
const VISIONFM_MEAN: [f64; 3] = [0.423737496137619, 0.2609460651874542, 0.128403902053833];
const VISIONFM_STD: [f64; 3] = [
    0.29482534527778625,
    0.20167365670204163,
    0.13668020069599152,
];

/// The cards.
pub(super) fn cards() -> Vec<Card> {
    vec![
        mae(
            "YukunZhou/RETFound_mae_natureCFP",
            "RETFound, MAE ViT-L/16 on colour fundus photographs (Nature 2023)",
            &["RETFound_mae_natureCFP.pth"],
            Some(&["meh-midas", "eyepacs"]),
        ),
        mae(
            "YukunZhou/RETFound_mae_natureOCT",
            "RETFound, MAE ViT-L/16 on OCT scans (Nature 2023)",
            &["RETFound_mae_natureOCT.pth"],
            Some(&["meh-midas", "kermany-oct2017"]),
        ),
        mae(
            "YukunZhou/RETFound_mae_meh",
            "RETFound, MAE ViT-L/16 on colour fundus photographs of Moorfields Eye Hospital",
            &["RETFound_mae_meh.pth"],
            None,
        ),
        mae(
            "YukunZhou/RETFound_mae_shanghai",
            "RETFound, MAE ViT-L/16 on colour fundus photographs from Shanghai",
            &["RETFound_mae_shanghai.pth"],
            None,
        ),
        dinov2(
            "YukunZhou/RETFound_dinov2_meh",
            "RETFound, DINOv2 ViT-L/14 on colour fundus photographs of Moorfields Eye Hospital",
            &["RETFound_dinov2_meh.pth"],
        ),
        dinov2(
            "YukunZhou/RETFound_dinov2_shanghai",
            "RETFound, DINOv2 ViT-L/14 on colour fundus photographs from Shanghai",
            &["RETFound_dinov2_shanghai.pth"],
        ),
        visionfm(),
        green(),
    ]
}

fn mae(
    id: &'static str,
    title: &'static str,
    files: &'static [&'static str],
    pretraining: Option<&'static [&'static str]>,
) -> Card {
    Card {
        id,
        title,
        group: Group::Ophthalmic,
        config: Some(VitConfig::timm(1024, 24, 16, 16, Some(224))),
        files,
        packing: Packing {
            under: Some("model"),
            prefixes: &["module."],
        },
        corrected: Recipe {
            preprocessing: imagenet_crop(),
            pool: Pool::GapFcNorm,
            note: None,
        },
        as_published: Recipe {
            preprocessing: google_vit(224),
            pool: Pool::Cls,
            note: Some(
                "the published code prepares pixels as google/vit does and takes the class token, not RETFound's own recipe",
            ),
        },
        weights_license: Some("CC-BY-NC-4.0"),
        papers: if pretraining.is_some() {
            &[RETFOUND]
        } else {
            &[RETFOUND, RETFOUND_LATER]
        },
        reference_code: Some(RETFOUND_CODE),
        pretraining,
    }
}

fn dinov2(id: &'static str, title: &'static str, files: &'static [&'static str]) -> Card {
    let recipe = |note| Recipe {
        preprocessing: imagenet_crop(),
        pool: Pool::Cls,
        note,
    };
    Card {
        id,
        title,
        group: Group::Ophthalmic,
        config: Some(VitConfig {
            layer_scale: Some(1e-5),
            // The size its table was learnt at is the checkpoint's to say.
            ..VitConfig::timm(1024, 24, 16, 14, None)
        }),
        files,
        packing: Packing {
            under: Some("teacher"),
            prefixes: &["module.", "backbone."],
        },
        corrected: recipe(None),
        as_published: recipe(Some(
            "read as written, the published loader looks for these weights under another key and leaves the encoder random: compare with `weights=random:SEED`",
        )),
        weights_license: Some("CC-BY-NC-4.0"),
        papers: &[RETFOUND_LATER, RETFOUND],
        reference_code: Some(RETFOUND_CODE),
        pretraining: None,
    }
}

fn visionfm() -> Card {
    let config = VitConfig::timm(768, 12, 12, 16, Some(224));
    Card {
        id: "VisionFM-Fundus",
        title: "VisionFM, iBOT ViT-B/16 on fundus photographs",
        group: Group::Ophthalmic,
        config: Some(VitConfig {
            position: Position::Table {
                trained: Some(224),
                prefixed: true,
                how: Interpolation::Factor { offset: 0.1 },
            },
            ..config
        }),
        files: &["VFM_Fundus_weights.pth"],
        packing: Packing {
            under: Some("teacher"),
            prefixes: &["module.", "backbone."],
        },
        corrected: Recipe {
            preprocessing: PreprocessingCard {
                geometry: Geometry::Squash,
                ..squash(224, ResizeFilter::Bilinear, VISIONFM_MEAN, VISIONFM_STD)
            },
            pool: Pool::Cls,
            note: None,
        },
        as_published: Recipe {
            preprocessing: google_vit(224),
            pool: Pool::Cls,
            note: Some(
                "the published code prepares pixels as google/vit does, not with VisionFM's own mean and deviation",
            ),
        },
        weights_license: None,
        papers: &[
            "Qiu, Wu, Wei et al. Development and validation of a multimodal multitask vision foundation model for generalist ophthalmic artificial intelligence. NEJM AI 2024. doi:10.1056/AIoa2300221",
        ],
        reference_code: Some("https://github.com/ABILab-CUHK/VisionFM"),
        pretraining: None,
    }
}

fn green() -> Card {
    let recipe = Recipe {
        preprocessing: google_vit(392),
        pool: Pool::PatchMean,
        note: None,
    };
    Card {
        id: "RETFound-Green",
        title: "RETFound-Green, ViT-S/14 with registers, 392 pixels (not in the published benchmark)",
        group: Group::Ophthalmic,
        config: Some(VitConfig {
            registers: 4,
            layer_scale: Some(1e-5),
            position: Position::Table {
                trained: Some(392),
                prefixed: false,
                how: Interpolation::Size,
            },
            ..VitConfig::timm(384, 12, 6, 14, Some(392))
        }),
        files: &["retfoundgreen_statedict.pth"],
        packing: Packing {
            under: None,
            prefixes: &[],
        },
        corrected: recipe.clone(),
        as_published: recipe,
        weights_license: None,
        papers: &[
            "Engelmann, Bernabeu. Training a high-performance retinal foundation model with half-the-data and 400 times less compute. Nature Communications 2025; 16: 6862. doi:10.1038/s41467-025-62123-z",
        ],
        reference_code: Some("https://github.com/justinengelmann/RETFound_Green"),
        pretraining: Some(&["airogs", "ddr", "odir-5k"]),
    }
}
