//! Pillow's resampling, bit for bit, for interleaved 8-bit pixels; a floating-point form beside it.
//!
//! Owns the filters, the fixed-point coefficients, the two passes and their SIMD kernels.
//! Must not know files, alpha, orientation or model cards: `focus-images` decides what is resized to what. Of colour spaces it knows one conversion, a
//! decoded JPEG's planes to RGB (`ycc`), because that is done row by row between decoding and the first pass.
//!
//! Antialiased convolution in two passes, each rounded to the pixel type, as in Pillow's `Image.resize` (checked against Pillow 13.0.0 and, with
//! [`PassOrder::HorizontalFirst`], against the order of all earlier releases). Alpha is a channel like any other: Pillow's premultiplication of
//! `RGBA` and `LA` is the caller's business.
//!
//! ```
//! use focus_resize::{Filter, resize_rgb8};
//! let source = vec![200_u8; 40 * 30 * 3];
//! let small = resize_rgb8(&source, (40, 30), (8, 6), Filter::Bicubic)?;
//! assert!(small.iter().all(|&value| value == 200));
//! # Ok::<(), focus_resize::ResizeError>(())
//! ```

mod coefficients;
mod error;
mod filter;
mod float;
mod kernel;
mod resizer;
mod scaling;
mod ycc;

pub use error::ResizeError;
pub use filter::Filter;
pub use kernel::Backend;
pub use resizer::{Resizer, resize_f32, resize_into, resize_rgb8};
pub use scaling::{PassOrder, Region, Scaling, Window};
pub use ycc::{Chroma, YccPlanes};
