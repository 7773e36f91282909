//! Weights on this machine: getting them, finding those fetched before, and those of a model card in the Hugging Face cache. Opens no
//! checkpoint: what is in a file is the plugin's business.

mod cache;
pub mod fetch;
mod files;

pub use cache::{WeightsError, in_cache, snapshot};
pub use files::resolve;
