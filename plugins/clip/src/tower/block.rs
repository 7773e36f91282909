//! The block that both towers of CLIP and SigLIP are made of: norm, attention, norm, feed-forward.

use crate::config::{Naming, Stack};
use focus_nn::candle::Result;
use focus_nn::{
    Attention, AttentionConfig, Init, LayerNorm, Linear, LoadError, Mlp, Projections, Tensor,
    Weights, add_residual,
};

#[derive(Debug, Clone)]
struct Block {
    norm1: LayerNorm,
    attention: Attention,
    norm2: LayerNorm,
    mlp: Mlp,
}

/// Blocks one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Blocks(Vec<Block>);

impl Blocks {
    pub(crate) fn load(
        stack: &Stack,
        naming: Naming,
        at: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        (0..stack.depth)
            .map(|number| Block::load(stack, naming, &at.at(number)))
            .collect::<std::result::Result<_, _>>()
            .map(Self)
    }

    /// `x` of shape (batch, tokens, dim); `mask` is added to the scores.
    pub(crate) fn forward(&self, x: Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        self.0
            .iter()
            .try_fold(x, |x, block| block.forward(&x, mask))
    }
}

impl Block {
    fn load(stack: &Stack, naming: Naming, at: &Weights) -> std::result::Result<Self, LoadError> {
        let names = naming.block();
        let (dim, hidden) = (stack.dim, stack.hidden);
        let linear = |name: &str, from, to| Linear::load(&at.at(name), from, to, true);
        let projections = match names.attention {
            [query, key, value] => Projections::joined(
                &linear(query, dim, dim)?,
                &linear(key, dim, dim)?,
                &linear(value, dim, dim)?,
            )?,
            [packed, ..] => Projections::Packed(packed_projection(&at.at(packed), dim)?),
            [] => unreachable!("every naming has attention"),
        };
        let attention = AttentionConfig {
            heads: stack.heads,
            head_dim: dim / stack.heads,
        };
        Ok(Self {
            norm1: LayerNorm::load(&at.at(names.norm1), dim, stack.eps)?,
            attention: Attention::new(projections, linear(names.output, dim, dim)?, attention),
            norm2: LayerNorm::load(&at.at(names.norm2), dim, stack.eps)?,
            mlp: Mlp::Plain {
                up: linear(names.up, dim, hidden)?,
                down: linear(names.down, hidden, dim)?,
                activation: stack.activation,
            },
        })
    }

    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let branch = self
            .attention
            .forward(&self.norm1.forward(x)?, None, mask)?;
        let x = add_residual(x, branch, None)?;
        let branch = self.mlp.forward(&self.norm2.forward(&x)?)?;
        add_residual(&x, branch, None)
    }
}

/// PyTorch's `MultiheadAttention`: queries over keys over values in one matrix.
pub(crate) fn packed_projection(
    at: &Weights,
    dim: usize,
) -> std::result::Result<Linear, LoadError> {
    let weight = at.get(
        "in_proj_weight",
        &[3 * dim, dim],
        Init::Normal(super::DEVIATION),
    )?;
    let bias = at.get("in_proj_bias", &[3 * dim], Init::Zeros)?;
    Ok(Linear::new(weight, Some(bias)))
}
