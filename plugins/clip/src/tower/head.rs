//! SigLIP's pooling: a learnt query attends to all patches, then a feed-forward with a residual.

use super::block::packed_projection;
use crate::config::Stack;
use focus_nn::candle::Result;
use focus_nn::{Init, LayerNorm, Linear, LoadError, Mlp, Tensor, Weights, add_residual, attend};

#[derive(Debug, Clone)]
pub(crate) struct MapHead {
    /// Queries of all heads, computed once: (1, heads, 1, head_dim).
    query: Tensor,
    key: Linear,
    value: Linear,
    output: Linear,
    norm: LayerNorm,
    mlp: Mlp,
    heads: usize,
}

impl MapHead {
    pub(crate) fn load(stack: &Stack, at: &Weights) -> std::result::Result<Self, LoadError> {
        let Stack {
            dim, heads, hidden, ..
        } = *stack;
        let probe = at.get("probe", &[1, 1, dim], Init::Normal(super::DEVIATION))?;
        let all = packed_projection(&at.at("attention"), dim)?;
        let part = |index: usize| -> Result<Linear> {
            let bias = all
                .bias()
                .map(|bias| bias.narrow(0, index * dim, dim))
                .transpose()?;
            Ok(Linear::new(all.weight().narrow(0, index * dim, dim)?, bias))
        };
        let query = part(0)?
            .forward(&probe)?
            .reshape((1, 1, heads, dim / heads))?
            .transpose(1, 2)?
            .contiguous()?;
        Ok(Self {
            query,
            key: part(1)?,
            value: part(2)?,
            output: Linear::load(&at.at("attention.out_proj"), dim, dim, true)?,
            norm: LayerNorm::load(&at.at("layernorm"), dim, stack.eps)?,
            mlp: Mlp::Plain {
                up: Linear::load(&at.at("mlp.fc1"), dim, hidden, true)?,
                down: Linear::load(&at.at("mlp.fc2"), hidden, dim, true)?,
                activation: stack.activation,
            },
            heads,
        })
    }

    /// (batch, tokens, dim) to (batch, dim).
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, tokens, dim) = x.dims3()?;
        let split = |t: Tensor| {
            t.reshape((batch, tokens, self.heads, dim / self.heads))?
                .transpose(1, 2)
        };
        let query = self
            .query
            .expand((batch, self.heads, 1, dim / self.heads))?;
        let found = attend(
            &query,
            &split(self.key.forward(x)?)?,
            &split(self.value.forward(x)?)?,
            None,
        )?;
        let x = self.output.forward(&found)?;
        let branch = self.mlp.forward(&self.norm.forward(&x)?)?;
        add_residual(&x, branch, None)?.squeeze(1)
    }
}
