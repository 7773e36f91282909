//! Layer norm.

use crate::kernel::op;
use crate::{Init, LoadError, Weights};
use candle_core::{Result, Tensor};

/// Layer norm over the last axis, with scale and shift.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl LayerNorm {
    /// `weight` and `bias` of shape (dim) at a place.
    pub fn load(at: &Weights, dim: usize, eps: f64) -> std::result::Result<Self, LoadError> {
        Ok(Self {
            weight: at.get("weight", &[dim], Init::Ones)?,
            bias: at.get("bias", &[dim], Init::Zeros)?,
            eps,
        })
    }

    /// From tensors of shape (dim).
    pub fn new(weight: Tensor, bias: Tensor, eps: f64) -> Self {
        Self { weight, bias, eps }
    }

    /// Apply to the last axis of `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let tracked = [x, &self.weight, &self.bias].iter().any(|t| op::wants_gradient(t));
        if op::fused(x) && !tracked {
            let norm = op::Norm {
                eps: self.eps as f32,
            };
            return x
                .contiguous()?
                .apply_op3_no_bwd(&self.weight, &self.bias, &norm);
        }
        if tracked || x.device().is_cpu() {
            // Basic operations with gradients, in f32 within.
            return candle_nn::ops::layer_norm_slow(x, &self.weight, &self.bias, self.eps as f32);
        }
        candle_nn::ops::layer_norm(&x.contiguous()?, &self.weight, &self.bias, self.eps as f32)
    }
}
