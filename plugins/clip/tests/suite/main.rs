//! The dual encoders against their references: tiny models of every family (`scripts/copy_fixtures.py`), with the reference's outputs.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod cards;
mod configs;
mod dual;
mod images;
mod refusals;
mod support;
mod texts;
mod traps;
