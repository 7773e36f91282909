//! One layer: attention and feed-forward with the norms around them.

use super::attention::{Attention, Reach};
use super::{Cache, DecoderConfig, NormStyle};
use crate::layer::add_residual;
use crate::lora::{Module, join};
use crate::position::Rotary;
use crate::{Linear, LoadError, Mlp, RmsNorm, Weights};
use candle_core::{Result, Tensor};

#[derive(Debug, Clone)]
pub(super) struct Block {
    attention: Attention,
    mlp: Mlp,
    before_attention: RmsNorm,
    after_attention: Option<RmsNorm>,
    before_mlp: RmsNorm,
    after_mlp: Option<RmsNorm>,
}

impl Block {
    pub(super) fn load(
        at: &Weights,
        config: &DecoderConfig,
    ) -> std::result::Result<Self, LoadError> {
        let sandwich = config.norm == NormStyle::Sandwich;
        let offset = if sandwich { 1.0 } else { 0.0 };
        let norm = |name: &str| RmsNorm::load(&at.at(name), config.hidden, config.norm_eps, offset);
        let mlp = at.at("mlp");
        let (hidden, inner) = (config.hidden, config.intermediate);
        Ok(Self {
            attention: Attention::load(&at.at("self_attn"), config, offset)?,
            mlp: Mlp::Gated {
                gate: Linear::load(&mlp.at("gate_proj"), hidden, inner, false)?,
                up: Linear::load(&mlp.at("up_proj"), hidden, inner, false)?,
                down: Linear::load(&mlp.at("down_proj"), inner, hidden, false)?,
                activation: config.activation,
            },
            before_attention: norm("input_layernorm")?,
            after_attention: sandwich
                .then(|| norm("post_attention_layernorm"))
                .transpose()?,
            before_mlp: norm(if sandwich {
                "pre_feedforward_layernorm"
            } else {
                "post_attention_layernorm"
            })?,
            after_mlp: sandwich
                .then(|| norm("post_feedforward_layernorm"))
                .transpose()?,
        })
    }

    pub(super) fn forward(
        &self,
        x: &Tensor,
        rotary: &Rotary,
        layer: usize,
        reaches: &[Reach<'_>],
        caches: &mut [Option<&mut Cache>],
    ) -> Result<Tensor> {
        let after = |norm: &Option<RmsNorm>, y: Tensor| match norm {
            Some(norm) => norm.forward(&y),
            None => Ok(y),
        };
        let y = self.before_attention.forward(x)?;
        let y = self.attention.forward(&y, rotary, layer, reaches, caches)?;
        let x = add_residual(x, after(&self.after_attention, y)?, None)?;
        let y = self.mlp.forward(&self.before_mlp.forward(&x)?)?;
        add_residual(&x, after(&self.after_mlp, y)?, None)
    }

    pub(super) fn visit(&mut self, at: &str, visit: &mut dyn FnMut(&str, Module<'_>)) {
        let attention = &mut self.attention;
        let mut parts = vec![
            ("self_attn.q_proj", &mut attention.query),
            ("self_attn.k_proj", &mut attention.key),
            ("self_attn.v_proj", &mut attention.value),
            ("self_attn.o_proj", &mut attention.output),
        ];
        if let Mlp::Gated { gate, up, down, .. } = &mut self.mlp {
            parts.extend([
                ("mlp.gate_proj", gate),
                ("mlp.up_proj", up),
                ("mlp.down_proj", down),
            ]);
        }
        for (name, linear) in parts {
            visit(&join(at, name), Module::Linear(linear));
        }
    }
}
