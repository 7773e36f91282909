//! The whole stack: embeddings in, logits out.

use super::attention::Reach;
use super::block::Block;
use super::mask::{self, Rule};
use super::rope::Frequencies;
use super::{Cache, DecoderConfig, Embedding, LayerKind, NormStyle, Sequence};
use crate::lora::{Module, join};
use crate::{Linear, LoadError, RmsNorm, Weights};
use candle_core::{DType, Device, Result, Tensor, bail};

/// A decoder.
#[derive(Debug, Clone)]
pub struct Decoder {
    config: DecoderConfig,
    embedding: Embedding,
    /// Factor of embeddings, already rounded to the model's type.
    embedding_scale: Option<f64>,
    blocks: Vec<Block>,
    norm: RmsNorm,
    head: Linear,
    full: Frequencies,
    sliding: Frequencies,
    dtype: DType,
    device: Device,
}

impl Decoder {
    /// Load from two places: `body` holds `embed_tokens`, `layers.N.*` and `norm`; `head` holds `lm_head`, which need not be there
    /// where the configuration ties it to the embedding, and then may only repeat it.
    pub fn load(
        body: &Weights,
        head: &Weights,
        config: &DecoderConfig,
    ) -> std::result::Result<Self, LoadError> {
        let (vocab, hidden) = (config.vocab, config.hidden);
        let embedding = Embedding::load(&body.at("embed_tokens"), vocab, hidden)?;
        let layers = body.at("layers");
        let blocks = (0..config.layers.len())
            .map(|layer| Block::load(&layers.at(layer), config))
            .collect::<std::result::Result<_, _>>()?;
        let offset = match config.norm {
            NormStyle::Sandwich => 1.0,
            NormStyle::Pre => 0.0,
        };
        let head = if config.tied {
            let (head, body) = (head.at("lm_head"), body.at("embed_tokens"));
            head.claim_copy("weight", &body, "weight", &[vocab, hidden])?;
            Linear::new(embedding.weight().clone(), None)
        } else {
            Linear::load(&head.at("lm_head"), hidden, vocab, false)?
        };
        let dtype = body.dtype();
        Ok(Self {
            norm: RmsNorm::load(&body.at("norm"), hidden, config.norm_eps, offset)?,
            embedding_scale: config
                .embedding_scale
                .map(|scale| rounded(scale, dtype))
                .transpose()?,
            full: Frequencies::new(&config.rope, config.head_dim),
            sliding: Frequencies::new(&config.sliding_rope, config.head_dim),
            config: config.clone(),
            device: body.device().clone(),
            embedding,
            blocks,
            head,
            dtype,
        })
    }

    /// Its numbers.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The type it computes in.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// An empty cache for `capacity` tokens.
    pub fn cache(&self, capacity: usize) -> Result<Cache> {
        Cache::new(&self.config, capacity, self.dtype, &self.device)
    }

