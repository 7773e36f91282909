//! Attention with fewer heads of keys than of queries, over a cache. Knows its own projections and nothing around them.

use super::mask::Block;
use super::{Cache, DecoderConfig};
use crate::kernel::op;
use crate::layer::product;
use crate::position::Rotary;
use crate::{Linear, LoadError, RmsNorm, Weights};
use candle_core::{D, DType, Result, Tensor};

/// The attention of one layer.
#[derive(Debug, Clone)]
pub(super) struct Attention {
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) output: Linear,
    norms: Option<(RmsNorm, RmsNorm)>,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    scale: f64,
}

/// One sequence's part of a packed call, as attention sees it.
pub(super) struct Reach<'a> {
    /// Its first row among the packed ones.
    pub(super) start: usize,
    /// Its rows.
    pub(super) count: usize,
    /// Who sees whom.
    pub(super) blocks: &'a [Block],
}

impl Attention {
    pub(super) fn load(
        at: &Weights,
        config: &DecoderConfig,
        offset: f64,
    ) -> std::result::Result<Self, LoadError> {
        let (hidden, bias, width) = (config.hidden, config.attention_bias, config.head_dim);
        let (inner, outer) = (config.heads * width, config.kv_heads * width);
        let norm = |name: &str| RmsNorm::load(&at.at(name), width, config.norm_eps, offset);
        Ok(Self {
            query: Linear::load(&at.at("q_proj"), hidden, inner, bias)?,
            key: Linear::load(&at.at("k_proj"), hidden, outer, bias)?,
            value: Linear::load(&at.at("v_proj"), hidden, outer, bias)?,
            output: Linear::load(&at.at("o_proj"), inner, hidden, bias)?,
            norms: config
                .qk_norm
                .then(|| Ok::<_, LoadError>((norm("q_norm")?, norm("k_norm")?)))
                .transpose()?,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: width,
            scale: config.scale,
        })
    }

    /// `x` of shape (rows, hidden), the rows of all sequences one after the other. `caches` has one for each of `reaches`.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        rotary: &Rotary,
        layer: usize,
        reaches: &[Reach<'_>],
        caches: &mut [Option<&mut Cache>],
    ) -> Result<Tensor> {
        let (rows, _) = x.dims2()?;
        let width = self.head_dim;
        let split = |t: Tensor, heads: usize| t.reshape((rows, heads, width));
        let mut query = split(self.query.forward(x)?, self.heads)?;
        let mut key = split(self.key.forward(x)?, self.kv_heads)?;
        let value = split(self.value.forward(x)?, self.kv_heads)?;
        if let Some((for_query, for_key)) = &self.norms {
            query = for_query.forward(&query)?;
            key = for_key.forward(&key)?;
        }
        let turn = |t: Tensor, heads: usize| {
            let flat = t.reshape((1, rows, heads * width))?;
            split(rotary.apply(flat, width)?, heads)
        };
        let query = turn(query, self.heads)?;
        let key = turn(key, self.kv_heads)?;
        let mut outputs = Vec::with_capacity(reaches.len());
        for (reach, cache) in reaches.iter().zip(caches.iter_mut()) {
            let part = |t: &Tensor| t.narrow(0, reach.start, reach.count)?.transpose(0, 1);
            let (mut keys, mut values) = (part(&key)?, part(&value)?);
            if let Some(cache) = cache {
                (keys, values) = cache.extend(layer, &keys, &values)?;
            }
            for block in reach.blocks {
                let query = query.narrow(0, reach.start + block.from, block.count)?;
                outputs.push(self.attend(&query, &keys, &values, block)?);
            }
        }
        let all = match outputs.as_slice() {
            [one] => one.clone(),
            many => Tensor::cat(many, 0)?,
        };
        self.output.forward(&all)
    }

    /// Queries (n, heads, width) on keys and values (kv_heads, m, width): (n, heads * width).
    fn attend(
        &self,
        query: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        block: &Block,
    ) -> Result<Tensor> {
        let (count, heads, width) = query.dims3()?;
        let (groups, seen) = (heads / self.kv_heads, block.keys.len());
        let kind = query.dtype();
        // Half types are computed in f32 on the CPU, which has no products of them.
        let within = if query.device().is_cpu() && kind != DType::F64 {
            DType::F32
        } else {
            kind
        };
        // Heads that share keys lie behind each other, so their queries are more rows of the same product.
        let query = query
            .transpose(0, 1)?
            .contiguous()?
            .reshape((self.kv_heads, groups * count, width))?
            .to_dtype(within)?;
        let pick = |t: &Tensor| {
            let part = t.narrow(1, block.keys.start, seen)?.to_dtype(within)?;
            if part.device().is_cpu() && !part.track_op() {
                Ok(part)
            } else {
                part.contiguous()
            }
        };
        let (keys, values) = (pick(keys)?, pick(values)?);
        let mut scores = product(&query, &keys.t()?)?;
        let mut rest = self.scale;
        if let Some(mask) = &block.mask {
            let mask = mask.to_dtype(within)?;
            scores = (scores * self.scale)?
                .reshape((heads, count, seen))?
                .broadcast_add(&mask)?
                .reshape((self.kv_heads, groups * count, seen))?;
            rest = 1.0;
        }
        let weights = if op::fused(&scores) {
            scores.inplace_op1(&op::Softmax { scale: rest as f32 })?;
            scores
        } else {
            // In f32, as the reference does it.
            let wide = (scores * rest)?.to_dtype(DType::F32)?;
            let weights = if wide.track_op() {
                candle_nn::ops::softmax(&wide, D::Minus1)?
            } else {
                candle_nn::ops::softmax_last_dim(&wide)?
            };
            weights.to_dtype(within)?
        };
        product(&weights, &values)?
            .reshape((heads, count, width))?
            .transpose(0, 1)?
            .contiguous()?
            .reshape((count, heads * width))?
            .to_dtype(kind)
    }
}
