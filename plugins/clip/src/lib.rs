//! clip: dual encoders of pictures and texts: CLIP, SigLIP and SigLIP 2 at fixed resolution, MedSigLIP, EyeCLIP, RET-CLIP, FLAIR, and any
//! checkpoint of these architectures that comes with its `config.json`.
//!
//! Literature, reference code, weights and licences are on each model's card ([`card`]). Weights are not part of this plugin: the host
//! hands over the folder with the files as published, and every tensor in them is accounted for.
//!
//! Models are image encoders and dual encoders to the host. Texts longer than a model takes are cut, and said to be.
//!
//! Settings: `track` (`corrected`, the default, or `as_published`: texts as the published benchmark's code handles them), `weights=random:SEED`
//! (the architecture without what it learnt, as a control; words then get ids by a hash), `size=tiny` (with random weights only: a model of
//! toy size, for trying things out), `text=none` (the image side alone, for checkpoints without the other; such a model is a dual encoder by
//! its card and has no text interface when open).
//!
//! Rooms, in the order data flows: [`settings`] what was asked; [`config`] an architecture's numbers and `names` its tensors' names;
//! [`preprocess`] the processor file; [`card`] the known models; [`tokens`] ids, [`tower`] the networks; [`rule`] what a family does with
//! texts, [`tokenizer`] texts to ids, [`text`] texts to vectors; [`similarity`] vectors to probabilities; [`mod@open`] folders to models; [`encoder`] the plugin.

#![forbid(unsafe_code)]

pub mod card;
pub mod config;
pub mod encoder;
mod names;
pub mod open;
pub mod preprocess;
pub mod rule;
pub mod settings;
pub mod similarity;
pub mod text;
pub mod tokenizer;
pub mod tokens;
pub mod tower;

focus_plugin_sdk::export_plugin! { name: "clip", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }

macro_rules! register {
    ($($index:literal)*) => {
        $(focus_plugin_sdk::register_model! { describe: || card::all().swap_remove($index).descriptor(), open: encoder::open })*

        /// Models registered; as many as there are cards.
        pub const REGISTERED: usize = [$($index),*].len();
    };
}

register! { 0 1 2 3 4 5 6 }
