//! `lora_adaptable.attach` and `.detach`: PEFT folders on an open model. Adapters are attached once and chosen by name in each request, so
//! that many share one loaded base.

use serde::{Deserialize, Serialize};

/// Header of `lora_adaptable.attach`. No arrays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachRequest {
    /// Name that requests will use. One that is taken is an error.
    pub name: String,
    /// A folder that the host checked: `adapter_config.json` and `adapter_model.safetensors`.
    pub folder: String,
}

/// Header of the reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttachReply {
    /// The name.
    pub name: String,
    /// Digest of configuration and tensors, `scheme:hex`.
    pub digest: String,
    /// Ranks in use, ascending, each once.
    pub ranks: Vec<u32>,
    /// Factors in use (alpha / r, or alpha / sqrt r), ascending, each once.
    pub scales: Vec<f64>,
    /// Full names of the linear layers that the adapter changes, sorted.
    pub targets: Vec<String>,
    /// Modules that it replaces whole (`lm_head`), sorted.
    #[serde(default)]
    pub modules_to_save: Vec<String>,
    /// The base that the adapter's configuration names.
    #[serde(default)]
    pub base: Option<String>,
    /// Proof of attachment: largest absolute difference between the base's and the adapted first-token logits on a picture that the
    /// plugin draws itself.
    pub probe_change: f64,
    /// What a reader must know, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Header of `lora_adaptable.detach`. No arrays. The reply's header is `{}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachRequest {
    /// The name.
    pub name: String,
}
