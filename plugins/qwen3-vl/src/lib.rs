//! qwen3-vl: Qwen3-VL, a generative model of pictures and text (Bai, Cai, Chen et al., Qwen3-VL technical report, 2025, arXiv:2511.21631; DeepStack:
//! Meng, Yang, Tian et al., 2024, arXiv:2406.04334). Reference code: Hugging Face transformers, models/qwen3_vl. Weights:
//! Qwen/Qwen3-VL-8B-Instruct, Apache-2.0; any dense checkpoint of the architecture by its folder.
//!
//! Weights are not part of this plugin: the host hands over the folder with the files as published, and every tensor in them is
//! accounted for.
//!
//! Settings: `track` (`corrected`, the default, or `as_published`: the same here, since the published code leaves preparation to the
//! model's own), `min_pixels` and `max_pixels` (in place of the processor file's; they decide how many tokens a picture takes),
//! `weights=random:SEED` (the architecture without what it learnt), `size=tiny` (with random weights only: a toy with a tokenizer and
//! a template of its own, for trying things out).
//!
//! Rooms, in the order data flows: [`settings`] what was asked; [`config`] the architecture's numbers; [`processor`] pictures to patches;
//! [`tower`] patches to the language model's rows; [`prompt`] tokens and places; [`card`] the known models, [`toy`] one that needs no
//! folder; [`network`] both networks; [`mod@open`] what lies beside the weights; [`model`] the plugin. The language model itself is `focus_nn::lm`.

#![forbid(unsafe_code)]

pub mod card;
pub mod config;
pub mod model;
pub mod network;
pub mod open;
pub mod processor;
pub mod prompt;
pub mod settings;
pub mod tower;
pub mod toy;

focus_plugin_sdk::export_plugin! { name: "qwen3-vl", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }
focus_plugin_sdk::register_model! { describe: card::qwen3_vl_8b, open: model::open }
focus_plugin_sdk::register_model! { describe: card::checkpoint, open: model::open }
