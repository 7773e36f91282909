//! The client over real worker processes and real dylibs: each misdeed of the hostile plugin costs what it should.
//!
//! `cargo test` builds neither the worker program nor a sibling's dylib, so the support module builds both.

mod adapters;
mod death;
mod generate;
mod honest;
mod misdeed;
mod sandbox;
mod support;
mod texts;
