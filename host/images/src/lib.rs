//! Photographs: decode (capped), orient, composite, resize through `focus-resize`, keep the result by content.
//!
//! Owns everything between a file's bytes and 8-bit RGB pixels of the size that a model's card asks for, and the record of what was done.
//! Must not know datasets, labels, models, or what the pixels are for.
//!
//! | file | owns |
//! |---|---|
//! | `limits` | the caps on what is read and decoded |
//! | `error` | the typed image errors, their stable kinds and hints |
//! | `format` | which format the bytes are, by their first bytes |
//! | `orientation` | reading the EXIF orientation and applying it |
//! | `jpeg`, `portable` | the two decoders (JPEG; PNG, portable network graphics) |
//! | `image` | pixels and the notes on how they were decoded |
//! | `workspace` | decoding and preparing with buffers that a thread keeps |
//! | `geometry` | from the photograph's shape to the model's |
//! | `spec` | what a card asks for, and its stable key |
//! | `cache` | prepared pixels on disk, by content |
//! | `file` | the same from a path |

#![forbid(unsafe_code)]

mod cache;
mod error;
mod file;
mod format;
mod geometry;
mod image;
mod jpeg;
mod limits;
mod orientation;
mod portable;
mod spec;
mod workspace;

pub use cache::PixelCache;
pub use error::ImageError;
pub use file::{Decoded, Prepared, decode_file, prepare_bytes, prepare_file, read_file};
pub use format::ImageFormat;
pub use image::{ContentHash, DecodeNotes, RgbImage, SourceMode};
pub use limits::Limits;
pub use spec::{Geometry, PIXEL_VERSION, PrepareSpec, ResizeFilter};
pub use workspace::{Workspace, decode, prepare};
