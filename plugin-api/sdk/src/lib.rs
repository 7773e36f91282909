//! focus-plugin-sdk: write a model plugin in safe Rust.
//!
//! Owns the traits an author implements, registration, the export macro and the panic barrier. Must not know the host's side, and
//! names no `abi_stable` type.
//!
//! ```
//! use focus_plugin_sdk::{Embeddings, Error, Host, ImageBatch, ImageEncoder, Model, ModelDescriptor, OpenOptions, OpenedModel};
//!
//! struct Brightness(OpenedModel);
//!
//! impl Model for Brightness {
//!     fn opened(&self) -> OpenedModel {
//!         self.0.clone()
//!     }
//!     fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
//!         Some(self)
//!     }
//! }
//!
//! impl ImageEncoder for Brightness {
//!     fn encode(&mut self, images: &ImageBatch<'_>, _host: &Host) -> Result<Embeddings, Error> {
//!         let means = images.iter().map(|rgb| rgb.iter().map(|&v| f32::from(v)).sum::<f32>() / rgb.len() as f32);
//!         Embeddings::new(1, means.collect())
//!     }
//! }
//!
//! fn descriptor() -> ModelDescriptor {
//!     serde_json::from_value(serde_json::json!({
//!         "id": "brightness", "title": "Mean brightness", "family": "vm", "group": "baseline",
//!         "interfaces": ["image_encoder"], "embedding_dim": 1,
//!         "preprocessing": {"mode": "resized", "width": 64, "height": 64, "geometry": {"kind": "squash"}, "filter": "bilinear"},
//!         "dtypes": ["f32"], "devices": ["cpu"], "batch_size": 8
//!     }))
//!     .expect("a constant that parses")
//! }
//!
//! fn open(options: &OpenOptions, _host: &Host) -> Result<Box<dyn Model>, Error> {
//!     Ok(Box::new(Brightness(focus_plugin_sdk::opened(&descriptor(), options))))
//! }
//!
//! focus_plugin_sdk::register_model! { describe: descriptor, open: open }
//! focus_plugin_sdk::export_plugin! { name: "brightness", version: "1.0.0", license: "MIT" }
//! # fn main() {}
//! ```
//!
//! # What a plugin must keep to
//! * `panic = "unwind"` in its profile (the macro refuses to compile otherwise): a panic becomes an error of kind `panic`, the host
//!   starts a fresh process and goes on. Panics of the plugin's own threads are the plugin's to handle.
//! * Pixels of an [`ImageBatch`] are valid during the call only (the borrow says so): the host writes the next batch over them.
//! * A model is called on the thread that opened it. [`Host`] may be cloned and used on any thread.
//! * Nothing of its own surroundings: no files but the weights folder, no network, no reading of its own path (a checked copy of
//!   the library is loaded, not the file itself). Standard output and error are kept as log.
//! * Equal input gives equal output, whatever else is in the batch.

mod barrier;
mod error;
mod export;
mod generate;
mod host;
mod model;
mod registry;
mod serve;
pub mod stop;

pub use error::{Error, ErrorKind};
pub use focus_plugin_abi::v1::message::{
    AttachReply, AttachRequest, DetachRequest, EncodeReply, EncodeRequest, Family, Finish,
    GenerateReply, GenerateRequest, GeneratedAnswer, Geometry, Group, GroupError, GroupReply,
    HubSource, ImageSize, InterfaceName, ModelDescriptor, OpenOptions, OpenedModel, PixelMode,
    PixelType, PluginDescriptor, PreprocessingCard, PromptGroup, RANDOM_WEIGHTS, ResizeFilter,
    Similarity, StopRule, TextReply, TextRequest, Timings, VariantScore,
};
pub use generate::{GenerateBatch, Generator, LoraAdaptable, Picture};
pub use host::{Host, Level};
pub use model::{DualEncoder, Embeddings, ImageBatch, ImageEncoder, Model, TextEmbeddings};
pub use registry::{ModelRegistration, OpenFunction, deny_unknown_settings, opened};

/// What the macros' expansions need; not for people.
#[doc(hidden)]
pub mod __private {
    pub use crate::export::{PluginInfo, describe, open};
    pub use focus_plugin_abi::__private::{Header, header};
    pub use focus_plugin_abi::contract::CONTRACT_VERSION;
    pub use focus_plugin_abi::v1::export::{Exports, ServedModel};
    pub use focus_plugin_abi::v1::{HostCallbacks, PluginError};
    pub use inventory;
}
