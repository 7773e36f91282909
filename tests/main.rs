//! End-to-end tests: the real executable, real plugins in real workers, real mapper components. One module a theme.
//!
//! What a single crate promises is tested beside it; here only what takes several.

mod cli;
mod failures;
mod idrid;
mod layering;
mod resume;
mod support;
mod synthetic;
