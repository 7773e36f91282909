//! llava-next: LLaVA-NeXT with Llama 3: a CLIP tower over a picture and its tiles, a projector, a language model.
//!
//! Liu, Li, Li, Li, Zhang, Shen, Lee: LLaVA-NeXT, January 2024 (any-resolution tiling); Li, Zhang, Zhang, Guo, Zhang, Li, Zhang, Liu, Li:
//! LLaVA-NeXT: stronger LLMs supercharge multimodal capabilities in the wild, May 2024 (Llama 3). Reference code: transformers'
//! `LlavaNextForConditionalGeneration` and `LlavaNextImageProcessor`, against whose values this plugin is tested. Weights:
//! `llava-hf/llama3-llava-next-8b-hf`, under the Meta Llama 3 Community License; not part of this plugin.
//!
//! Settings: `track` (`corrected`, the default, or `as_published`), and `weights=random:SEED` with `size=tiny`: a toy without training that
//! needs no folder, for trying things out.
//!
//! Rooms, in the order data flows: [`settings`] what was asked; [`card`] the known models; [`config`] an architecture's numbers;
//! [`preprocess`] the processor's files; [`grid`] sizes of tilings; [`tiles`] a picture to tiles; [`network`] tiles to rows of the language
//! model's stream, with the [`projector`]; `toy` a tokenizer and template without files; [`mod@open`] folders to parts; [`model`] the plugin.

#![forbid(unsafe_code)]

pub mod card;
pub mod config;
pub mod grid;
pub mod model;
pub mod network;
pub mod open;
pub mod preprocess;
pub mod projector;
pub mod settings;
pub mod tiles;
mod toy;

focus_plugin_sdk::export_plugin! { name: "llava-next", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }

macro_rules! register {
    ($($index:literal)*) => {
        $(focus_plugin_sdk::register_model! { describe: || card::all().swap_remove($index).descriptor(), open: model::open })*

        /// Models registered; as many as there are cards.
        pub const REGISTERED: usize = [$($index),*].len();
    };
}

register! { 0 1 }
