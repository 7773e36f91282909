//! The linear layer: one type, whatever stands behind its weight; low-rank adapters may be attached, and a quantised weight can come.

use super::Activation;
use super::adapted::{Part, Parts, Switch};
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
    parts: Option<Box<Parts>>,
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
        Ok(Self::new(laid_out(weight)?, bias))
    }

    /// Maps of one input as one map, their results side by side: one large product is faster than several. None may have adapters.
    pub fn stacked(maps: &[&Self]) -> Result<Self> {
        let weights: Vec<&Tensor> = maps.iter().map(|map| &map.weight).collect();
        let bias = if maps.iter().all(|map| map.bias.is_none()) {
            None
        } else {
            let zeros = |map: &&Self| match &map.bias {
                Some(bias) => Ok(bias.clone()),
                None => Tensor::zeros(map.weight.dim(0)?, map.weight.dtype(), map.weight.device()),
            };
            let parts = maps.iter().map(zeros).collect::<Result<Vec<_>>>()?;
            Some(Tensor::cat(&parts, 0)?)
        };
        Ok(Self::new(laid_out(Tensor::cat(&weights, 0)?)?, bias))
    }

    /// From tensors: `weight` of shape (out, in), `bias` of shape (out).
    pub fn new(weight: Tensor, bias: Option<Tensor>) -> Self {
        Self {
            weight,
            bias,
            parts: None,
        }
    }

    /// Attach what adapter `number` of `switch` does to this layer, in place of what it did before.
    pub fn attach(&mut self, switch: &Switch, number: u32, part: Part) {
        Parts::attach(&mut self.parts, switch, number, part);
    }

    /// Forget an adapter. Says whether it was there.
    pub fn detach(&mut self, number: u32) -> bool {
        Parts::detach(&mut self.parts, number).is_some()
    }

    /// Fold an attached adapter into the weight for good, computed in f32, and forget it. Says whether it was there.
    pub fn merge(&mut self, number: u32) -> Result<bool> {
        match Parts::detach(&mut self.parts, number) {
            None => return Ok(false),
            Some(Part::Whole { weight, bias }) => {
                self.weight = weight;
                self.bias = bias;
            }
            Some(Part::LowRank { a, b, scale }) => {
                let kind = self.weight.dtype();
                let wide = self.weight.to_dtype(DType::F32)?;
                self.weight = (wide + (b.matmul(&a)? * scale)?)?.to_dtype(kind)?;
            }
        }
        Ok(true)
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
        let part = self.parts.as_deref().and_then(Parts::active);
        let (weight, bias) = match part {
            Some(Part::Whole { weight, bias }) => (weight, bias),
            _ => (&self.weight, &self.bias),
        };
        let mut y = product(&rows, &weight.t()?)?;
        if let Some(Part::LowRank { a, b, scale }) = part {
            let wide = rows.to_dtype(a.dtype())?;
            let low = wide.matmul(&a.t()?)?.matmul(&b.t()?)?;
            y = (y + (low * *scale)?.to_dtype(rows.dtype())?)?;
        }
        match (bias, activation) {
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

/// The same weight, laid out so that the CPU's product reads along its rows: packing a panel is a copy then, not a transposition
/// (5 to 8 % of a product's time at the sizes of a ViT-L).
fn laid_out(weight: Tensor) -> Result<Tensor> {
    if weight.device().is_cpu() && weight.dtype() == DType::F32 {
        return weight.t()?.contiguous()?.t();
    }
    Ok(weight)
}

/// A product of matrices; candle has none of half types on the CPU, so those are computed in f32 there.
pub(crate) fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.device().is_cpu() && matches!(a.dtype(), DType::BF16 | DType::F16) {
        // A weight comes transposed: converted as it lies and turned after, since values far apart are slow to convert.
        let b = if b.is_contiguous() {
            b.to_dtype(DType::F32)?
        } else {
            b.t()?.to_dtype(DType::F32)?.t()?
        };
        return a.to_dtype(DType::F32)?.matmul(&b)?.to_dtype(a.dtype());
    }
    a.matmul(b)
}
