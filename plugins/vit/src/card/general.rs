//! Encoders of natural images, and checkpoints of any origin. Data only.

use super::{
    Card, IMAGENET_MEAN, IMAGENET_STD, Packing, Recipe, google_vit, imagenet_crop, squash,
};
use crate::config::VitConfig;
use crate::pool::Pool;
use focus_plugin_sdk::{Group, PixelMode, PreprocessingCard, ResizeFilter};

const HUB_FILES: &[&str] = &["model.safetensors"];
const PLAIN: Packing = Packing {
    under: None,
    prefixes: &[],
};

/// The cards.
pub(super) fn cards() -> Vec<Card> {
    let dinov2 = Recipe {
        preprocessing: imagenet_crop(),
        pool: Pool::Cls,
        note: None,
    };
    let dinov3 = Recipe {
        preprocessing: PreprocessingCard {
            mode: PixelMode::Float,
            ..squash(224, ResizeFilter::Bilinear, IMAGENET_MEAN, IMAGENET_STD)
        },
        pool: Pool::Cls,
        note: None,
    };
    let any = Recipe {
        preprocessing: google_vit(224),
        pool: Pool::Cls,
        note: None,
    };
    vec![
        Card {
            id: "google/vit-large-patch16-224",
            title: "ViT-L/16, supervised on ImageNet-21k and ImageNet-1k, 224 pixels",
            group: Group::General,
            config: Some(VitConfig::vit_large()),
            files: HUB_FILES,
            packing: Packing {
                under: None,
                prefixes: &["vit."],
            },
            corrected: Recipe {
                preprocessing: google_vit(224),
                pool: Pool::Cls,
                note: None,
            },
            as_published: Recipe {
                preprocessing: google_vit(224),
                pool: Pool::Pooler,
                note: Some(
                    "the published code takes `pooler_output`, whose dense layer this checkpoint lacks: it is random there, and drawn from seed 0 here, so the published numbers cannot be met exactly",
                ),
            },
            weights_license: Some("Apache-2.0"),
            papers: &[
                "Dosovitskiy et al. An image is worth 16x16 words: transformers for image recognition at scale. ICLR 2021. arXiv:2010.11929",
                "Steiner et al. How to train your ViT? Data, augmentation, and regularization in vision transformers. TMLR 2022. arXiv:2106.10270",
            ],
            reference_code: Some("https://github.com/google-research/vision_transformer"),
            pretraining: Some(&["imagenet-21k", "imagenet-1k"]),
        },
        Card {
            id: "facebook/dinov2-large",
            title: "DINOv2 ViT-L/14, self-supervised on LVD-142M",
            group: Group::General,
            config: Some(VitConfig::dinov2_large()),
            files: HUB_FILES,
            packing: PLAIN,
            corrected: dinov2.clone(),
            as_published: dinov2,
            weights_license: Some("Apache-2.0"),
            papers: &[
                "Oquab, Darcet, Moutakanni et al. DINOv2: learning robust visual features without supervision. TMLR 2024. arXiv:2304.07193",
            ],
            reference_code: Some("https://github.com/facebookresearch/dinov2"),
            pretraining: Some(&["lvd-142m"]),
        },
        Card {
            id: "facebook/dinov3-vitl16-pretrain-lvd1689m",
            title: "DINOv3 ViT-L/16, self-supervised on LVD-1689M",
            group: Group::General,
            config: Some(VitConfig::dinov3_large()),
            files: HUB_FILES,
            packing: Packing {
                under: None,
                prefixes: &["model."],
            },
            corrected: dinov3.clone(),
            as_published: dinov3,
            weights_license: Some("LicenseRef-DINOv3"),
            papers: &["Siméoni, Vo, Seitzer et al. DINOv3. 2025. arXiv:2508.10104"],
            reference_code: Some("https://github.com/facebookresearch/dinov3"),
            pretraining: Some(&["lvd-1689m"]),
        },
        Card {
            id: "checkpoint",
            title: "Any checkpoint of these architectures, by `config.json` and `preprocessor_config.json` in its folder",
            group: Group::General,
            config: None,
            files: &[],
            packing: Packing {
                under: None,
                prefixes: &[
                    "module.",
                    "backbone.",
                    "vit.",
                    "model.",
                    "dinov2.",
                    "dinov2_with_registers.",
                ],
            },
            corrected: any.clone(),
            as_published: any,
            weights_license: None,
            papers: &[
                "Dosovitskiy et al. An image is worth 16x16 words: transformers for image recognition at scale. ICLR 2021. arXiv:2010.11929",
            ],
            reference_code: None,
            pretraining: None,
        },
    ]
}
