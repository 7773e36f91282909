//! What is done with a mapped dataset before any model sees it: splits, the audit, and preparing its pixels. It must not know mappers, models, metrics or
//! how output is printed.
//!
//! | room | owns |
//! | --- | --- |
//! | `splits` | the published split files, the source's split, a drawn one, and the account of each |
//! | `audit` | findings about records, files, names and prompts, and their report |
//! | `prepare` | every file at every wanted size, in the pixel cache |
//! | `error` | why something could not be done |
//!
//! Rules and thresholds are in `docs/curation.md`.
#![forbid(unsafe_code)]

pub mod audit;
mod error;
mod prepare;
pub mod splits;

pub use error::{CurationError, Result};
pub use prepare::{PrepareJob, PrepareOutcome, PrepareReport, prepare_all};
