//! The vision transformer of CLIP and SigLIP as the towers of multimodal language models have it: Hugging Face's tensor names, pictures of
//! one size, hidden states in place of one vector. Must not know any model: what becomes of the states is a plugin's.
//!
//! [`config`] a tower in numbers; [`tower`] the network; `block` one of its layers.
//!
//! References: Radford et al. 2021, arXiv:2103.00020 (CLIP); Zhai et al. 2023, arXiv:2303.15343 (SigLIP); transformers' `CLIPVisionModel`
//! and `SiglipVisionModel`, against whose values the towers of LLaVA-NeXT and Gemma 3 are tested.

mod block;
pub mod config;
pub mod tower;

pub use config::VisionConfig;
pub use tower::{VisionTower, tower_at};
