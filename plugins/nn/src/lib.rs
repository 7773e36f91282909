//! focus-nn: what plugins for neural encoders share. Checkpoints in every published form, strictly loaded; layers on candle.
//!
//! Must not know any model: which tensors there are, and in what order layers run, is a plugin's. For generative models there is one decoder
//! ([`lm`]), its adapters ([`lora`]) and the driver that answers prompts ([`generate`]).
//!
//! Rooms, in the order data flows: [`checkpoint`] files to named raw tensors; [`weights`] names and shapes claimed by an
//! architecture, every tensor accounted for; [`layer`] linear, norm, attention, feed-forward, patches; [`position`] tables and rotary
//! angles; [`pixels`] pixels to normalised values; [`batch`] rows of a call; [`vision`] the towers of multimodal language models;
//! `kernel` fused steps on the CPU.
//!
//! Every layer has two forms that compute the same: one of candle's basic operations, which has gradients and runs on any device,
//! and one with fused in-place steps for inference on the CPU. A layer takes the second by itself when nothing in the product is
//! tracked and [`training`] does not ask for the first; nothing else in a forward pass depends on the device. Half types on the CPU are stored as such and computed in f32,
//! because candle has no such products there.
//!
//! ```
//! use focus_nn::{Activation, DType, Device, Linear, Weights};
//!
//! // Random weights stand in for a checkpoint: the same code loads `Checkpoint::open_folder(..)` with `weights::load`.
//! let layer = focus_nn::weights::random(7, &Device::Cpu, DType::F32, |w| Linear::load(&w.at("fc1"), 8, 4, true))?;
//! let input = focus_nn::Tensor::ones((2, 8), DType::F32, &Device::Cpu)?;
//! assert_eq!(layer.forward_activated(&input, Activation::Gelu)?.dims(), [2, 4]);
//! # Ok::<(), focus_nn::LoadError>(())
//! ```

// Memory-mapping is the one exception, in `checkpoint::file`.
#![deny(unsafe_code)]

pub mod batch;
pub mod chat;
pub mod checkpoint;
mod device;
mod error;
pub mod generate;
mod kernel;
pub mod layer;
pub mod lm;
pub mod lora;
pub mod pixels;
pub mod position;
pub mod vision;
pub mod weights;

pub use candle_core::{self as candle, DType, Device, Tensor};
pub use checkpoint::{Checkpoint, Layout};
pub use device::device;
pub use error::LoadError;
pub use kernel::form::training;
pub use layer::{
    Activation, Attention, AttentionConfig, LayerNorm, Linear, Mlp, Part, PatchEmbedding,
    Projections, RmsNorm, Switch, add_residual, attend,
};
pub use weights::{Init, Weights};

// Named only so that candle's products use AVX-512 where the machine has it.
use gemm as _;
