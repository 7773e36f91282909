//! The host runtime: from a command line to a run folder and its report. Lists the rooms; owns nothing itself.
//!
//! Data flows one way: `config` -> `eval` (datasets, images, models) -> the store -> `analysis` -> `report`.
//! Only `cli` prints, and nothing imports `cli`.

#![deny(unsafe_code)]

pub mod cli;
pub mod config;
pub mod doctor;
pub mod eval;
pub mod plugins;
pub mod progress;
pub mod report;
pub mod task;
pub mod weights;
