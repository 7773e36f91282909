//! medgemma: Gemma 3 and MedGemma, pictures and prompts to text: a SigLIP tower, an average-pooling projector, and a decoder with sliding
//! windows, in which a picture's tokens see each other.
//!
//! Literature, reference code, weights and licences are on each model's card ([`card`]). Weights are not part of this plugin: the host hands
//! over the folder with the files as published, and every tensor in them is accounted for. Adapters are PEFT folders, several on one base.
//!
//! Settings: `track` (`corrected`, the default, or `as_published`; the network is the same, the report says which), `weights=random:SEED`
//! with `size=tiny` (a toy with a tokenizer and a template of its own, for trying things out). Pan and scan, cutting a wide picture into
//! further crops, is off, as in the published benchmark and in the reference by default.
//!
//! Rooms, in the order data flows: [`settings`] what was asked; [`config`] an architecture's numbers; [`preprocess`] the processor's file;
//! [`card`] the known models; [`projector`] features to rows, [`network`] tower, projector and decoder; [`talk`] questions to ids and back;
//! [`toy`] a model of no size; [`mod@open`] folders to models; [`plugin`] the face to the host.

#![forbid(unsafe_code)]

pub mod card;
pub mod config;
pub mod network;
pub mod open;
pub mod plugin;
pub mod preprocess;
pub mod projector;
pub mod settings;
pub mod talk;
pub mod toy;

focus_plugin_sdk::export_plugin! { name: "medgemma", version: env!("CARGO_PKG_VERSION"), license: "MIT OR Apache-2.0" }

macro_rules! register {
    ($($index:literal)*) => {
        $(focus_plugin_sdk::register_model! { describe: || card::all()[$index].descriptor(), open: plugin::open })*

        /// Models registered; as many as there are cards.
        pub const REGISTERED: usize = [$($index),*].len();
    };
}

register! { 0 1 2 3 4 }
