//! A plugin that misbehaves on request, one misdeed per setting, so that each limit and each denial of the host has a test.
//!
//! Without a misdeed it is a correct model: eight numbers per image ([`embedding`]) that tests can compute themselves. Never shipped.
//! Paper, reference code, weights: none. Must not be linked into a host; the rlib is for tests that want [`embedding`].
//!
//! Settings of its one model, `hostile`:
//! * `misdeed`: see [`Misdeed`]; default `none`.
//! * `marker`: `RRGGBB`; the misdeed happens only in batches where a used image's first pixel has this colour. Without it: in every batch.
//! * `batch` (default 4), `edge` (default 16): batch size and image side in pixels.
//! * `path`, `address`: target of `write_file` and `open_socket`. `amount`: how many lines, MiB or seconds, by misdeed.

mod misdeed;
mod model;

pub use misdeed::Misdeed;
pub use model::{DIM, embedding};

focus_plugin_sdk::export_plugin! { name: "hostile", version: env!("CARGO_PKG_VERSION"), license: env!("CARGO_PKG_LICENSE") }
