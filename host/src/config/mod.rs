//! What a run is asked to do, resolved from the command line and the environment, with every default written down once.
//!
//! Knows folders and names; opens no dataset, no plugin and no run folder.

mod folders;

pub use folders::Folders;

use focus_images::{Decode, FieldSteps};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Everything `eval` needs to know.
#[derive(Debug, Clone)]
pub struct EvalConfig {
    /// The plugin's dylib.
    pub plugin: PathBuf,
    /// Which of its models; `None`: its only one, or its first.
    pub model: Option<String>,
    /// The model's own switches, `key=value`.
    pub settings: BTreeMap<String, String>,
    /// A folder with the model's weights.
    pub weights: Option<PathBuf>,
    /// Embedded dataset id, or path of a mapper component.
    pub dataset: String,
    /// The dataset's folder; `None` only for the embedded default.
    pub data: Option<PathBuf>,
    /// Options of the mapper, `key=value`.
    pub dataset_options: Vec<(String, String)>,
    /// Task ids; empty: all that the dataset offers.
    pub tasks: Vec<String>,
    /// Method ids; empty: all that the model's interfaces allow.
    pub methods: Vec<String>,
    /// Which images are trained on and which are tested.
    pub split: SplitChoice,
    /// At most that many images per split, in record order; 0: all.
    pub limit: usize,
    /// The run folder; `None`: named from the run's identity below `runs/`.
    pub out: Option<PathBuf>,
    /// `cpu` or `cuda:N`, for the model and the probe.
    pub device: String,
    /// Number type for the model; `None`: the card's first.
    pub dtype: Option<String>,
    /// Rows of one call of the model; `None`: the model chooses.
    pub batch_size: Option<u32>,
    /// Share of a cell's test images that may fail before the cell counts as failed.
    pub error_budget: f64,
    /// What a generative model is asked.
    pub prompting: PromptingConfig,
    /// Adapters to run over the same loaded model, after the model itself.
    pub adapters: Vec<AdapterChoice>,
    /// How the worker is run.
    pub worker: WorkerConfig,
    /// Reuse embeddings and pixels of earlier runs.
    pub cache: bool,
    /// Bytes of prepared pixels the cache may grow to.
    pub pixel_cache: u64,
    /// Field-of-view steps before a photograph is resized.
    pub field: FieldSteps,
    /// How exactly JPEG is decoded.
    pub decode: Decode,
    /// Where caches and plugins are.
    pub folders: Folders,
}

/// What a generative model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptingConfig {
    /// A folder of prompts over the paper's, `<task>.txt`.
    pub folder: Option<PathBuf>,
    /// Most tokens of an answer.
    pub max_new_tokens: u32,
    /// Stop at the first stand-alone yes or no: what follows changes neither score nor label.
    pub early_stop: bool,
}

/// A low-rank adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterChoice {
    /// `<training dataset>-<task>`; `None`: the folder's name.
    pub name: Option<String>,
    /// Its PEFT folder.
    pub folder: PathBuf,
}

/// How the worker process is run and when it is given up.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Load the plugin into this process instead; for debuggers. A crash then ends the host.
    pub in_process: bool,
    /// Deny network and writing to the plugin.
    pub sandbox: bool,
    /// Network hosts the user grants.
    pub allow_network: Vec<String>,
    /// Datasets under a data use agreement whose photographs a plugin with network may be given.
    pub allow_upload: Vec<String>,
    /// Time for checking and loading the dylib.
    pub load_timeout: Duration,
    /// Time for opening the model, weights included.
    pub open_timeout: Duration,
    /// Time for one batch.
    pub batch_timeout: Duration,
    /// Resident memory at which the worker is killed, bytes.
    pub memory: u64,
    /// Restarts before the run gives up.
    pub max_restarts: u32,
    /// CPU threads of the worker.
    pub threads: u32,
}

/// Where a split comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitChoice {
    /// The source's where it has one, else drawn with this seed.
    Auto(u64),
    /// The source's.
    Source,
    /// Drawn with this seed.
    Own(u64),
    /// The benchmark's published split file; with the seed is drawn what must be split anew.
    Published(PathBuf, u64),
}

/// Seed of a drawn split; the published benchmark's.
pub const DEFAULT_SPLIT_SEED: u64 = 13;
/// The embedded default dataset's id.
pub const DEFAULT_DATASET: &str = "synthetic";
/// Share of failed images a cell may have.
pub const DEFAULT_ERROR_BUDGET: f64 = 0.05;
/// Mebibytes of prepared pixels the cache may grow to.
pub const DEFAULT_PIXEL_CACHE_MIB: u64 = 4096;
/// Most tokens of an answer.
pub const DEFAULT_MAX_NEW_TOKENS: u32 = 128;
/// Seconds for loading.
pub const DEFAULT_LOAD_SECONDS: u64 = 60;
/// Seconds for opening a model.
pub const DEFAULT_OPEN_SECONDS: u64 = 1800;
/// Seconds for a batch.
pub const DEFAULT_BATCH_SECONDS: u64 = 300;
/// Restarts of the worker.
pub const DEFAULT_MAX_RESTARTS: u32 = 100;
