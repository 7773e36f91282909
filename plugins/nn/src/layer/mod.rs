//! Layers. Each file one; none knows a model.

mod activation;
mod attention;
mod linear;
mod mlp;
mod norm;
mod patch;
mod residual;

#[cfg(test)]
mod tests;

pub use activation::Activation;
pub use attention::{Attention, AttentionConfig, Projections, attend};
pub use linear::Linear;
pub use mlp::Mlp;
pub use norm::LayerNorm;
pub use patch::PatchEmbedding;
pub use residual::add_residual;
