//! The encoders against their references: tiny models of every family (`scripts/copy_fixtures.py`), with the reference's embeddings.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod cards;
mod configs;
mod reference;
mod refusals;
mod support;
mod traps;
