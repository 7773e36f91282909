//! The waist of the system: a run folder holds everything that cost model time, and every metric, table and figure is
//! recomputed from it with no model, no image and no accelerator.
//!
//! | room | owns |
//! | --- | --- |
//! | `run`, `manifest`, `lock` | the folder's layout, the identity of a run, one process at a time |
//! | `log` | the checksummed, append-only log under all answers |
//! | `answer` | what an encoder said about each image: append-only log, then Parquet |
//! | `generation` | what a generative model said to each prompt about each image, likewise; and by content for all runs |
//! | `record`, `prediction`, `metric`, `agree` | the three row tables and their rules |
//! | `cache`, `key` | embeddings by content, shared by all runs |
//! | `table` | Parquet written byte for byte the same, and read with suspicion |
//! | `atomic`, `hash`, `name`, `limits`, `error` | what the others stand on |
//!
//! It knows no dataset, plugin or metric by name. The file formats are a contract: `docs/formats.md`.

#![forbid(unsafe_code)]

mod agree;
mod answer;
mod atomic;
mod cache;
mod error;
mod generation;
mod hash;
mod key;
mod limits;
mod lock;
mod log;
mod manifest;
mod metric;
mod name;
mod prediction;
mod record;
mod run;
mod table;

pub use answer::{
    AnswerBatch, AnswerBatches, AnswerFile, AnswerLog, AnswerRow, Answers, AnswersSummary, Outcome,
};
pub use atomic::{AtomicFile, write_atomic};
pub use cache::{CacheStats, CachedEmbedding, EmbeddingCache};
pub use error::{Result, StoreError};
pub use generation::{
    Generated, GenerationCache, GenerationFile, GenerationLayout, GenerationLog, GenerationRow,
    Generations, VariantLogprob,
};
pub use hash::{BadHash, ContentHash};
pub use key::ModelKey;
pub use limits::Limits;
pub use lock::RunLock;
pub use log::{AnswerLogOptions, SyncPolicy, TornTail};
pub use manifest::{DatasetIdentity, ModelIdentity, PluginIdentity, RunManifest};
pub use metric::{METRICS_VERSION, MetricRow, Metrics};
pub use name::{AS_PUBLISHED_SUFFIX, CellKey, file_stem};
pub use prediction::{Fold, PREDICTIONS_VERSION, PredictionRow, Predictions};
pub use record::{RECORDS_VERSION, Record, Records};
pub use run::{RunFolder, RunView};
