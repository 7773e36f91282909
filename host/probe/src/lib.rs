//! The linear probe: class-balanced (or unweighted) logistic regression in f64 on L2-normalised embeddings, fitted on
//! candle tensors. It owns the objective, its optimiser and the scores. It must not know what an image, a dataset, a
//! model or a metric is, where embeddings come from, or where fits are stored.
//!
//! ```
//! use focus_probe::{Device, ProbeSpec, Status, fit};
//!
//! let embeddings = [1.0, 0.1, 0.9, 0.2, 0.1, 1.0, 0.3, 0.8_f32]; // four rows of two
//! let labels = [true, true, false, false];
//! let probe = fit(&embeddings, &labels, &ProbeSpec::default(), &Device::Cpu)?;
//! assert_eq!(probe.status, Status::Converged);
//! let scores = probe.scores(&embeddings)?;
//! assert!(scores[0].label() && !scores[2].label());
//! # Ok::<(), focus_probe::ProbeError>(())
//! ```
#![forbid(unsafe_code)]

mod conjugate;
mod device;
mod error;
mod features;
mod fit;
mod host;
mod kernel;
mod memory;
mod newton;
mod objective;
mod scores;
mod spec;
mod tensor;
#[cfg(test)]
mod tests;

pub use candle_core::Device;
pub use device::parse_device;
pub use error::ProbeError;
pub use features::{Features, MAX_VALUES};
pub use fit::{Fit, fit};
pub use scores::Score;
pub use spec::{ProbeSpec, Status};
