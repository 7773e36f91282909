//! Squares of patches to one row each for the language model. Knows no grid: patches come square by square.

use super::EPS;
use crate::config::VisionConfig;
use focus_nn::candle::{Result, Tensor};
use focus_nn::lora::{Module, join};
use focus_nn::{Activation, LayerNorm, Linear, LoadError, Weights};

/// Norm, squares joined, two layers. The tower's own merger norms each patch, DeepStack's the joined square.
#[derive(Debug)]
pub(super) struct Merger {
    norm: LayerNorm,
    first: Linear,
    second: Linear,
    joined: usize,
    norm_after: bool,
}

impl Merger {
    pub(super) fn load(
        at: &Weights,
        config: &VisionConfig,
        norm_after: bool,
    ) -> std::result::Result<Self, LoadError> {
        let joined = config.hidden * config.merge * config.merge;
        let normed = if norm_after { joined } else { config.hidden };
        Ok(Self {
            norm: LayerNorm::load(&at.at("norm"), normed, EPS)?,
            first: Linear::load(&at.at("linear_fc1"), joined, joined, true)?,
            second: Linear::load(&at.at("linear_fc2"), joined, config.out, true)?,
            joined,
            norm_after,
        })
    }

    /// (patches, hidden) to (patches / merge^2, out).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = if self.norm_after {
            self.norm.forward(&x.reshape(((), self.joined))?)?
        } else {
            self.norm.forward(x)?.reshape(((), self.joined))?
        };
        // With the error function, whatever activation the layers have.
        let x = self.first.forward_activated(&x, Activation::Gelu)?;
        self.second.forward(&x)
    }

    pub(super) fn visit(&mut self, at: &str, visit: &mut dyn FnMut(&str, Module<'_>)) {
        visit(&join(at, "linear_fc1"), Module::Linear(&mut self.first));
        visit(&join(at, "linear_fc2"), Module::Linear(&mut self.second));
    }
}
