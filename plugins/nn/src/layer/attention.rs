//! Multi-head attention.

use super::Linear;
use super::linear::product;
use crate::kernel::{self, op};
use crate::position::Rotary;
use candle_core::{DType, Result, Tensor};

/// Bytes of scores computed at a time on the CPU: stays in the second cache.
const BLOCK: usize = 1 << 20;

/// Scores computed at a time elsewhere: 1 GiB in f32, and far from the 2^32 elements that kernels count to.
const SCORES: usize = 1 << 28;

/// The maps into queries, keys and values.
#[derive(Debug, Clone)]
pub enum Projections {
    /// One matrix, queries over keys over values.
    Packed(Linear),
    /// Three.
    Separate {
        /// Queries.
        query: Linear,
        /// Keys.
        key: Linear,
        /// Values.
        value: Linear,
    },
}

impl Projections {
    /// Three maps as one, for attention without rotary positions or adapters.
    pub fn joined(query: &Linear, key: &Linear, value: &Linear) -> Result<Self> {
        Ok(Self::Packed(Linear::stacked(&[query, key, value])?))
    }
}

/// Sizes of an attention layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionConfig {
    /// Heads.
    pub heads: usize,
    /// Width of one.
    pub head_dim: usize,
}

/// Self-attention with its output map.
#[derive(Debug, Clone)]
pub struct Attention {
    projections: Projections,
    output: Linear,
    config: AttentionConfig,
}

impl Attention {
    /// From its maps.
    pub fn new(projections: Projections, output: Linear, config: AttentionConfig) -> Self {
        Self {
            projections,
            output,
            config,
        }
    }

    /// The maps into queries, keys and values, to attach adapters to.
    pub fn projections_mut(&mut self) -> &mut Projections {
        &mut self.projections
    }

    /// The output map, to attach adapters to.
    pub fn output_mut(&mut self) -> &mut Linear {
        &mut self.output
    }

    /// `x` of shape (batch, tokens, dim). `rotary` turns queries and keys by their place; `mask` is added to the scores and of a
    /// shape that broadcasts to (batch, heads, tokens, tokens).
    pub fn forward(
        &self,
        x: &Tensor,
        rotary: Option<&Rotary>,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (batch, tokens, _) = x.dims3()?;
        let AttentionConfig { heads, head_dim } = self.config;
        let split = |t: Tensor| t.reshape((batch, tokens, heads, head_dim))?.transpose(1, 2);
        let turn = |t: Tensor| {
            rotary.map_or_else(|| Ok(t.clone()), |rotary| rotary.apply(t.clone(), head_dim))
        };
        let (query, key, value) = match &self.projections {
            Projections::Separate { query, key, value } => (
                split(turn(query.forward(x)?)?)?,
                split(turn(key.forward(x)?)?)?,
                split(value.forward(x)?)?,
            ),
            Projections::Packed(all) => {
                let all = all
                    .forward(x)?
                    .reshape((batch, tokens, 3, heads * head_dim))?;
                let part = |index: usize| all.narrow(2, index, 1)?.squeeze(2);
                // A view that still has the stride of all three splits into heads without a copy only from the whole.
                let view = |index: usize| {
                    all.reshape((batch, tokens, 3, heads, head_dim))?
                        .narrow(2, index, 1)?
                        .squeeze(2)?
                        .transpose(1, 2)
                };
                if rotary.is_some() {
                    (
                        split(turn(part(0)?.contiguous()?)?)?,
                        split(turn(part(1)?.contiguous()?)?)?,
                        view(2)?,
                    )
                } else {
                    (view(0)?, view(1)?, view(2)?)
                }
            }
        };
        self.output.forward(&attend(&query, &key, &value, mask)?)
    }
}

