//! vit: vision transformers as image encoders, one parameterised model for all of them: ViT, DINOv2, DINOv3, RETFound (MAE and DINOv2),
//! RETFound-Green, VisionFM, and any checkpoint of these architectures that comes with its `config.json`.
//!
//! Literature, reference code, weights and licences are on each model's card ([`card`]). Weights are not part of this plugin: the host
//! hands over the folder with the files as published, and every tensor in them is accounted for.
//!
//! Settings: `track` (`corrected`, the default, or `as_published`: preprocessing and pooling of the published benchmark's code), `pool`
//! (`cls`, `patch_mean`, `gap_fc_norm`, `pooler`), `weights=random:SEED` (the architecture without what it learnt, as a control),
//! `size=tiny` (with random weights only: a model of toy size, for trying things out).
//!
//! Rooms, in the order data flows: [`settings`] what was asked; [`config`] an architecture's numbers and [`names`] its tensors' names;
//! [`preprocess`] the processor file; [`card`] the known models; [`model`] the transformer; [`pool`] one vector out of many;
//! [`encoder`] the plugin.

#![forbid(unsafe_code)]

pub mod card;
pub mod config;
pub mod encoder;
pub mod model;
pub mod names;
pub mod pool;
pub mod preprocess;
pub mod settings;

focus_plugin_sdk::export_plugin! { name: "vit", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }

macro_rules! register {
    ($($index:literal)*) => {
        $(focus_plugin_sdk::register_model! { describe: || card::all().swap_remove($index).descriptor(), open: encoder::open })*

        /// Models registered; as many as there are cards.
        pub const REGISTERED: usize = [$($index),*].len();
    };
}

register! { 0 1 2 3 4 5 6 7 8 9 10 11 }
