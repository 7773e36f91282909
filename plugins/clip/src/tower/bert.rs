//! BERT: embeddings, blocks with the norm after each branch. Knows no heads.

use super::{DEVIATION, rows};
use crate::config::{Bert as BertConfig, Stack};
use crate::tokens::Tokens;
use focus_nn::candle::Result;
use focus_nn::{
    Attention, AttentionConfig, Init, LayerNorm, Linear, LoadError, Mlp, Projections, Tensor,
    Weights, add_residual,
};

/// BERT without pooler.
#[derive(Debug, Clone)]
pub struct Bert {
    /// (vocab, dim).
    words: Tensor,
    /// (places, dim), the first segment's row added.
    positions: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

#[derive(Debug, Clone)]
struct Layer {
    attention: Attention,
    attention_norm: LayerNorm,
    mlp: Mlp,
    norm: LayerNorm,
}

impl Bert {
    /// Claim the weights at a place.
    pub fn load(config: &BertConfig, at: &Weights) -> std::result::Result<Self, LoadError> {
        let Stack { dim, eps, .. } = config.stack;
        let embeddings = at.at("embeddings");
        let table = |name: &str, rows| {
            embeddings.get(
                &format!("{name}.weight"),
                &[rows, dim],
                Init::Normal(DEVIATION),
            )
        };
        let segments = table("token_type_embeddings", config.segments)?;
        let positions = table("position_embeddings", config.places)?;
        let layers = at.at("encoder.layer");
        Ok(Self {
            words: table("word_embeddings", config.vocab)?,
            // A text is one segment, the first.
            positions: positions.broadcast_add(&segments.narrow(0, 0, 1)?)?,
            norm: LayerNorm::load(&embeddings.at("LayerNorm"), dim, eps)?,
            layers: (0..config.stack.depth)
                .map(|number| Layer::load(&config.stack, &layers.at(number)))
                .collect::<std::result::Result<_, _>>()?,
        })
    }

    /// The embeddings, then the state after each block, each (texts, places, dim). Padding is not attended to, but has states of its
    /// own.
    pub fn states(&self, tokens: &Tokens) -> Result<Vec<Tensor>> {
        let (texts, width) = (tokens.texts(), tokens.width());
        let x = rows(&self.words, tokens.ids())?
            .reshape((texts, width, ()))?
            .broadcast_add(&self.positions.narrow(0, 0, width)?)?;
        let mask = tokens.attended().map(|attended| {
            let values: Vec<f32> = attended
                .iter()
                .map(|&seen| if seen { 0.0 } else { f32::NEG_INFINITY })
                .collect();
            Tensor::from_vec(values, (texts, 1, 1, width), x.device())?.to_dtype(x.dtype())
        });
        let mask = mask.transpose()?;
        let mut states = vec![self.norm.forward(&x)?];
        for layer in &self.layers {
            let last = states.last().expect("begins with the embeddings");
            states.push(layer.forward(last, mask.as_ref())?);
        }
        Ok(states)
    }
}

impl Layer {
    fn load(stack: &Stack, at: &Weights) -> std::result::Result<Self, LoadError> {
        let Stack {
            dim,
            hidden,
            heads,
            eps,
            ..
        } = *stack;
        let linear = |name: &str, from, to| Linear::load(&at.at(name), from, to, true);
        Ok(Self {
            attention: Attention::new(
                Projections::Separate {
                    query: linear("attention.self.query", dim, dim)?,
                    key: linear("attention.self.key", dim, dim)?,
                    value: linear("attention.self.value", dim, dim)?,
                },
                linear("attention.output.dense", dim, dim)?,
                AttentionConfig {
                    heads,
                    head_dim: dim / heads,
                },
            ),
            attention_norm: LayerNorm::load(&at.at("attention.output.LayerNorm"), dim, eps)?,
            mlp: Mlp::Plain {
                up: linear("intermediate.dense", dim, hidden)?,
                down: linear("output.dense", hidden, dim)?,
                activation: stack.activation,
            },
            norm: LayerNorm::load(&at.at("output.LayerNorm"), dim, eps)?,
        })
    }

    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let branch = self.attention.forward(x, None, mask)?;
        let x = self
            .attention_norm
            .forward(&add_residual(x, branch, None)?)?;
        let branch = self.mlp.forward(&x)?;
        self.norm.forward(&add_residual(&x, branch, None)?)
    }
}
