//! What a generative model said about each image: one row for each prompt. While a run goes on, whole groups (all prompts on one
//! image) are appended to a checksummed log; when it ends, the log becomes one Parquet file sorted by sample and prompt. And the same
//! rows by content, shared by all runs. It knows no task and reads no answer out of a text.

mod cache;
mod file;
mod log;
mod row;

pub use cache::GenerationCache;
pub use file::GenerationFile;
pub use log::GenerationLog;
pub use row::{Generated, GenerationLayout, GenerationRow, VariantLogprob};

/// A run's generations of one model, as they are found on opening.
#[derive(Debug)]
pub enum Generations {
    /// All are there, sorted.
    Finished(GenerationFile),
    /// Some are missing: append them, then finish.
    Open(GenerationLog),
}
