//! Layers. Each file one; none knows a model.

mod activation;
mod adapted;
mod attention;
mod linear;
mod mlp;
mod norm;
mod patch;
mod residual;
mod rms;

#[cfg(test)]
mod tests;

pub use activation::Activation;
pub(crate) use adapted::Parts;
pub use adapted::{Part, Switch};
pub use attention::{Attention, AttentionConfig, Projections, attend};
pub use linear::Linear;
pub(crate) use linear::product;
pub use mlp::Mlp;
pub use norm::LayerNorm;
pub use patch::PatchEmbedding;
pub use residual::add_residual;
pub use rms::RmsNorm;
