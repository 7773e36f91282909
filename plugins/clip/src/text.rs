//! Texts to vectors: the caption rule, the tokenizer and the text side together. What the dual encoder's text interface calls.

use crate::tokenizer::{Reading, Tokenizer, TokenizerError};
use crate::tokens::Tokens;
use crate::tower::words::WordTower;
use focus_nn::{DType, Tensor};

/// Texts that cannot become vectors.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// They cannot become ids.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The network failed.
    #[error("Texts could not be embedded: {0}")]
    Compute(#[from] focus_nn::candle::Error),
}

/// What is put before a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caption {
    /// Nothing.
    Plain,
    /// FLAIR's words, even where the text begins with them: as the published benchmark's code does.
    Always(&'static str),
    /// FLAIR's words, where the text does not begin with them.
    Once(&'static str),
}

impl Caption {
    /// The text with its caption.
    pub fn apply(self, text: &str) -> String {
        match self {
            Self::Always(words) => format!("{words}{text}"),
            Self::Once(words) if !text.starts_with(words) => format!("{words}{text}"),
            _ => text.to_owned(),
        }
    }
}

/// Vectors, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Values of a row.
    pub dim: usize,
    /// The values.
    pub values: Vec<f32>,
}

impl Rows {
    /// One vector after the other.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim)
    }
}

/// An open text side.
#[derive(Debug, Clone)]
pub struct TextTower {
    caption: Caption,
    tokenizer: Tokenizer,
    tower: WordTower,
}

impl TextTower {
    /// From its parts.
    pub fn new(caption: Caption, tokenizer: Tokenizer, tower: WordTower) -> Self {
        Self {
            caption,
            tokenizer,
            tower,
        }
    }

    /// The network.
    pub fn tower(&self) -> &WordTower {
        &self.tower
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Ids of captioned texts, in as many calls as the family's rule wants.
    pub fn tokens(&self, texts: &[&str]) -> Result<Vec<Tokens>, TokenizerError> {
        Ok(self.read(texts)?.calls)
    }

    /// The same, and which texts were cut.
    pub fn read(&self, texts: &[&str]) -> Result<Reading, TokenizerError> {
        let captioned: Vec<String> = texts.iter().map(|text| self.caption.apply(text)).collect();
        let captioned: Vec<&str> = captioned.iter().map(String::as_str).collect();
        self.tokenizer.read(&captioned)
    }

    /// Vectors of texts, in order, as the model gives them: not of length 1 unless the model makes them so. On the track
    /// `as_published`, SigLIP's and FLAIR's vectors depend on which texts are embedded together: give all classes of a task at once.
    pub fn embed(&self, texts: &[&str]) -> Result<Rows, TextError> {
        self.embed_read(&self.read(texts)?)
    }

    /// Vectors of texts that were read.
    pub fn embed_read(&self, reading: &Reading) -> Result<Rows, TextError> {
        let calls = reading
            .calls
            .iter()
            .map(|tokens| self.tower.forward(tokens))
            .collect::<Result<Vec<_>, _>>()?;
        let all = Tensor::cat(&calls, 0)?.to_dtype(DType::F32)?;
        Ok(Rows {
            dim: all.dim(1)?,
            values: all.flatten_all()?.to_vec1()?,
        })
    }
}
