//! A plugin that misbehaves on request, one misdeed per setting, so that each limit and each denial of the host has a test.
//!
//! Without a misdeed its two models are correct, and tests can compute what they say: `hostile` embeds images ([`embedding`]) and texts
//! ([`text_embedding`]) in eight numbers, `hostile-generator` answers prompts on full pictures ([`generated`]). Never shipped.
//! Paper, reference code, weights: none. Must not be linked into a host; the rlib is for tests that want those functions.
//!
//! Settings:
//! * `misdeed`: see [`Misdeed`]; default `none`.
//! * `marker`: `RRGGBB`; the misdeed happens only in batches where a used image's first pixel has this colour, in groups where a
//!   picture's first pixel has it, and with texts that hold `!`. Without it: always.
//! * `batch` (default 4), `edge` (default 16): batch size and image side in pixels.
//! * `path`, `address`: target of `write_file`, `read_variable` and `open_socket`. `amount`: how many lines, MiB or seconds, by misdeed.

mod generator;
mod misdeed;
mod model;

pub use generator::generated;
pub use misdeed::Misdeed;
pub use model::{DIM, embedding, text_embedding};

focus_plugin_sdk::export_plugin! { name: "hostile", version: env!("CARGO_PKG_VERSION"), license: env!("CARGO_PKG_LICENSE") }
