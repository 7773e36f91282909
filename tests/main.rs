//! End-to-end tests: the real executable, real plugins in real workers, real mapper components. One module a theme.
//!
//! What a single crate promises is tested beside it; here only what takes several.

mod cli;
mod curation;
mod dual;
mod failures;
mod generators;
mod idrid;
mod layering;
mod many;
mod pictures;
mod prompting;
mod resume;
mod splits;
mod statistics;
mod support;
mod synthetic;
