//! Weights on this machine: finding those of a model card in the Hugging Face cache. Opens no checkpoint: what is in a file is the
//! plugin's business.

mod cache;

pub use cache::{WeightsError, in_cache, snapshot};
