//! One layer: norm, attention, norm, feed-forward, each pair behind a residual. Tensor names of Hugging Face's CLIP and SigLIP.

use super::VisionConfig;
use crate::lora::{Module, join};
use crate::{
    Attention, AttentionConfig, LayerNorm, Linear, LoadError, Mlp, Projections, Tensor, Weights,
    add_residual,
};
use candle_core::Result;

#[derive(Debug, Clone)]
pub(super) struct Block {
    norm1: LayerNorm,
    attention: Attention,
    norm2: LayerNorm,
    mlp: Mlp,
}

impl Block {
    pub(super) fn load(
        config: &VisionConfig,
        at: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let (dim, hidden) = (config.dim, config.hidden);
        let own = at.at("self_attn");
        let map = |name: &str| Linear::load(&own.at(name), dim, dim, true);
        let projections = Projections::Separate {
            query: map("q_proj")?,
            key: map("k_proj")?,
            value: map("v_proj")?,
        };
        let sizes = AttentionConfig {
            heads: config.heads,
            head_dim: dim / config.heads,
        };
        let mlp = at.at("mlp");
        Ok(Self {
            norm1: LayerNorm::load(&at.at("layer_norm1"), dim, config.eps)?,
            attention: Attention::new(projections, map("out_proj")?, sizes),
            norm2: LayerNorm::load(&at.at("layer_norm2"), dim, config.eps)?,
            mlp: Mlp::Plain {
                up: Linear::load(&mlp.at("fc1"), dim, hidden, true)?,
                down: Linear::load(&mlp.at("fc2"), hidden, dim, true)?,
                activation: config.activation,
            },
        })
    }

    /// `x` of shape (batch, tokens, dim).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let branch = self
            .attention
            .forward(&self.norm1.forward(x)?, None, None)?;
        let x = add_residual(x, branch, None)?;
        let branch = self.mlp.forward(&self.norm2.forward(&x)?)?;
        add_residual(&x, branch, None)
    }

    /// Show every linear layer, by its name behind `at`.
    pub(super) fn visit(&mut self, at: &str, visit: &mut dyn FnMut(&str, Module<'_>)) {
        let own = join(at, "self_attn");
        if let Projections::Separate { query, key, value } = self.attention.projections_mut() {
            for (name, linear) in [("q_proj", query), ("k_proj", key), ("v_proj", value)] {
                visit(&join(&own, name), Module::Linear(linear));
            }
        }
        let output = self.attention.output_mut();
        visit(&join(&own, "out_proj"), Module::Linear(output));
        if let Mlp::Plain { up, down, .. } = &mut self.mlp {
            for (name, linear) in [("mlp.fc1", up), ("mlp.fc2", down)] {
                visit(&join(at, name), Module::Linear(linear));
            }
        }
    }
}
