//! Photographs: decode (capped), orient, composite, resize through `focus-resize`, keep the result by content.
//!
//! Owns everything between a file's bytes and RGB pixels of the size and number type that a model's card asks for, and the record of what was done.
//! Must not know datasets, labels, models, or what the pixels are for.
//!
//! | file | owns |
//! |---|---|
//! | `limits` | the caps on what is read and decoded |
//! | `error` | the typed image errors, their stable kinds and hints |
//! | `format` | which format the bytes are, by their first bytes |
//! | `orientation` | reading the EXIF orientation and applying it |
//! | `jpeg`, `portable` (PNG) | the two decoders of nearly every photograph |
//! | `tiff`, `bmp`, `webp`, `gif`, `pnm` | the others, to stored samples |
//! | `raster` | stored samples, and their way to RGB |
//! | `image` | pixels and the notes on how they were decoded |
//! | `workspace` | decoding and preparing with buffers that a thread keeps |
//! | `field` | field-of-view steps: mask, crop, pad |
//! | `geometry` | from the photograph's shape to the model's |
//! | `float` | the resize in floating point, a strip at a time |
//! | `spec` | what a card asks for, and its stable key |
//! | `cache` | prepared pixels on disk, by content |
//! | `mask` | label masks: read as labels, resized by nearest sample, measured |
//! | `file` | the same from a path |

#![forbid(unsafe_code)]

mod bmp;
mod cache;
mod error;
mod field;
mod file;
mod float;
mod format;
mod geometry;
mod gif;
mod image;
mod jpeg;
mod limits;
mod mask;
mod orientation;
mod pnm;
mod portable;
mod raster;
mod spec;
mod tiff;
mod webp;
mod workspace;

pub use cache::PixelCache;
pub use error::ImageError;
pub use field::{FieldCircle, FieldNotes, FieldStep, FieldSteps, FieldStepsError, PixelBox};
pub use file::{Decoded, Prepared, decode_file, prepare_bytes, prepare_file, read_file};
pub use format::ImageFormat;
pub use image::{ContentHash, DecodeNotes, PreparedImage, RgbImage, SourceMode};
pub use limits::Limits;
pub use mask::{LabelMask, MaskCoding, read_mask, read_mask_file, vertical_cup_to_disc};
pub use spec::{
    Decode, FAST_VERSION, FIELD_VERSION, FLOAT_VERSION, Geometry, PIXEL_VERSION, PixelType,
    PrepareSpec, ResizeFilter,
};
pub use workspace::{Workspace, decode, prepare};
