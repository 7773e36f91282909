//! How a model's answers become scores: one file a method, gathered in a slice. Knows embeddings and labels; no files, no images.

pub mod captions;
mod linear_probing;
mod zero_shot;

use crate::task::Track;
use focus_plugin_abi::v1::message::{InterfaceName, Similarity};
use focus_probe::{Device, ProbeError};
use linkme::distributed_slice;

/// One method of the benchmark.
#[derive(Debug)]
pub struct Method {
    /// Stable id: `linear_probing`.
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// Place in listings.
    pub order: u32,
    /// What the model must offer.
    pub needs: InterfaceName,
    /// Whether it learns from the training split; otherwise only test images are asked about and scored.
    pub fits: bool,
    /// The tracks in which it is reported.
    pub tracks: &'static [Track],
    /// What it makes of a model's answers.
    pub how: How,
}

/// What a method works on.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// From embeddings and training labels to scores of the test images.
    Embeddings(fn(&MethodInput<'_>) -> Result<MethodOutput, ProbeError>),
    /// From what a generative model said about the test images (`eval::prompting`).
    Generations,
}

/// Every method of this build.
#[distributed_slice]
pub static METHODS: [Method];

/// All methods in listing order.
pub fn all() -> Vec<&'static Method> {
    let mut methods: Vec<_> = METHODS.iter().collect();
    methods.sort_by_key(|method| (method.order, method.id));
    methods
}

/// What a method works on.
#[derive(Debug)]
pub struct MethodInput<'a> {
    /// Values of an embedding.
    pub dim: usize,
    /// Row-major embeddings of the training images.
    pub train: &'a [f32],
    /// Their labels.
    pub train_labels: &'a [bool],
    /// Row-major embeddings of the test images.
    pub test: &'a [f32],
    /// The task's sentences; always there for a method that needs a dual encoder.
    pub texts: Option<TextPair<'a>>,
    /// Where to compute.
    pub device: &'a Device,
}

/// The vectors of a task's two sentences, `dim` values each.
#[derive(Debug, Clone, Copy)]
pub struct TextPair<'a> {
    /// Said of a negative photograph.
    pub negative: &'a [f64],
    /// Said of a positive one.
    pub positive: &'a [f64],
    /// The model's own scale.
    pub similarity: Option<Similarity>,
}

/// What a method found.
#[derive(Debug, Clone)]
pub struct MethodOutput {
    /// For each training image (in-sample: for checks, never for metrics); empty for a method that does not fit.
    pub train: Vec<Scored>,
    /// For each test image.
    pub test: Vec<Scored>,
    /// Further numbers for each test image, by name.
    pub extra: Vec<(&'static str, Vec<f64>)>,
    /// How the fit went; `None` for methods without one.
    pub fit: Option<FitSummary>,
}

/// One image's score and decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Positive-class score in [0, 1].
    pub score: f64,
    /// Predicted label.
    pub predicted: bool,
}

/// How a fit went: stored beside the predictions, shown in reports.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FitSummary {
    /// `converged`, `iteration_limit` or `stalled`.
    pub status: focus_probe::Status,
    /// Iterations of the optimiser.
    pub iterations: u64,
    /// Euclidean norm of the gradient at the end.
    pub gradient_norm: f64,
    /// The objective at the end.
    pub loss: f64,
    /// Training images.
    pub n: u64,
    /// Positive ones.
    pub n_pos: u64,
    /// Negative ones.
    pub n_neg: u64,
    /// Training images with an all-zero embedding.
    pub zero_rows: u64,
}
