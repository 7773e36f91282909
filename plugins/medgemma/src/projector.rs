//! From the tower's patches to rows of the language model: the mean of square fields, a norm, a product.

use crate::config::Config;
use focus_nn::candle::Result;
use focus_nn::{Init, LoadError, RmsNorm, Tensor, Weights};

/// `multi_modal_projector`.
#[derive(Debug, Clone)]
pub struct Projector {
    norm: RmsNorm,
    /// (tower's width, decoder's width): not transposed, unlike a linear layer's, and no target of adapters.
    weight: Tensor,
    side: usize,
    kernel: usize,
}

impl Projector {
    /// Claim its two tensors at a place.
    pub fn load(config: &Config, at: &Weights) -> std::result::Result<Self, LoadError> {
        let (from, to) = (config.vision.dim, config.decoder.hidden);
        let (side, kernel) = config.pooling();
        Ok(Self {
            norm: RmsNorm::load(&at.at("mm_soft_emb_norm"), from, config.vision.eps, 1.0)?,
            weight: at.get(
                "mm_input_projection_weight",
                &[from, to],
                Init::Normal(0.02),
            )?,
            side,
            kernel,
        })
    }

    /// Patches of one picture, (side * side, width) row by row, to (tokens, width of the decoder).
    pub fn forward(&self, patches: &Tensor) -> Result<Tensor> {
        let (_, dim) = patches.dims2()?;
        let (side, kernel) = (self.side, self.kernel);
        let kind = patches.dtype();
        // In f32, here and in the product: candle has none of half types on the CPU.
        let pooled = patches
            .to_dtype(focus_nn::DType::F32)?
            .reshape((side, kernel, side, kernel, dim))?
            .mean(3)?
            .mean(1)?
            .reshape((side * side, dim))?;
        let normed = self.norm.forward(&pooled.to_dtype(kind)?)?;
        if normed.device().is_cpu() {
            let wide = normed.to_dtype(focus_nn::DType::F32)?;
            let weight = self.weight.to_dtype(focus_nn::DType::F32)?;
            return wide.matmul(&weight)?.to_dtype(kind);
        }
        normed.matmul(&self.weight)
    }
}
