//! The vision transformer of CLIP, OpenAI's heirs and SigLIP.

use super::block::Blocks;
use super::head::MapHead;
use super::{DEVIATION, projection};
use crate::config::{ImagePool, Naming, Vision};
use focus_nn::candle::Result;
use focus_nn::{Init, LayerNorm, Linear, LoadError, PatchEmbedding, Tensor, Weights};

/// A vision transformer for pictures of one size.
#[derive(Debug, Clone)]
pub struct VisionTransformer {
    patches: PatchEmbedding,
    /// Added to the patches, (1, places, dim).
    positions: Tensor,
    blocks: Blocks,
    pooling: Pooling,
    size: usize,
}

#[derive(Debug, Clone)]
enum Pooling {
    /// `token` of shape (1, 1, dim) has its position added.
    Class {
        token: Tensor,
        before: LayerNorm,
        after: LayerNorm,
        projection: Linear,
    },
    Map {
        after: LayerNorm,
        head: MapHead,
    },
}

impl VisionTransformer {
    /// Claim the weights, `weights` being the root; vectors are `embed_dim` long.
    pub fn load(
        config: &Vision,
        naming: Naming,
        embed_dim: usize,
        weights: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let names = naming.vision();
        let stack = &config.stack;
        let dim = stack.dim;
        let side = config.size / config.patch;
        let class = config.pool == ImagePool::Class;
        let own = usize::from(class);
        let places = side * side;
        let table = weights.get(
            names.positions,
            &[own + places, dim],
            Init::Normal(DEVIATION),
        )?;
        let norm = |name: &str| LayerNorm::load(&weights.at(name), dim, stack.eps);
        let after = norm(names.norm_after)?;
        let pooling = if class {
            let token = weights.get(names.class, &[dim], Init::Normal(DEVIATION))?;
            Pooling::Class {
                token: (token + table.narrow(0, 0, 1)?.squeeze(0)?)?.reshape((1, 1, dim))?,
                before: norm(names.norm_before)?,
                after,
                projection: projection(weights, names.projection, dim, embed_dim)?,
            }
        } else {
            Pooling::Map {
                after,
                head: MapHead::load(stack, &weights.at("vision_model.head"))?,
            }
        };
        Ok(Self {
            patches: PatchEmbedding::load(
                &weights.at(names.patches),
                3,
                config.patch,
                dim,
                !class,
            )?,
            positions: table.narrow(0, own, places)?.unsqueeze(0)?,
            blocks: Blocks::load(stack, naming, &weights.at(names.blocks))?,
            pooling,
            size: config.size,
        })
    }

    /// Pictures (batch, 3, size, size), normalised, to vectors (batch, embed_dim), not of length 1.
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let x = self.tokens(pixels)?;
        match &self.pooling {
            Pooling::Class {
                after, projection, ..
            } => {
                let class = x.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
                projection.forward(&after.forward(&class)?)
            }
            Pooling::Map { after, head } => head.forward(&after.forward(&x)?),
        }
    }

    /// The mean of the patches after the last norm, (batch, dim): not the model's vector; for comparison.
    pub fn patch_mean(&self, pixels: &Tensor) -> Result<Tensor> {
        let (after, own) = match &self.pooling {
            Pooling::Class { after, .. } => (after, 1),
            Pooling::Map { after, .. } => (after, 0),
        };
        let x = after.forward(&self.tokens(pixels)?)?;
        x.narrow(1, own, x.dim(1)? - own)?.mean(1)
    }

    /// All tokens before the last norm.
    fn tokens(&self, pixels: &Tensor) -> Result<Tensor> {
        let (_, _, height, width) = pixels.dims4()?;
        if (height, width) != (self.size, self.size) {
            focus_nn::candle::bail!(
                "Pictures of the wrong size: expected {0} x {0}, found {width} x {height}",
                self.size
            );
        }
        let patches = self
            .patches
            .forward(pixels)?
            .broadcast_add(&self.positions)?;
        let x = match &self.pooling {
            Pooling::Class { token, before, .. } => {
                let (batch, _, dim) = patches.dims3()?;
                let token = token.expand((batch, 1, dim))?;
                before.forward(&Tensor::cat(&[&token, &patches], 1)?)?
            }
            Pooling::Map { .. } => patches,
        };
        self.blocks.forward(x, None)
    }
}
