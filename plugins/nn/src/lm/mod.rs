//! The decoder of Gemma 3, Qwen 3 and Llama 3: one stack of layers, told apart by a [`DecoderConfig`]. Must not know pictures, templates
//! or files.
//!
//! ```text
//! Prompt (tokens, places, image spans) -> Sequence (+ Cache) -> Decoder::forward -> last logits, f32
//! ```
//! Sequences of one call are packed: their rows go through every matrix together, and each attends to its own [`Cache`] alone. Nothing is
//! padded, so a sequence's logits depend on its neighbours only in the last bits of a product. A [`Cache`] is allocated once, for prompt
//! and answer, and [`Cache::branch`] copies what a common beginning has left in it.

mod attention;
mod block;
mod cache;
mod config;
mod decoder;
mod embedding;
mod mask;
mod rope;
mod sequence;

#[cfg(test)]
mod tests;

pub use cache::Cache;
pub use config::{DecoderConfig, LayerKind, Llama3Scaling, NormStyle, Rope};
pub use decoder::Decoder;
pub use embedding::Embedding;
pub use sequence::{Features, ImageSpan, Place, Prompt, Sequence, common_prefix};
