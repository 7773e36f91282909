//! What a model said about each image. While a run goes on, answers are appended batch by batch to a checksummed log that
//! survives a kill at any byte; when it ends, the log becomes one Parquet file sorted by sample.

mod batch;
mod compact;

mod file;

mod log;
mod row;
mod width;

pub use batch::AnswerBatch;
pub use file::AnswerFile;
pub use log::{AnswerBatches, AnswerLog, AnswersSummary};
pub use row::{AnswerRow, Outcome};

pub(crate) use row::embeddings;

/// A run's answers of one model, as they are found on opening.
#[derive(Debug)]
pub enum Answers {
    /// All are there, sorted.
    Finished(AnswerFile),
    /// Some are missing: append them, then finish.
    Open(AnswerLog, AnswersSummary),
}
