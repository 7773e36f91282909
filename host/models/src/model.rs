//! What evaluation knows of a model: an open image encoder, dual encoder or generator, and what goes in and comes out.
//!
//! Must not know of processes, sockets or dylibs.

use crate::{ModelError, SinkError};
use focus_plugin_abi::v1::message::{
    AttachReply, AttachRequest, GeneratedAnswer, OpenedModel, PluginDescriptor, StopRule, Timings,
};
use focus_wire::WireError;
use std::sync::Arc;

/// One prepared image of the card's size and number type, and the caller's number for it.
#[derive(Debug, Clone)]
pub struct PreparedImage {
    /// The caller's index of the image; comes back with the answer.
    pub sample: usize,
    /// `width * height * 3` bytes (mode `resized`) or `width * height * 12` (mode `float`: f32, little-endian).
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

/// An open dual encoder: its image side is that of [`ImageEncoder`].
pub trait DualEncoder: ImageEncoder {
    /// Embed texts, the classes of one question, in order.
    fn encode_texts(&mut self, texts: &[String]) -> Result<TextRows, ModelError>;
}

/// Embeddings of texts, checked: as many rows as texts, of the image embedding's length, finite.
#[derive(Debug, Clone, PartialEq)]
pub struct TextRows {
    /// One for each text.
    pub rows: Vec<Vec<f32>>,
    /// Token ids of each text as the network saw them.
    pub tokens: Vec<Vec<u32>>,
    /// Whether a text was cut.
    pub truncated: Vec<bool>,
}

/// A picture for a generator.
#[derive(Debug, Clone)]
pub struct FullPicture {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// u8 RGB, `width * height * 3` bytes.
    pub rgb: Arc<[u8]>,
}

/// Pictures and the questions about them: what fails, and is answered, as one.
#[derive(Debug, Clone)]
pub struct AskedGroup {
    /// The caller's index; comes back with the answers.
    pub sample: usize,
    /// In the order that the conversations show them.
    pub pictures: Vec<FullPicture>,
    /// The questions, each a conversation of its own.
    pub prompts: Vec<String>,
}

/// What is asked of every group of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// An attached adapter; `None`: the base.
    pub adapter: Option<String>,
    /// Token variants to score at the first generated position.
    pub score: Vec<String>,
    /// Most tokens to generate; 0: only scores.
    pub max_new_tokens: u32,
    /// When to stop before that.
    pub stop: StopRule,
}

/// What became of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupAnswer {
    /// The caller's index.
    pub sample: usize,
    /// One answer for each prompt, with as many scores as were asked, or why there is none.
    pub result: Result<Vec<GeneratedAnswer>, WireError>,
    /// Where the time went.
    pub timings: Timings,
}

/// An open generative model. Implementations ask at most `batch_size` groups at once, find the group that kills a call, and give up
/// with an error only when restarts are used up or the plugin cannot run at all. Adapters are attached again after a restart.
pub trait Generator {
    /// What was opened; part of the answers' key.
    fn opened(&self) -> &OpenedModel;

    /// Pull batches of groups, push the answers of each in order. `sink` sees every group exactly once.
    fn generate_all(
        &mut self,
        ask: &Ask,
        batches: &mut dyn Iterator<Item = Vec<AskedGroup>>,
        sink: &mut dyn FnMut(Vec<GroupAnswer>) -> Result<(), SinkError>,
    ) -> Result<(), ModelError>;

    /// Attach an adapter under a name.
    fn attach(&mut self, request: &AttachRequest) -> Result<AttachReply, ModelError>;

    /// Forget one.
    fn detach(&mut self, name: &str) -> Result<(), ModelError>;
}

/// A plugin that has described itself.
pub trait Plugin {
    /// The descriptor.
    fn descriptor(&self) -> &PluginDescriptor;
    /// `sha256:hex` of the dylib.
    fn digest(&self) -> &str;
}
