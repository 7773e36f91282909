//! The text side of any family, from tokens on.

use super::bert::Bert;
use super::text::TextTransformer;
use super::{projection, unit};
use crate::config::{Bert as BertConfig, Config, Text};
use crate::names::Projection;
use crate::tokens::Tokens;
use focus_nn::candle::{DType, Result};
use focus_nn::{Activation, Linear, LoadError, Tensor, Weights};

/// Which of RET-CLIP's heads: texts were paired with patients, left eyes and right eyes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eye {
    /// The patient's: what the published benchmark uses.
    Both,
    /// The left eye's.
    Left,
    /// The right eye's.
    Right,
}

/// Tokens to vectors.
#[derive(Debug, Clone)]
pub enum WordTower {
    /// CLIP's and SigLIP's.
    Transformer(TextTransformer),
    /// RET-CLIP's: the first token through one of three heads.
    Heads(Bert, [Head; 3]),
    /// FLAIR's: the mean of three states over all places, brought to length 1 before the projection and after it.
    Mean(Bert, Linear),
}

/// Linear, ReLU, linear.
#[derive(Debug, Clone)]
pub struct Head {
    up: Linear,
    down: Linear,
}

impl Head {
    fn load(
        bert: &BertConfig,
        outputs: usize,
        at: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let dim = bert.stack.dim;
        Ok(Self {
            up: Linear::load(&at.at(0), dim, dim, true)?,
            down: Linear::load(&at.at(2), dim, outputs, true)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.down
            .forward(&self.up.forward_activated(x, Activation::Relu)?)
    }
}

impl WordTower {
    /// Claim the weights, `weights` being the root.
    pub fn load(config: &Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        Ok(match &config.text {
            Text::Transformer(text) => Self::Transformer(TextTransformer::load(
                text,
                config.naming,
                config.embed_dim,
                weights,
            )?),
            Text::BertHeads(bert) => {
                let head = |name: &str| Head::load(bert, config.embed_dim, &weights.at(name));
                let heads = [
                    head("text_projection")?,
                    head("text_projection_left")?,
                    head("text_projection_right")?,
                ];
                Self::Heads(Bert::load(bert, &weights.at("bert"))?, heads)
            }
            Text::BertMean(bert) => {
                let stored = Projection::Rows("text_model.projection_head_text.projection.weight");
                Self::Mean(
                    Bert::load(bert, &weights.at("text_model.model"))?,
                    projection(weights, stored, bert.stack.dim, config.embed_dim)?,
                )
            }
        })
    }

    /// Tokens to vectors (texts, embed_dim): of length 1 where the model itself makes them so.
    pub fn forward(&self, tokens: &Tokens) -> Result<Tensor> {
        self.forward_for(tokens, Eye::Both)
    }

    /// As [`WordTower::forward`], through the head of one eye where the model has heads.
    pub fn forward_for(&self, tokens: &Tokens, eye: Eye) -> Result<Tensor> {
        match self {
            Self::Transformer(tower) => tower.forward(tokens),
            Self::Heads(bert, heads) => {
                let states = bert.states(tokens)?;
                let last = states.last().expect("begins with the embeddings");
                let first = last.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
                heads[eye as usize].forward(&first)
            }
            Self::Mean(bert, projection) => {
                let states = bert.states(tokens)?;
                let kind = states[0].dtype();
                // All places, padding too: the model was trained so.
                let mean = |state: &Tensor| state.to_dtype(DType::F32)?.mean(1);
                let last = states.last().expect("begins with the embeddings");
                let sum = ((mean(&states[1])? + mean(&states[2])?)? + mean(last)?)?;
                let mean = (sum / 3.0)?.to_dtype(kind)?;
                unit(&projection.forward(&unit(&mean)?)?)
            }
        }
    }
}
