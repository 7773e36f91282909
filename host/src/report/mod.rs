//! A run's report: one plain structure, rendered by siblings that never import each other. Prints nothing, computes no metric.
//!
//! The same stored answers give the same bytes: no clock time, host name, absolute path or thread count is in it.

mod gather;
mod grid;
mod json;
mod many;
mod markdown;
mod number;
mod table;
mod text;

pub use gather::{ReportError, gather, rebuild};
pub use grid::{GRID_SCHEMA, render_grid};
pub use many::{analyse_runs, has_answers, store_grid, stored_grid_forms};
pub use number::probability;

use crate::eval::{CandidateMass, Facts, method::FitSummary};
use focus_analysis::CellAnalysis;
use linkme::distributed_slice;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of `report.json`.
pub const REPORT_SCHEMA: &str = "focus-report/2";

/// Everything a report shows.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `focus-report/2`.
    pub schema: &'static str,
    /// The program's version.
    pub tool_version: String,
    /// Images were drawn by a program: nothing here says anything about patients.
    pub synthetic: bool,
    /// Why nothing here says anything about the model: random weights, a toy size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Model and dataset.
    pub facts: Facts,
    /// Device kind the model ran on.
    pub device_kind: String,
    /// Permissions granted to the plugin.
    pub permissions: Vec<String>,
    /// Images by split.
    pub splits: BTreeMap<String, SplitCount>,
    /// Images without an embedding.
    pub failures: Vec<FailureCount>,
    /// The cells, in the order task, method.
    pub cells: Vec<CellReport>,
    /// Remarks a reader must see.
    pub notes: Vec<String>,
}

/// Images of a split.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SplitCount {
    /// Records.
    pub images: usize,
    /// Of these, asked of the model (a label in a wanted task is known).
    pub asked: usize,
    /// Of these, answered.
    pub answered: usize,
}

/// Images that failed alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailureCount {
    /// `image_error` or `model_error`.
    pub outcome: String,
    /// Kind of failure.
    pub reason: String,
    /// How many.
    pub count: usize,
    /// Paths below the data folder of the first few.
    pub examples: Vec<String>,
}

/// A cell and how its fit went.
#[derive(Debug, Clone, Serialize)]
pub struct CellReport {
    /// Counts and metrics.
    #[serde(flatten)]
    pub analysis: CellAnalysis,
    /// The fit, for methods that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<FitSummary>,
    /// Of a prompted model: how much of the first token's distribution lay on answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_mass: Option<CandidateMass>,
}

/// One way to write a report.
#[derive(Debug)]
pub struct Renderer {
    /// `text`, `markdown`, `json`.
    pub id: &'static str,
    /// File name in the run folder, for those that are stored.
    pub file: Option<&'static str>,
    /// The text.
    pub render: fn(&Report) -> String,
}

/// Every renderer of this build; one is added by adding a file.
#[distributed_slice]
pub static RENDERERS: [Renderer];

/// The report in the form `id`.
pub fn render(report: &Report, id: &str) -> Option<String> {
    RENDERERS
        .iter()
        .find(|renderer| renderer.id == id)
        .map(|renderer| (renderer.render)(report))
}

/// The stored forms: file name and bytes, sorted by name.
pub fn stored_forms(report: &Report) -> Vec<(&'static str, String)> {
    let mut forms: Vec<_> = RENDERERS
        .iter()
        .filter_map(|r| r.file.map(|file| (file, (r.render)(report))))
        .collect();
    forms.sort_by_key(|(file, _)| *file);
    forms
}

/// Names come from plugins, mappers and files: they must not break out of a Markdown cell or a line.
fn escape(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}
