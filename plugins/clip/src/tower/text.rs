//! The text transformer of CLIP, OpenAI's heirs and SigLIP.

use super::block::Blocks;
use super::{DEVIATION, projection, rows};
use crate::config::{Naming, TextPool, TextTransformer as TextConfig};
use crate::tokens::Tokens;
use focus_nn::candle::Result;
use focus_nn::{DType, Device, Init, LayerNorm, Linear, LoadError, Tensor, Weights};

/// A text transformer.
#[derive(Debug, Clone)]
pub struct TextTransformer {
    /// (vocab, dim).
    tokens: Tensor,
    /// (context, dim).
    positions: Tensor,
    blocks: Blocks,
    norm: LayerNorm,
    projection: Linear,
    pool: TextPool,
}

impl TextTransformer {
    /// Claim the weights, `weights` being the root; vectors are `embed_dim` long.
    pub fn load(
        config: &TextConfig,
        naming: Naming,
        embed_dim: usize,
        weights: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let names = naming.text();
        let stack = &config.stack;
        let dim = stack.dim;
        let table = |name: &str, rows| weights.get(name, &[rows, dim], Init::Normal(DEVIATION));
        Ok(Self {
            tokens: table(names.tokens, config.vocab)?,
            positions: table(names.positions, config.context)?,
            blocks: Blocks::load(stack, naming, &weights.at(names.blocks))?,
            norm: LayerNorm::load(&weights.at(names.norm), dim, stack.eps)?,
            projection: match config.pool {
                TextPool::Last => {
                    Linear::load(&weights.at("text_model.head"), dim, embed_dim, true)?
                }
                _ => projection(weights, names.projection, dim, embed_dim)?,
            },
            pool: config.pool,
        })
    }

    /// Tokens to vectors (texts, embed_dim), not of length 1.
    pub fn forward(&self, tokens: &Tokens) -> Result<Tensor> {
        let (texts, width) = (tokens.texts(), tokens.width());
        let positions = self.positions.narrow(0, 0, width)?;
        let x = rows(&self.tokens, tokens.ids())?
            .reshape((texts, width, ()))?
            .broadcast_add(&positions)?;
        // No mask for padding: what comes after the end token is behind it, and SigLIP is meant to see it.
        let mask = if self.pool.causal() {
            Some(causal(width, x.device(), x.dtype())?)
        } else {
            None
        };
        let x = self.blocks.forward(x, mask.as_ref())?;
        let chosen: Vec<u32> = (0..texts)
            .map(|text| (text * width + place(self.pool, tokens.row(text))) as u32)
            .collect();
        let x = rows(&x.reshape((texts * width, ()))?, &chosen)?;
        self.projection.forward(&self.norm.forward(&x)?)
    }
}

/// Which place of a text is its vector.
fn place(pool: TextPool, ids: &[u32]) -> usize {
    let first = |wanted: u32| ids.iter().position(|&id| id == wanted);
    match pool {
        // A text without an end token: the first place, as the reference's argmax over no match gives.
        TextPool::End(id) => first(id).unwrap_or(0),
        TextPool::Highest => ids.iter().max().and_then(|&id| first(id)).unwrap_or(0),
        TextPool::Last => ids.len().saturating_sub(1),
    }
}

/// (1, 1, n, n): minus infinity above the diagonal.
fn causal(n: usize, device: &Device, dtype: DType) -> Result<Tensor> {
    let values: Vec<f32> = (0..n * n)
        .map(|at| {
            if at % n > at / n {
                f32::NEG_INFINITY
            } else {
                0.0
            }
        })
        .collect();
    Tensor::from_vec(values, (1, 1, n, n), device)?.to_dtype(dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_places_is_taken() {
        assert_eq!(place(TextPool::End(9), &[1, 9, 9, 9]), 1);
        assert_eq!(place(TextPool::Highest, &[1, 9, 0, 9]), 1);
        assert_eq!(place(TextPool::Last, &[1, 9, 0, 0]), 3);
        assert_eq!(place(TextPool::End(7), &[1, 9]), 0);
    }
}
