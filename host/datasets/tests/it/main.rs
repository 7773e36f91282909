//! Mapping runs from outside: real components on real folders. `FOCUS_MAPPERS_DIR` names a folder of freshly built
//! components to test instead of the committed ones (`scripts/build-mappers --out DIR`).

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod csv;
mod dist;
mod hostile;
mod idrid;
mod layout;
mod support;
mod synthetic;
mod template;
