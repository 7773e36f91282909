//! The linear layer: one type, behind which other forms of a weight (quantised, with low-rank additions) can stand later.

use super::Activation;
use crate::kernel::op;
use crate::{Init, LoadError, Weights};
use candle_core::{DType, Result, Tensor};

/// Standard deviation of drawn weights, as ViT and its kin are initialised.
const DEVIATION: f32 = 0.02;

/// `y = x W^T + b` over the last axis.
#[derive(Debug, Clone)]
pub struct Linear {
    /// (out, in).
    weight: Tensor,
    /// (out).
    bias: Option<Tensor>,
}

impl Linear {
    /// `weight` of shape (out, in) and, where asked for, `bias` of shape (out), at a place.
    pub fn load(
        at: &Weights,
        inputs: usize,
        outputs: usize,
        bias: bool,
    ) -> std::result::Result<Self, LoadError> {
        let weight = at.get("weight", &[outputs, inputs], Init::Normal(DEVIATION))?;
        let bias = bias
            .then(|| at.get("bias", &[outputs], Init::Zeros))
            .transpose()?;
        Ok(Self { weight, bias })
    }

    /// From tensors: `weight` of shape (out, in), `bias` of shape (out).
    pub fn new(weight: Tensor, bias: Option<Tensor>) -> Self {
        Self { weight, bias }
    }

    /// The weight, (out, in).
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// The bias, (out).
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }

    /// Apply to the last axis of `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.run(x, None)
    }

    /// Apply, then an activation, in one pass over the result where that is possible.
    pub fn forward_activated(&self, x: &Tensor, activation: Activation) -> Result<Tensor> {
        self.run(x, Some(activation))
    }

    fn run(&self, x: &Tensor, activation: Option<Activation>) -> Result<Tensor> {
        let (outputs, inputs) = self.weight.dims2()?;
        let mut shape = x.dims().to_vec();
        // One product over all rows: a batch of small ones is slower.
        let rows = x.reshape(((), inputs))?;
        let mut y = product(&rows, &self.weight.t()?)?;
        match (&self.bias, activation) {
            (Some(bias), _) if op::fused(&y) && op::fused(bias) => {
                y.inplace_op2(bias, &op::BiasActivate(activation))?;
            }
            (bias, activation) => {
                if let Some(bias) = bias {
                    y = y.broadcast_add(bias)?;
                }
                if let Some(activation) = activation {
                    y = activation.forward(&y)?;
                }
            }
        }
        if let Some(last) = shape.last_mut() {
            *last = outputs;
        }
        y.reshape(shape)
    }
}

/// A product of matrices; candle has none of half types on the CPU, so those are computed in f32 there.
pub(super) fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.device().is_cpu() && matches!(a.dtype(), DType::BF16 | DType::F16) {
        let wide = a.to_dtype(DType::F32)?.matmul(&b.to_dtype(DType::F32)?)?;
        return wide.to_dtype(a.dtype());
    }
    a.matmul(b)
}
