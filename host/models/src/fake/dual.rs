//! A dual encoder without a plugin: texts embedded by their bytes, or as the test says. Must not know of generators.

use super::{FakeEncoder, embedding, refused, scripted};
use crate::{Answer, DualEncoder, ImageEncoder, ModelError, PixelBatch, SinkError, TextRows};
use focus_plugin_abi::v1::message::OpenedModel;
use focus_wire::FailureKind;
use std::collections::BTreeMap;

/// A `DualEncoder`. Its image side is [`FakeEncoder`]; a text's vector is [`embedding`] of its UTF-8 bytes unless
/// [`Self::text`] gave it another. Tokens are the bytes; nothing is ever cut.
///
/// ```
/// use focus_models::DualEncoder;
/// use focus_models::fake::{FakeDualEncoder, opened};
///
/// let mut fake = FakeDualEncoder::new(opened(2, 3, 1, 1)).text("all red", vec![1.0, 0.0, 0.0]);
/// let rows = fake.encode_texts(&["all red".into(), "abc".into()]).unwrap();
/// assert_eq!(rows.rows[0], [1.0, 0.0, 0.0]);
/// assert_eq!(rows.tokens[1], [97, 98, 99]);
/// ```
#[derive(Debug, Clone)]
pub struct FakeDualEncoder {
    encoder: FakeEncoder,
    texts: BTreeMap<String, Vec<f32>>,
    failing: BTreeMap<String, FailureKind>,
    /// Each call's texts so far, in order.
    pub asked: Vec<Vec<String>>,
}

impl FakeDualEncoder {
    /// A dual encoder without failures.
    pub fn new(opened: OpenedModel) -> Self {
        Self::over(FakeEncoder::new(opened))
    }

    /// A dual encoder with this image side, failures and all.
    pub fn over(encoder: FakeEncoder) -> Self {
        Self {
            encoder,
            texts: BTreeMap::new(),
            failing: BTreeMap::new(),
            asked: Vec::new(),
        }
    }

    /// This text has this vector, `embedding_dim` values.
    #[must_use]
    pub fn text(mut self, text: &str, vector: Vec<f32>) -> Self {
        self.texts.insert(text.to_owned(), vector);
        self
    }

    /// A call with this text fails.
    #[must_use]
    pub fn fail_text(mut self, text: &str, kind: FailureKind) -> Self {
        self.failing.insert(text.to_owned(), kind);
        self
    }

    /// The image side, for its counters.
    pub fn encoder(&self) -> &FakeEncoder {
        &self.encoder
    }
}

impl ImageEncoder for FakeDualEncoder {
    fn opened(&self) -> &OpenedModel {
        self.encoder.opened()
    }

    fn encode_all(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        self.encoder.encode_all(batches, sink)
    }
}

impl DualEncoder for FakeDualEncoder {
    fn encode_texts(&mut self, texts: &[String]) -> Result<TextRows, ModelError> {
        self.asked.push(texts.to_vec());
        if let Some(kind) = texts.iter().find_map(|text| self.failing.get(text)) {
            return Err(refused(scripted(*kind)));
        }
        let dim = self.opened().embedding_dim;
        let row = |text: &String| match self.texts.get(text) {
            Some(vector) => vector.clone(),
            None => embedding(text.as_bytes(), dim),
        };
        Ok(TextRows {
            rows: texts.iter().map(row).collect(),
            tokens: texts
                .iter()
                .map(|text| text.bytes().map(u32::from).collect())
                .collect(),
            truncated: vec![false; texts.len()],
        })
    }
}
