//! Numbers of a decoder, and what must hold between them. Knows no config.json: families translate theirs.

use crate::{Activation, LoadError};

/// Numbers of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Rows of the embedding, as stored (padded past the tokenizer's last id).
    pub vocab: usize,
    /// Width of the stream.
    pub hidden: usize,
    /// Width inside the feed-forward.
    pub intermediate: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Of the feed-forward's gate.
    pub activation: Activation,
    /// Form and number of norms.
    pub norm: NormStyle,
    /// Added under their root.
    pub norm_eps: f64,
    /// Whether queries and keys are normed head by head (Gemma 3, Qwen 3).
    pub qk_norm: bool,
    /// Whether q, k, v and o have biases.
    pub attention_bias: bool,
    /// Factor of the scores: `head_dim^-0.5`, or Gemma's `query_pre_attn_scalar^-0.5`.
    pub scale: f64,
    /// Factor of token embeddings, rounded to the model's type before use (Gemma: `sqrt(hidden)`); image rows are not scaled.
    pub embedding_scale: Option<f64>,
    /// Kind of each layer; as many as layers.
    pub layers: Vec<LayerKind>,
    /// Positions of layers that see everything.
    pub rope: Rope,
    /// Positions of sliding layers.
    pub sliding_rope: Rope,
    /// Tokens a sliding layer sees, itself included: `i - j < window`.
    pub window: usize,
    /// Whether the head is the embedding.
    pub tied: bool,
    /// Whether tokens of a picture see each other in both directions, in sliding layers too and past their window (Gemma 3).
    pub bidirectional_images: bool,
}

/// What a layer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerKind {
    /// Everything before.
    Full,
    /// The window before.
    Sliding,
}

/// Norms of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormStyle {
    /// Llama and Qwen: factor `w`, before attention (`input_layernorm`) and before the feed-forward (`post_attention_layernorm`).
    Pre,
    /// Gemma: factor `1 + w`, before and after each branch (`post_attention_layernorm` is after attention here).
    Sandwich,
}

/// Rotary positions.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the wavelengths.
    pub theta: f64,
    /// Frequencies are divided by it (`linear` scaling); 1 for none.
    pub factor: f64,
    /// Llama 3.1's scaling by wavelength.
    pub llama3: Option<Llama3Scaling>,
    /// Interleaved axes (Qwen3-VL): how many frequencies time, height and width have, together `head_dim / 2`; `None`: one axis.
    pub sections: Option<[usize; 3]>,
}

impl Rope {
    /// One axis, unscaled.
    pub fn plain(theta: f64) -> Self {
        Self {
            theta,
            factor: 1.0,
            llama3: None,
            sections: None,
        }
    }
}

/// Llama 3.1's scaling of frequencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Llama3Scaling {
    /// Long wavelengths are stretched by it.
    pub factor: f64,
    /// Wavelengths beyond `original / low` are stretched in full.
    pub low: f64,
    /// Wavelengths below `original / high` are left.
    pub high: f64,
    /// Context length in training.
    pub original: f64,
}

/// Bound on every size.
const MOST: usize = 1 << 24;
/// Bound on layers.
const MOST_LAYERS: usize = 1 << 12;

impl DecoderConfig {
    /// Refuse numbers that do not fit together. `file` is named in the error.
    pub fn check(&self, file: &str) -> Result<(), LoadError> {
        let wrong = |reason: String| LoadError::Config {
            file: file.to_owned(),
            reason,
        };
        for (name, value) in [
            ("vocab_size", self.vocab),
            ("hidden_size", self.hidden),
            ("intermediate_size", self.intermediate),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("num_hidden_layers", self.layers.len()),
        ] {
            if value == 0 {
                return Err(wrong(format!("`{name}` is 0")));
            }
            if value > MOST {
                return Err(wrong(format!(
                    "`{name}`: expected at most {MOST}, found {value}"
                )));
            }
        }
        let depth = self.layers.len();
        if depth > MOST_LAYERS {
            return Err(wrong(format!(
                "`num_hidden_layers`: expected at most {MOST_LAYERS}, found {depth}"
            )));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(wrong(format!(
                "`num_attention_heads` ({}) is not a multiple of `num_key_value_heads` ({})",
                self.heads, self.kv_heads
            )));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(wrong(format!("`head_dim` ({}) is odd", self.head_dim)));
        }
        if self.layers.contains(&LayerKind::Sliding) && self.window == 0 {
            return Err(wrong("`sliding_window` is 0".into()));
        }
        for rope in [&self.rope, &self.sliding_rope] {
            let positive = |value: f64| value.is_finite() && value > 0.0;
            if !positive(rope.theta) || !positive(rope.factor) {
                return Err(wrong("`rope_theta` or its factor is not positive".into()));
            }
            if let Some(sections) = rope.sections {
                // Time has what height and width leave, so theirs must fit among every third frequency.
                let half = self.head_dim / 2;
                if sections.iter().sum::<usize>() != half
                    || sections[1].max(sections[2]) * 3 > half + 2
                {
                    return Err(wrong(format!(
                        "`mrope_section` {sections:?} does not divide {half} frequencies"
                    )));
                }
            }
        }
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(wrong(format!("the attention's scale is {}", self.scale)));
        }
        Ok(())
    }
}
