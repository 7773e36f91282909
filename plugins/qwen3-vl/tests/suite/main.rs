//! Qwen3-VL against a tiny model of the reference's, with its pictures, tokens, logits, generations and adapters.

#![expect(clippy::unwrap_used, reason = "tests")]

mod adapters;
mod answers;
mod configs;
mod logits;
mod pictures;
mod refusals;
mod support;
mod traps;
