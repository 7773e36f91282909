//! The JSON side of contract version 1: what the headers say. Arrow arrays travel beside them.
//!
//! Owns the field names both sides agree on. Knows nothing of `abi_stable`, processes or pixels in memory.
//! Readers ignore fields they do not know and default those that are absent, so fields can be added within a version;
//! a field never changes its meaning or unit.

mod adapter;
mod generate;
mod texts;

pub use adapter::{AttachReply, AttachRequest, DetachRequest};
pub use generate::{
    Finish, GenerateReply, GenerateRequest, GeneratedAnswer, GroupError, GroupReply, ImageSize,
    PromptGroup, StopRule, Timings, VariantScore,
};
pub use texts::{Similarity, TextReply, TextRequest};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a plugin says of itself before any weights are touched; returned by `describe()`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginDescriptor {
    /// Short lower-case name, `handcrafted`; also the name in run keys.
    pub name: String,
    /// The plugin's own version, SemVer.
    pub version: String,
    /// SPDX expression of the plugin's code.
    pub license: String,
    /// The models this dylib offers, in registration order sorted by id.
    pub models: Vec<ModelDescriptor>,
}

/// The card of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelDescriptor {
    /// Unique within the plugin: `handcrafted-768`.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// FOCUS family.
    pub family: Family,
    /// FOCUS group.
    pub group: Group,
    /// What the model can be asked.
    pub interfaces: Vec<InterfaceName>,
    /// How the host must prepare pixels.
    pub preprocessing: PreprocessingCard,
    /// Length of an image embedding, if it is known before `open`.
    #[serde(default)]
    pub embedding_dim: Option<u32>,
    /// Number types it can run in, best first: `f32`, `bf16`, `f16`.
    pub dtypes: Vec<String>,
    /// Devices it can run on: `cpu`, `cuda`.
    pub devices: Vec<String>,
    /// Rows in one encode call; the host pads the tail so that every call has exactly this many.
    pub batch_size: u32,
    /// File names `open` wants to find in the weights folder, `a|b` where either will do; empty for a model without weights, and for
    /// one of which no file is known by name.
    #[serde(default)]
    pub weight_files: Vec<String>,
    /// Ids of datasets known to be in the pretraining data; `None` when that is unknown.
    #[serde(default)]
    pub pretraining_datasets: Option<Vec<String>>,
    /// SPDX expression or name of the weights' licence.
    #[serde(default)]
    pub weights_license: Option<String>,
    /// The literature: one citation per line, with DOI or arXiv id.
    #[serde(default)]
    pub papers: Vec<String>,
    /// Where the reference implementation lives, if there is one.
    #[serde(default)]
    pub reference_code: Option<String>,
    /// Where the weights are published, if on a model hub.
    #[serde(default)]
    pub hub: Option<HubSource>,
}

/// A repository of a model hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubSource {
    /// `google/medgemma-4b-it`.
    pub repository: String,
    /// Commit, tag or branch that the card was written for; `None`: the default branch.
    #[serde(default)]
    pub revision: Option<String>,
    /// Whether access must be asked for there, so that fetching needs a token.
    #[serde(default)]
    pub gated: bool,
}

/// FOCUS model family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Vision encoder.
    Vm,
    /// Dual-encoder vision-language model.
    Vlm,
    /// Generative multimodal LLM.
    Mllm,
}

/// FOCUS model group within its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Natural-image pretraining, or none.
    General,
    /// Retinal pretraining.
    Ophthalmic,
    /// Medical pretraining (MLLM).
    Medical,
    /// A reference without learning, such as handcrafted features.
    Baseline,
}

/// An interface's name in JSON; its number crosses the ABI (`abi::Interface`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceName {
    /// Image to embedding (VM, VLM).
    ImageEncoder,
    /// Image and text to a shared space (VLM).
    DualEncoder,
    /// Image and prompts to text and token scores (MLLM).
    Generator,
    /// Takes low-rank adapters (LoRA).
    LoraAdaptable,
}

/// How the host turns a photograph into the model's input. Part of every cache key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreprocessingCard {
    /// Who resizes.
    pub mode: PixelMode,
    /// Final width in pixels (mode `resized`).
    pub width: u32,
    /// Final height in pixels (mode `resized`).
    pub height: u32,
    /// How the photograph's shape becomes the final one.
    pub geometry: Geometry,
    /// Resampling kernel, Pillow's definition of it.
    pub filter: ResizeFilter,
    /// Mean per channel in units of pixel/255; the plugin subtracts it, the host only records it.
    #[serde(default)]
    pub mean: [f64; 3],
    /// Standard deviation per channel in units of pixel/255.
    #[serde(default = "unit_std")]
    pub std: [f64; 3],
}

fn unit_std() -> [f64; 3] {
    [1.0; 3]
}