/// `softmax(Q K^T / sqrt(head_dim) + mask) V`. Queries (batch, heads, n, head_dim), keys and values (batch, heads, m, head_dim), any
/// strides; the result is (batch, n, heads * head_dim). `mask` is added to the scaled scores and broadcasts to (batch, heads, n, m).
pub fn attend(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
) -> Result<Tensor> {
    let (batch, heads, tokens, head_dim) = query.dims4()?;
    let others = key.dim(2)?;
    let scale = 1.0 / (head_dim as f64).sqrt();
    let kind = query.dtype();
    if query.device().is_cpu() && matches!(kind, DType::BF16 | DType::F16) {
        let wide = |t: &Tensor| t.to_dtype(DType::F32);
        let mask = mask.map(wide).transpose()?;
        return attend(&wide(query)?, &wide(key)?, &wide(value)?, mask.as_ref())?.to_dtype(kind);
    }
    if [query, key, value].iter().any(|t| !op::fused(t)) || mask.is_some_and(Tensor::track_op) {
        return plain(query, key, value, mask, scale);
    }
    let Some(mask) = mask else {
        let gapless = |t: &Tensor| {
            if t.stride()[3] == 1 {
                Ok(t.clone())
            } else {
                t.contiguous()
            }
        };
        let (query, key, value) = (gapless(query)?, gapless(key)?, gapless(value)?);
        let scale = scale as f32;
        return query.apply_op3_no_bwd(&key, &value, &kernel::attention::Attention { scale });
    };
    let mask = mask.broadcast_as((batch, heads, tokens, others))?;
    // Image by image and block by block: scores stay in cache, and views need no copy, since strides need not agree across images.
    let block = (BLOCK / (4 * heads * others)).clamp(32, 512);
    let mut images = Vec::with_capacity(batch);
    for image in 0..batch {
        let pick = |t: &Tensor| t.narrow(0, image, 1);
        let (query, key, value) = (pick(query)?, pick(key)?.t()?, pick(value)?);
        let mut parts = Vec::new();
        for from in (0..tokens).step_by(block) {
            let count = block.min(tokens - from);
            let mut scores = query.narrow(2, from, count)?.matmul(&key)?;
            let mask = mask.narrow(0, image, 1)?.narrow(2, from, count)?;
            scores = ((scores * scale)? + mask)?;
            scores.inplace_op1(&op::Softmax { scale: 1.0 })?;
            parts.push(scores.matmul(&value)?.transpose(1, 2)?.contiguous()?);
        }
        images.push(join(&parts, 1)?);
    }
    join(&images, 0)?.reshape((batch, tokens, heads * head_dim))
}

fn join(parts: &[Tensor], axis: usize) -> Result<Tensor> {
    match parts {
        [one] => Ok(one.clone()),
        many => Tensor::cat(many, axis),
    }
}

/// Of basic operations: any device, with gradients.
fn plain(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    scale: f64,
) -> Result<Tensor> {
    let (batch, heads, tokens, _) = query.dims4()?;
    let others = key.dim(2)?;
    let mut inputs = [query, key, value].into_iter().chain(mask);
    // Gradients keep all scores anyway.
    let block = if inputs.any(op::wants_gradient) {
        tokens
    } else {
        SCORES / (batch * heads * others).max(1)
    };
    in_blocks(query, key, value, mask, scale, block.max(1))
}

/// [`plain`], `block` queries at a time.
pub(super) fn in_blocks(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    scale: f64,
    block: usize,
) -> Result<Tensor> {
    let (batch, heads, tokens, head_dim) = query.dims4()?;
    let (query, key, value) = (query.contiguous()?, key.contiguous()?, value.contiguous()?);
    let key = key.t()?;
    let mut parts = Vec::new();
    for from in (0..tokens).step_by(block) {
        let count = block.min(tokens - from);
        let mut scores = (product(&query.narrow(2, from, count)?, &key)? * scale)?;
        if let Some(mask) = mask {
            // A mask of one row is every query's.
            let rows = mask
                .rank()
                .checked_sub(2)
                .filter(|&axis| mask.dims()[axis] != 1);
            let mask = match rows {
                Some(axis) => mask.narrow(axis, from, count)?,
                None => mask.clone(),
            };
            scores = scores.broadcast_add(&mask)?;
        }
        let part = product(&op::softmax(&scores)?, &value)?;
        parts.push(part.transpose(1, 2)?.contiguous()?);
    }
    join(&parts, 1)?.reshape((batch, tokens, heads * head_dim))
}
