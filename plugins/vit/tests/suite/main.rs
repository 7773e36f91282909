//! The encoders against their references: tiny models of every family (`scripts/copy_fixtures.py`), with the reference's embeddings.

#![expect(
    clippy::wildcard_imports,
    reason = "every file of the suite uses all of `support`"
)]

mod cards;
mod configs;
mod reference;
mod refusals;
mod support;
mod traps;
