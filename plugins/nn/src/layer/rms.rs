//! Root-mean-square norm.

use crate::kernel::op;
use crate::{Init, LoadError, Weights};
use candle_core::{D, DType, Result, Tensor};

/// `x / sqrt(mean(x^2) + eps) * w` over the last axis, computed in f32 whatever the type of `x`.
#[derive(Debug, Clone)]
pub struct RmsNorm {
    /// (dim), f32: the factor itself, with Gemma's one added.
    factor: Tensor,
    eps: f64,
}

impl RmsNorm {
    /// `weight` of shape (dim) at a place. `offset` is added to it: 1 for Gemma, whose checkpoints store the factor less one; 0 for others.
    pub fn load(
        at: &Weights,
        dim: usize,
        eps: f64,
        offset: f64,
    ) -> std::result::Result<Self, LoadError> {
        let init = Init::Constant(1.0 - offset as f32);
        let weight = at.get_as("weight", &[dim], init, DType::F32)?;
        Ok(Self {
            factor: (weight + offset)?,
            eps,
        })
    }

    /// From a factor of shape (dim), f32.
    pub fn new(factor: Tensor, eps: f64) -> Self {
        Self { factor, eps }
    }

    /// Apply to the last axis of `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if op::fused(x) && op::fused(&self.factor) {
            return candle_nn::ops::rms_norm(&x.contiguous()?, &self.factor, self.eps as f32);
        }
        let wide = x.to_dtype(DType::F32)?;
        let mean = wide.sqr()?.mean_keepdim(D::Minus1)?;
        let root = (mean + self.eps)?.sqrt()?;
        wide.broadcast_div(&root)?
            .broadcast_mul(&self.factor)?
            .to_dtype(x.dtype())
    }
}
