//! What is known of models and datasets before a run: family and group, pretraining data, country and device, the pairs of
//! each track. Facts with their sources in `focus.toml`; a user's file and a run's own facts add to them. It reads no
//! prediction and computes nothing.

mod error;
mod facts;
mod grid;
mod parse;

pub use error::CatalogueError;
pub use facts::ModelFacts;
pub use grid::ExpectedCell;

use crate::Track;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What kind of model, which decides its methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Vision encoder.
    Vm,
    /// Dual encoder of images and text.
    Vlm,
    /// Multimodal language model.
    Mllm,
}

impl Family {
    /// All, in the order of the paper's tables.
    pub const ALL: [Self; 3] = [Self::Vm, Self::Vlm, Self::Mllm];

    /// The paper's methods for it.
    pub fn published_methods(self) -> &'static [&'static str] {
        match self {
            Self::Vm => &["linear_probing"],
            Self::Vlm => &["linear_probing", "zero_shot"],
            Self::Mllm => &["prompting"],
        }
    }
}

/// What a model was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Anything.
    General,
    /// Eyes.
    Ophthalmic,
    /// Medicine at large.
    Medical,
    /// A yardstick: features that nobody trained.
    Baseline,
}

/// A family and a group: the paper's model types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ModelType {
    /// Family.
    pub family: Family,
    /// Group.
    pub group: Group,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Id, as cells have it.
    pub id: String,
    /// Family.
    pub family: Family,
    /// Group.
    pub group: Group,
    /// Other names for the same model.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Datasets it is known to have seen; none: unknown.
    pub pretraining: Option<Vec<String>>,
    /// Where this is from.
    pub source: String,
}

impl ModelEntry {
    /// Family and group.
    pub fn kind(&self) -> ModelType {
        ModelType {
            family: self.family,
            group: self.group,
        }
    }
}

/// Rows of the published split files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitSizes {
    /// Training rows.
    pub train: u32,
    /// Validation rows, where there are any.
    pub validation: Option<u32>,
    /// Test rows.
    pub test: u32,
}

/// A dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetEntry {
    /// Id, as cells have it.
    pub id: String,
    /// Name for people.
    pub title: String,
    /// Country of the images; none: unknown.
    pub country: Option<String>,
    /// `desktop` or `mobile`; none: unknown.
    pub device: Option<String>,
    /// Tasks of the published track.
    pub published: Vec<String>,
    /// Tasks of the corrected track.
    pub corrected: Vec<String>,
    /// Published split sizes.
    pub splits: Option<SplitSizes>,
    /// The paper trains adapters on it.
    #[serde(default)]
    pub fine_tuning: bool,
    /// Where this is from.
    pub source: String,
}

impl DatasetEntry {
    /// Its tasks in a track.
    pub fn tasks(&self, track: Track) -> &[String] {
        match track {
            Track::Corrected => &self.corrected,
            Track::AsPublished => &self.published,
        }
    }
}

/// Everything known, in the order it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    models: Vec<ModelEntry>,
    datasets: Vec<DatasetEntry>,
    /// Every id and alias, and where its model stands in `models`.
    names: BTreeMap<String, usize>,
}

impl Catalogue {
    /// The 22 models and 10 datasets of the paper.
    pub fn embedded() -> Self {
        parse::embedded()
    }

    /// Models in order.
    pub fn models(&self) -> &[ModelEntry] {
        &self.models
    }

    /// Datasets in order.
    pub fn datasets(&self) -> &[DatasetEntry] {
        &self.datasets
    }

    /// The model of this id or alias (without adapter or variation).
    pub fn model(&self, name: &str) -> Option<&ModelEntry> {
        self.names.get(name).map(|&place| &self.models[place])
    }

    /// The dataset of this id.
    pub fn dataset(&self, id: &str) -> Option<&DatasetEntry> {
        self.datasets.iter().find(|dataset| dataset.id == id)
    }

    /// Datasets that have this task in a track.
    pub fn datasets_with(&self, task: &str, track: Track) -> usize {
        let has = |dataset: &&DatasetEntry| dataset.tasks(track).iter().any(|t| t == task);
        self.datasets.iter().filter(has).count()
    }
}
