//! Models as evaluation sees them: traits and plain data. Behind them: `client` (a worker process), `in_process`, `fake`.
//!
//! Knows nothing of datasets, tasks, metrics or run folders.
//!
//! Rooms: `model` (the traits), `options` and `error` beside it; `client` (pipelining, restarts) over `session` (one life of a
//! worker, the conversation) over `life` (the process itself) and `logs` (what it prints); `bisect` finds the images that
//! fail; `check` holds replies to the contract; `describe` asks a plugin what it offers.
#![forbid(unsafe_code)]

mod bisect;
mod check;
pub mod client;
pub mod describe;
mod error;
pub mod fake;
pub mod in_process;
mod life;
mod logs;
mod model;
mod options;
mod session;

#[cfg(test)]
mod peer;

pub use client::{WorkerClient, WorkerRecord};
pub use describe::{DescribedPlugin, describe};
pub use error::{ModelError, SinkError};
pub use in_process::{InProcessEncoder, describe_in_process};
pub use model::{
    Answer, Ask, AskedGroup, DualEncoder, FullPicture, Generator, GroupAnswer, ImageEncoder,
    PixelBatch, Plugin, PreparedImage, TextRows,
};
pub use options::{ClientOptions, Timeouts, WorkerOptions};