    /// The distribution after each sequence's last token, before softmax: (sequences, vocab), f32. Caches take up what was computed.
    pub fn forward(&self, sequences: &mut [Sequence<'_>]) -> Result<Tensor> {
        let mut end = 0;
        let last: Vec<u32> = sequences
            .iter()
            .map(|sequence| {
                end += sequence.tokens.len() as u32;
                end.saturating_sub(1)
            })
            .collect();
        let x = self.hidden(sequences)?;
        let last = Tensor::from_vec(last, sequences.len(), &self.device)?;
        self.logits(&x.index_select(&last, 0)?)
    }

    /// Fill caches with tokens whose distribution nobody asks for.
    pub fn fill(&self, sequences: &mut [Sequence<'_>]) -> Result<()> {
        self.hidden(sequences).map(|_| ())
    }

    /// The stream after the last layer, before the final norm: (rows, hidden), the rows of all sequences one after the other.
    pub fn hidden(&self, sequences: &mut [Sequence<'_>]) -> Result<Tensor> {
        if sequences.is_empty() || sequences.iter().any(|s| s.tokens.is_empty()) {
            bail!("a decoder wants at least one sequence, and a token in each");
        }
        let places: Vec<_> = sequences.iter().flat_map(|s| s.places).copied().collect();
        let rows: usize = sequences.iter().map(|s| s.tokens.len()).sum();
        if places.len() != rows {
            bail!("{rows} tokens have {} places", places.len());
        }
        let mut x = self.embed(sequences)?;
        let deep = self.deep(sequences)?;
        let sight = |kind| {
            let any = self.config.layers.contains(&kind);
            any.then(|| self.sight(kind, sequences, &places))
                .transpose()
        };
        let (full, sliding) = (sight(LayerKind::Full)?, sight(LayerKind::Sliding)?);
        let mut starts = Vec::with_capacity(sequences.len());
        let mut start = 0;
        for sequence in sequences.iter() {
            starts.push((start, sequence.tokens.len()));
            start += sequence.tokens.len();
        }
        let mut caches: Vec<_> = sequences
            .iter_mut()
            .map(|s| s.cache.as_deref_mut())
            .collect();
        for (layer, (block, kind)) in self.blocks.iter().zip(&self.config.layers).enumerate() {
            let sight = match kind {
                LayerKind::Full => &full,
                LayerKind::Sliding => &sliding,
            };
            let (rotary, blocks) = sight.as_ref().expect("made for every kind in use");
            let reaches: Vec<_> = starts
                .iter()
                .zip(blocks)
                .map(|(&(start, count), blocks)| Reach {
                    start,
                    count,
                    blocks,
                })
                .collect();
            x = block.forward(&x, rotary, layer, &reaches, &mut caches)?;
            if let Some(rows) = deep.get(layer) {
                x = (x + rows)?;
            }
        }
        for (cache, (_, count)) in caches.into_iter().zip(starts) {
            if let Some(cache) = cache {
                cache.advance(count);
            }
        }
        Ok(x)
    }

    /// Final norm and head on rows of [`Self::hidden`]: (rows, vocab), f32.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        self.head
            .forward(&self.norm.forward(hidden)?)?
            .to_dtype(DType::F32)
    }

    /// Tables of places and masks of one kind of layer.
    fn sight(
        &self,
        kind: LayerKind,
        sequences: &[Sequence<'_>],
        places: &[super::Place],
    ) -> Result<(crate::position::Rotary, Vec<Vec<mask::Block>>)> {
        let (frequencies, window) = match kind {
            LayerKind::Full => (&self.full, None),
            LayerKind::Sliding => (&self.sliding, Some(self.config.window)),
        };
        let blocks = sequences
            .iter()
            .map(|sequence| {
                let mut pictures = Vec::new();
                if self.config.bidirectional_images {
                    for (start, features) in &sequence.images {
                        pictures.push((*start, features.rows.dim(0)?));
                    }
                }
                Rule {
                    past: sequence.cache.as_ref().map_or(0, |cache| cache.length()),
                    new: sequence.tokens.len(),
                    window,
                    pictures: &pictures,
                }
                .blocks(&self.device)
            })
            .collect::<Result<_>>()?;
        Ok((frequencies.tables(places, &self.device)?, blocks))
    }

    /// Embeddings, with pictures in the place of their tokens.
    fn embed(&self, sequences: &[Sequence<'_>]) -> Result<Tensor> {
        let mut ids: Vec<u32> = Vec::new();
        let mut spans = Vec::new();
        for sequence in sequences {
            let base = ids.len();
            ids.extend(sequence.tokens);
            for (start, features) in &sequence.images {
                let (count, width) = features.rows.dims2()?;
                if width != self.config.hidden || start + count > sequence.tokens.len() {
                    bail!(
                        "a picture of {count} x {width} does not fit {} tokens of {} at {start}",
                        sequence.tokens.len(),
                        self.config.hidden
                    );
                }
                // An image token's id may lie beyond the table.
                ids[base + start..][..count].fill(0);
                spans.push((base + start, &features.rows));
            }
        }
        let mut x = self.embedding.forward(&ids)?;
        if let Some(scale) = self.embedding_scale {
            x = (x * scale)?;
        }
        replace(&x, &spans)
    }

    /// What is added after layers 0, 1, ...: (rows, hidden) each, zero outside pictures.
    fn deep(&self, sequences: &[Sequence<'_>]) -> Result<Vec<Tensor>> {
        let depth = sequences
            .iter()
            .flat_map(|s| &s.images)
            .map(|(_, features)| features.deep.len())
            .max()
            .unwrap_or(0);
        let rows: usize = sequences.iter().map(|s| s.tokens.len()).sum();
        (0..depth)
            .map(|layer| {
                let mut spans = Vec::new();
                let mut base = 0;
                for sequence in sequences {
                    for (start, features) in &sequence.images {
                        if let Some(added) = features.deep.get(layer) {
                            spans.push((base + start, added));
                        }
                    }
                    base += sequence.tokens.len();
                }
                let none = Tensor::zeros((rows, self.config.hidden), self.dtype, &self.device)?;
                replace(&none, &spans)
            })
            .collect()
    }

    /// Show every module that an adapter may change, by its name behind `body` (`language_model`); the head is `lm_head` behind `head`.
    pub fn visit(&mut self, body: &str, head: &str, visit: &mut dyn FnMut(&str, Module<'_>)) {
        visit(
            &join(body, "embed_tokens"),
            Module::Embedding(&mut self.embedding),
        );
        for (layer, block) in self.blocks.iter_mut().enumerate() {
            block.visit(&join(body, &format!("layers.{layer}")), visit);
        }
        visit(&join(head, "lm_head"), Module::Head(&mut self.head));
    }
}

/// Rows of `x` with others in their place from the given starts on, which ascend.
fn replace(x: &Tensor, spans: &[(usize, &Tensor)]) -> Result<Tensor> {
    if spans.is_empty() {
        return Ok(x.clone());
    }
    let mut parts = Vec::new();
    let mut end = 0;
    for (start, rows) in spans {
        if *start > end {
            parts.push(x.narrow(0, end, start - end)?);
        }
        parts.push(rows.to_dtype(x.dtype())?);
        end = start + rows.dim(0)?;
    }
    let all = x.dim(0)?;
    if all > end {
        parts.push(x.narrow(0, end, all - end)?);
    }
    Tensor::cat(&parts, 0)
}

/// A number as the model's type holds it.
fn rounded(value: f64, dtype: DType) -> Result<f64> {
    Tensor::new(value as f32, &Device::Cpu)?
        .to_dtype(dtype)?
        .to_dtype(DType::F64)?
        .to_scalar()
}
