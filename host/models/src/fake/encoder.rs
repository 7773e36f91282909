//! An image encoder without a plugin: embeddings from colours, failures by sample. Must not know of texts.

use super::{broken, embedding, float_embedding, scripted};
use crate::check::Plan;
use crate::{Answer, ImageEncoder, ModelError, PixelBatch, SinkError};
use focus_plugin_abi::v1::message::{OpenedModel, PixelType};
use focus_wire::FailureKind;
use std::collections::BTreeMap;

/// An `ImageEncoder` whose failures are scripted by sample.
///
/// ```
/// use focus_models::fake::{FakeEncoder, opened};
/// use focus_models::{ImageEncoder, PixelBatch, PreparedImage};
/// use focus_wire::FailureKind;
///
/// let mut fake = FakeEncoder::new(opened(2, 4, 1, 1)).fail(1, FailureKind::Crash);
/// let image = |sample| PreparedImage { sample, pixels: vec![255; 3].into() };
/// let mut answers = Vec::new();
/// fake.encode_all(&mut [PixelBatch { images: vec![image(0), image(1)] }].into_iter(), &mut |batch| {
///     answers.extend(batch);
///     Ok(())
/// })
/// .unwrap();
/// assert_eq!(answers[0].result.as_ref().unwrap(), &[1.0, 1.0, 1.0, 0.0]);
/// assert_eq!(answers[1].result.as_ref().unwrap_err().kind, FailureKind::Crash);
/// ```
#[derive(Debug, Clone)]
pub struct FakeEncoder {
    opened: OpenedModel,
    failures: BTreeMap<usize, FailureKind>,
    break_after: Option<usize>,
    /// Images that were given an embedding so far: what a cache is meant to save.
    pub encoded: usize,
    /// Batches so far.
    pub batches: usize,
}

impl FakeEncoder {
    /// A model without failures.
    pub fn new(opened: OpenedModel) -> Self {
        Self {
            opened,
            failures: BTreeMap::new(),
            break_after: None,
            encoded: 0,
            batches: 0,
        }
    }

    /// Image `sample` fails in this way.
    #[must_use]
    pub fn fail(mut self, sample: usize, kind: FailureKind) -> Self {
        self.failures.insert(sample, kind);
        self
    }

    /// The model breaks for good (`RestartsUsedUp`) once it has answered this many batches.
    #[must_use]
    pub fn break_after(mut self, batches: usize) -> Self {
        self.break_after = Some(batches);
        self
    }
}

impl ImageEncoder for FakeEncoder {
    fn opened(&self) -> &OpenedModel {
        &self.opened
    }

    fn encode_all(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError> {
        let plan = Plan::new(&self.opened).map_err(super::refused)?;
        for batch in batches {
            plan.admit(&self.opened.model, &batch.images)?;
            if self.break_after.is_some_and(|after| self.batches >= after) {
                return Err(broken());
            }
            self.batches += 1;
            let mut answers = Vec::with_capacity(batch.images.len());
            for image in &batch.images {
                let result = if let Some(kind) = self.failures.get(&image.sample) {
                    Err(scripted(*kind))
                } else {
                    self.encoded += 1;
                    let embed = match plan.pixels {
                        PixelType::U8 => embedding,
                        PixelType::F32 => float_embedding,
                    };
                    Ok(embed(&image.pixels, self.opened.embedding_dim))
                };
                answers.push(Answer {
                    sample: image.sample,
                    result,
                });
            }
            sink(answers).map_err(ModelError::Sink)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PreparedImage;
    use crate::fake::opened;
    use focus_plugin_abi::v1::message::PixelMode;

    #[test]
    fn floats_are_embedded_as_the_bytes_they_stand_for() {
        let mut card = opened(1, 2, 1, 1);
        card.preprocessing.mode = PixelMode::Float;
        let mut fake = FakeEncoder::new(card);
        let floats = [1.0f32, 0.5, 0.0].map(f32::to_le_bytes).concat();
        let batch = PixelBatch {
            images: vec![PreparedImage {
                sample: 0,
                pixels: floats.into(),
            }],
        };
        let mut seen = Vec::new();
        fake.encode_all(&mut [batch].into_iter(), &mut |answers| {
            seen.extend(answers);
            Ok(())
        })
        .expect("works");
        assert_eq!(seen[0].result.as_deref(), Ok(&[0.5, 0.5][..]));
    }

    #[test]
    fn a_fake_that_breaks_does_so_after_what_it_answered() {
        let mut fake = FakeEncoder::new(opened(1, 2, 1, 1)).break_after(2);
        let batch = |sample| PixelBatch {
            images: vec![PreparedImage {
                sample,
                pixels: vec![51; 3].into(),
            }],
        };
        let mut seen = Vec::new();
        let result = fake.encode_all(&mut (0..5).map(batch), &mut |answers| {
            seen.extend(answers.into_iter().map(|answer| answer.sample));
            Ok(())
        });
        assert!(matches!(result, Err(ModelError::RestartsUsedUp { .. })));
        assert_eq!((seen, fake.encoded), (vec![0, 1], 2));
    }
}
