//! The plugin against transformers on a tiny model (`scripts/test_data.py`).

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod adapters;
mod answers;
mod common;
mod faults;
mod network;
mod processor;
mod training;