/// Who resizes the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PixelMode {
    /// The host: the plugin gets u8 RGB of exactly `width` x `height`.
    Resized,
    /// The host, in floating point (DINOv3, FLAIR): the plugin gets f32 RGB of exactly `width` x `height`, in units of pixel/255, never
    /// rounded to bytes nor clamped on the way.
    Float,
    /// The plugin, by rules of its own (tiling MLLMs): it gets the oriented full image. For generators only; `width`, `height`,
    /// `geometry` and `filter` say nothing then, and `OpenedModel::facts` says the rule.
    #[serde(rename = "self")]
    Own,
}

/// Number type of a pixel's channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PixelType {
    /// 0 to 255.
    #[default]
    U8,
    /// In units of pixel/255.
    F32,
}

impl PixelType {
    /// Bytes of one pixel, three channels.
    pub fn pixel_bytes(self) -> u32 {
        match self {
            Self::U8 => 3,
            Self::F32 => 12,
        }
    }
}

/// From the photograph's shape to the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Geometry {
    /// Both sides resized to the final size, aspect ignored.
    Squash,
    /// Short side to `edge`, long side in proportion (truncated to an integer, as torchvision does), then a centre crop of the final size.
    ShortestEdgeCrop {
        /// Short side after resizing, in pixels.
        edge: u32,
    },
    /// Long side to the final size, black bars centred on the rest.
    Fit,
    /// Long side to the final size, short side in proportion (truncated to an integer), laid into the upper left corner; the rest is
    /// black. FLAIR's rule.
    FitCorner,
}

/// Pillow's resampling kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResizeFilter {
    /// Support 0.5.
    Box,
    /// Support 1.
    Bilinear,
    /// Support 2, a = -0.5.
    Bicubic,
    /// Support 3.
    Lanczos,
}

/// Setting by which a model is asked for random weights in place of a folder, with the value `random:SEED`: a control. A model that does
/// not know the setting refuses it.
pub const RANDOM_WEIGHTS: &str = "weights";

/// What the host asks for at `open`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenOptions {
    /// Which of the plugin's models.
    pub model: String,
    /// `cpu` or `cuda:N`.
    pub device: String,
    /// One of the card's dtypes; `None`: its first.
    #[serde(default)]
    pub dtype: Option<String>,
    /// A folder that the host fetched and verified; `None` for models without weights, and when setting [`RANDOM_WEIGHTS`] asks for
    /// random ones.
    #[serde(default)]
    pub weights: Option<String>,
    /// CPU threads the model may use.
    pub threads: u32,
    /// Rows of one call, at least 1; `None`: the model chooses, by its card and the device.
    #[serde(default)]
    pub batch_size: Option<u32>,
    /// Options of the model's own (`key=value` on the command line), for switches such as `pooling`.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Network hosts (names or addresses, without ports) that both the sidecar asks for and the user grants; empty: no network at all.
    /// The kernel knows no hosts: a plugin must ask no other.
    #[serde(default)]
    pub network: Vec<String>,
}

/// What a plugin says once a model is open; part of the embedding's key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedModel {
    /// The model's id.
    pub model: String,
    /// Device in use.
    pub device: String,
    /// Number type in use.
    pub dtype: String,
    /// Length of an image embedding; 0 for a model without one.
    pub embedding_dim: u32,
    /// Digest of the weights in use, `scheme:hex`; `random:SEED` for random ones; `None` without weights.
    #[serde(default)]
    pub weights_digest: Option<String>,
    /// The card in force, after settings.
    pub preprocessing: PreprocessingCard,
    /// Rows of one call; of a generator: most groups of one call.
    pub batch_size: u32,
    /// What a reader of the results must know of how the model runs, one sentence each: `random weights, seed 7: ...`,
    /// `track as_published`.
    #[serde(default)]
    pub notes: Vec<String>,
    /// A dual encoder's own scale; `None` for a model that takes no texts, or was opened without its text side.
    #[serde(default)]
    pub similarity: Option<Similarity>,
    /// What else decides the results: `min_pixels`, `tiling`, `chat_template` (a digest). Part of the key, and shown in reports.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}

/// Header of `image_encoder.encode`. Arrays beside it: one, the pixels, row-major, channels interleaved, no padding, one row an image:
/// mode `resized`: `FixedSizeBinary(width * height * 3)`, u8 RGB; mode `float`: `FixedSizeBinary(width * height * 12)`, f32 RGB,
/// little-endian, in units of pixel/255.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodeRequest {
    /// Image width in pixels.
    pub width: u32,
    /// Image height in pixels.
    pub height: u32,
    /// Rows in the array: the model's batch size.
    pub rows: u32,
    /// Leading rows that hold real images; the rest is black padding whose embeddings are ignored.
    pub used: u32,
    /// Number type of the pixels.
    #[serde(default)]
    pub pixels: PixelType,
}

/// Header of the reply. Arrays beside it: one, `FixedSizeList<Float32>(dim)`, a row for each row of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodeReply {
    /// Rows in the array.
    pub rows: u32,
    /// Values in a row.
    pub dim: u32,
}
