//! What evaluation knows of a model: an open image encoder, and the images and answers that go through it.
//!
//! Must not know of processes, sockets or dylibs.

use crate::{ModelError, SinkError};
use focus_plugin_abi::v1::message::{OpenedModel, PluginDescriptor};
use focus_wire::WireError;
use std::sync::Arc;

/// One prepared image: u8 RGB of the card's size, and the caller's number for it.
#[derive(Debug, Clone)]
pub struct PreparedImage {
    /// The caller's index of the image; comes back with the answer.
    pub sample: usize,
    /// `width * height * 3` bytes.
    pub pixels: Arc<[u8]>,
}

/// Images of one encode call: at most `OpenedModel::batch_size` of them; the client pads to that.
#[derive(Debug, Clone, Default)]
pub struct PixelBatch {
    /// In plan order.
    pub images: Vec<PreparedImage>,
}

/// What became of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The caller's index.
    pub sample: usize,
    /// The embedding, `OpenedModel::embedding_dim` finite values, or why there is none.
    pub result: Result<Vec<f32>, WireError>,
}

/// An open image encoder. Implementations keep the batch plan (pad every call to `batch_size`), bisect a failing batch down to the
/// images that fail, and give up with an error only when restarts are used up or the plugin cannot run at all.
pub trait ImageEncoder {
    /// What was opened; part of the embedding's key.
    fn opened(&self) -> &OpenedModel;

    /// Pull batches, push the answers of each batch in order. `sink` sees every image of every batch exactly once.
    /// An error of `sink` stops the stream and comes back; batches in flight are dropped.
    fn encode_all(
        &mut self,
        batches: &mut dyn Iterator<Item = PixelBatch>,
        sink: &mut dyn FnMut(Vec<Answer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError>;
}

/// A plugin that has described itself.
pub trait Plugin {
    /// The descriptor.
    fn descriptor(&self) -> &PluginDescriptor;
    /// `sha256:hex` of the dylib.
    fn digest(&self) -> &str;
}
