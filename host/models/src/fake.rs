//! A model without a plugin, for tests of what is built on `ImageEncoder`: deterministic embeddings, scripted failures.
//!
//! Must not know of processes.

use crate::{Answer, ImageEncoder, ModelError, PixelBatch, SinkError};
use focus_plugin_abi::v1::message::{
    Geometry, OpenedModel, PixelMode, PreprocessingCard, ResizeFilter,
};
use focus_wire::{FailureKind, WireError};
use std::collections::BTreeMap;

/// What a fake model says it opened: mode `resized`, squashed to `width` x `height`.
pub fn opened(batch_size: u32, embedding_dim: u32, width: u32, height: u32) -> OpenedModel {
    OpenedModel {
        model: "fake".into(),
        device: "cpu".into(),
        dtype: "f32".into(),
        embedding_dim,
        weights_digest: None,
        preprocessing: PreprocessingCard {
            mode: PixelMode::Resized,
            width,
            height,
            geometry: Geometry::Squash,
            filter: ResizeFilter::Bicubic,
            mean: [0.0; 3],
            std: [1.0; 3],
        },
        batch_size,
        notes: Vec::new(),
        similarity: None,
        facts: BTreeMap::new(),
    }
}

/// The embedding of some pixels: value `i` is the mean of every `dim`-th byte from byte `i` on, in units of pixel/255. Like
/// images have like embeddings, so a probe on them learns what colour can tell.
pub fn embedding(pixels: &[u8], dim: u32) -> Vec<f32> {
    let dim = dim as usize;
    (0..dim)
        .map(|first| {
            let (mut sum, mut count) = (0u64, 0u64);
            for byte in pixels.iter().skip(first).step_by(dim) {
                sum += u64::from(*byte);
                count += 1;
            }
            (sum as f64 / (255 * count.max(1)) as f64) as f32
        })
        .collect()
}

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

fn scripted(kind: FailureKind) -> WireError {
    WireError {
        kind,
        message: format!("Scripted failure: {}", kind.name()),
        hint: None,
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
        let plan = crate::check::Plan::new(&self.opened).map_err(|error| ModelError::Plugin {
            plugin: "fake".into(),
            error,
        })?;
        for batch in batches {
            plan.admit(&self.opened.model, &batch)?;
            if self.break_after.is_some_and(|after| self.batches >= after) {
                return Err(ModelError::RestartsUsedUp {
                    plugin: "fake".into(),
                    restarts: 0,
                    last: scripted(FailureKind::Crash),
                });
            }
            self.batches += 1;
            let mut answers = Vec::with_capacity(batch.images.len());
            for image in &batch.images {
                let result = if let Some(kind) = self.failures.get(&image.sample) {
                    Err(scripted(*kind))
                } else {
                    self.encoded += 1;
                    Ok(embedding(&image.pixels, self.opened.embedding_dim))
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
