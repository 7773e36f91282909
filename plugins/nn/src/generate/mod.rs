//! Answering groups of prompts about pictures, the same for every family. Must not know templates, towers or tokenizers: a [`Family`] brings
//! them.
//!
//! ```text
//! GenerateBatch -> look (once a picture) -> render -> common prefix (once a group) -> branches -> first logits -> greedy steps -> reply
//! ```
//! Prompts of a group share the vision tower and the cache of the longest beginning they have in common. Answers of all groups of a call
//! are decoded together, one row each, packed and never padded.

mod attach;
mod error;
mod family;
mod score;
mod serve;
pub mod stop;

#[cfg(test)]
mod tests;

pub use attach::{attach, detach};
pub use error::{compute, lora};
pub use family::Family;
pub use score::{argmax, log_softmax};
pub use serve::serve;
