//! Token ids to rows.

use crate::layer::{Part, Parts, Switch};
use crate::{Init, LoadError, Weights};
use candle_core::{Result, Tensor, bail};

/// A table of rows by token id. Adapters may replace it whole.
#[derive(Debug, Clone)]
pub struct Embedding {
    /// (vocab, hidden).
    weight: Tensor,
    parts: Option<Box<Parts>>,
}

impl Embedding {
    /// `weight` of shape (vocab, hidden) at a place.
    pub fn load(at: &Weights, vocab: usize, hidden: usize) -> std::result::Result<Self, LoadError> {
        Ok(Self {
            weight: at.get("weight", &[vocab, hidden], Init::Normal(0.02))?,
            parts: None,
        })
    }

    /// The base's table, (vocab, hidden).
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// Attach what adapter `number` of `switch` does. A table can only be replaced whole.
    pub fn attach(&mut self, switch: &Switch, number: u32, part: Part) -> Result<()> {
        if matches!(part, Part::LowRank { .. }) {
            bail!("an embedding takes no low-rank part");
        }
        Parts::attach(&mut self.parts, switch, number, part);
        Ok(())
    }

    /// Forget an adapter. Says whether it was there.
    pub fn detach(&mut self, number: u32) -> bool {
        Parts::detach(&mut self.parts, number).is_some()
    }

    /// Make an attached replacement the base's table, and forget the adapter. Says whether it was there.
    pub fn merge(&mut self, number: u32) -> bool {
        match Parts::detach(&mut self.parts, number) {
            Some(Part::Whole { weight, .. }) => {
                self.weight = weight;
                true
            }
            _ => false,
        }
    }

    /// Rows of ids, (tokens, hidden).
    pub fn forward(&self, tokens: &[u32]) -> Result<Tensor> {
        let weight = match self.parts.as_deref().and_then(Parts::active) {
            Some(Part::Whole { weight, .. }) => weight,
            _ => &self.weight,
        };
        let vocab = weight.dim(0)?;
        if let Some(id) = tokens.iter().find(|&&id| id as usize >= vocab) {
            bail!("token {id} is beyond the vocabulary of {vocab}");
        }
        let ids = Tensor::from_slice(tokens, tokens.len(), weight.device())?;
        weight.index_select(&ids, 0)
    }
}
