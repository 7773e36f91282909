//! Low-rank adapters in PEFT's folder format: read, checked against a model's modules, attached beside others. Must not know families:
//! they show their modules ([`Adaptable::visit`]) and say how their names were spelt over the years ([`Adaptable::spellings`]).
//!
//! ```text
//! folder -> Settings + tensors -> plan (every key and every target accounted for) -> parts in the layers -> Adapters::select by name
//! ```
//! Nothing is attached unless all of it fits.

mod attach;
mod error;
mod name;
mod plan;
mod settings;
mod target;

#[cfg(test)]
mod tests;

pub use attach::{Adapters, Attached, attach, detach, merge};
pub use error::LoraError;
pub use name::{Spelling, join};
pub use settings::Settings;
pub use target::Targets;

use crate::{Linear, lm::Embedding};

/// A module that an adapter may change.
#[derive(Debug)]
pub enum Module<'a> {
    /// A linear layer.
    Linear(&'a mut Linear),
    /// The map to the vocabulary; `all-linear` leaves it out.
    Head(&'a mut Linear),
    /// The table of token embeddings: replaced whole or not at all.
    Embedding(&'a mut Embedding),
}

/// A model whose layers take adapters.
pub trait Adaptable {
    /// Show every module once, by its name in the newest spelling, as `transformers` has it in memory
    /// (`model.language_model.layers.0.self_attn.q_proj`, `lm_head`).
    fn visit(&mut self, visit: &mut dyn FnMut(&str, Module<'_>));

    /// The adapters attached so far.
    fn adapters(&mut self) -> &mut Adapters;

    /// Older spellings.
    fn spellings(&self) -> &'static [Spelling];
}
