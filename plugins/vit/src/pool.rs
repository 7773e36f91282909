//! One vector out of many tokens. Knows no blocks.

use focus_nn::candle::Result;
use focus_nn::{LayerNorm, Linear, Tensor};

/// A pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// The class token after the last norm.
    Cls,
    /// Mean of the patches after the last norm.
    PatchMean,
    /// Mean of the patches before the last norm, then a norm of its own, as MAE and RETFound are fine-tuned.
    GapFcNorm,
    /// `tanh` of a linear map of the class token, as BERT has it and transformers' ViT after it.
    Pooler,
}

impl Pool {
    /// All, by the names settings have.
    pub const ALL: [(&'static str, Self); 4] = [
        ("cls", Self::Cls),
        ("patch_mean", Self::PatchMean),
        ("gap_fc_norm", Self::GapFcNorm),
        ("pooler", Self::Pooler),
    ];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, pool)| *pool == self)
            .expect("all are listed")
            .0
    }
}

/// A pooling with its weights.
#[derive(Debug, Clone)]
pub(crate) enum Pooling {
    Cls(LayerNorm),
    PatchMean(LayerNorm),
    GapFcNorm(LayerNorm),
    Pooler(LayerNorm, Linear),
}

impl Pooling {
    /// `x` of shape (batch, tokens, dim), before the last norm; `prefix` tokens come before the patches.
    pub(crate) fn forward(&self, x: &Tensor, prefix: usize) -> Result<Tensor> {
        let cls = |norm: &LayerNorm| norm.forward(&x.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?);
        let patches = |t: &Tensor| t.narrow(1, prefix, t.dim(1)? - prefix)?.mean(1);
        match self {
            Self::Cls(norm) => cls(norm),
            Self::PatchMean(norm) => patches(&norm.forward(x)?),
            Self::GapFcNorm(norm) => norm.forward(&patches(x)?),
            Self::Pooler(norm, dense) => dense.forward(&cls(norm)?)?.tanh(),
        }
    }
}
