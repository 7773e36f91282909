//! Models without a plugin, for tests of what is built on the traits: answers that tests can compute themselves, failures on request.
//!
//! Must not know of processes.

mod dual;
mod encoder;
mod generator;

pub use dual::FakeDualEncoder;
pub use encoder::FakeEncoder;
pub use generator::{FakeGenerator, share};

use crate::ModelError;
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

/// The same of f32 pixels (little-endian, in units of pixel/255): value `i` is the mean of every `dim`-th channel from channel `i` on.
pub fn float_embedding(pixels: &[u8], dim: u32) -> Vec<f32> {
    let dim = dim as usize;
    (0..dim)
        .map(|first| {
            let channels = pixels.chunks_exact(4).skip(first).step_by(dim);
            let count = channels.len().max(1);
            let sum: f64 = channels
                .map(|four| f64::from(f32::from_le_bytes([four[0], four[1], four[2], four[3]])))
                .sum();
            (sum / count as f64) as f32
        })
        .collect()
}

/// What a fake generator says it opened: mode `self`, no image embedding.
pub fn opened_generator(batch_size: u32) -> OpenedModel {
    let mut opened = opened(batch_size, 0, 0, 0);
    opened.model = "fake-generator".into();
    opened.preprocessing.mode = PixelMode::Own;
    opened.facts.insert("chat_template".into(), "fake:1".into());
    opened
}

fn scripted(kind: FailureKind) -> WireError {
    WireError {
        kind,
        message: format!("Scripted failure: {}", kind.name()),
        hint: None,
    }
}

fn refused(error: WireError) -> ModelError {
    ModelError::Plugin {
        plugin: "fake".into(),
        error,
    }
}

fn broken() -> ModelError {
    ModelError::RestartsUsedUp {
        plugin: "fake".into(),
        restarts: 0,
        last: scripted(FailureKind::Crash),
    }
}
