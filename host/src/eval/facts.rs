//! What a report says about the model and the dataset of a run: stored as `facts.json`, so that a run folder explains itself.

use super::prompting::{AdapterFacts, PromptingFacts};
use focus_plugin_abi::v1::message::{ModelDescriptor, OpenedModel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// File name in the run folder.
pub const FACTS_FILE: &str = "facts.json";

/// Model, plugin and dataset of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The model's card.
    pub model: ModelDescriptor,
    /// The model as opened.
    pub opened: OpenedModel,
    /// The plugin file.
    pub plugin: PluginFacts,
    /// `blake3:hex` of the weight files, computed by the host; none for a model without.
    pub weights: Option<String>,
    /// Key of the pixels given to the model.
    pub preprocessing: String,
    /// The dataset.
    pub dataset: DatasetFacts,
    /// What a generative model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompting: Option<PromptingFacts>,
    /// The adapter over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<AdapterFacts>,
}

/// The plugin file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginFacts {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `sha256:hex` of the dylib.
    pub digest: String,
}

/// The dataset as mapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetFacts {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Licence of the data.
    pub licence: String,
    /// How to cite it.
    pub citation: String,
    /// The mapper's version.
    pub mapper_version: String,
    /// Digest of the mapper component.
    pub mapper_digest: String,
    /// Label rows read.
    pub rows: u64,
    /// Rows dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Rows whose image file is not there.
    pub missing_images: u64,
    /// Masks and contours that rows name and that cannot be used.
    #[serde(default)]
    pub unusable_parts: u64,
    /// Image files that no row names.
    pub unlisted_images: u64,
}
