//! Mapping runs from outside: real components on real folders. `FOCUS_MAPPERS_DIR` names a folder of freshly built
//! components to test instead of the committed ones (`scripts/build-mappers --out DIR`).

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod brset;
mod csv;
mod dist;
mod document;
mod full_size;
mod g1020;
mod hostile;
mod idrid;
mod jsiec1000;
mod layout;
mod mbrset;
mod messidor_2;
mod papila;
mod refuge;
mod rfmid;
mod support;
mod synthetic;
mod template;
