//! A run folder, out: as it is (Parquet), for spreadsheets (CSV), or as the published code names and lays out its
//! results. Only what the store has read and checked is written. It must not know how a run came to be.

mod csv_tables;
mod folder;
mod published;
mod spreadsheet;

pub use published::published_name;
pub use spreadsheet::{protect_text, unprotect_text};

use crate::error::Result;
use focus_store::{AnswerFile, GenerationFile, GenerationLayout, Limits, RunView, StoreError};
use folder::NewFolder;
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The store's own tables.
    Parquet,
    /// One CSV file for each table, with a dictionary of columns.
    Csv,
    /// The published code's result files.
    FocusCsv,
}

/// How to export.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The form.
    pub format: ExportFormat,
    /// `Csv`: predictions in one file for each cell, not in one file for all.
    pub per_cell: bool,
    /// `Parquet`: the answers (embeddings) too.
    pub answers: bool,
    /// `FocusCsv`: ids of vision encoders, whose files the published code names differently (`cv_`).
    pub vision_models: BTreeSet<String>,
}

impl ExportOptions {
    /// `format` with everything else plain.
    pub fn new(format: ExportFormat) -> Self {
        Self {
            format,
            per_cell: false,
            answers: false,
            vision_models: BTreeSet::new(),
        }
    }
}

/// What an export wrote and could not write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    /// Files written.
    pub files: u64,
    /// Cells written.
    pub cells: u64,
    /// Prediction rows written.
    pub rows: u64,
    /// Cells left out, by reason (`FocusCsv`).
    pub cells_left_out: BTreeMap<String, u64>,
    /// Rows left out or changed, by reason (`FocusCsv`).
    pub rows_left_out: BTreeMap<String, u64>,
}

/// Write `run` into the new folder `out`: whole, or not at all.
pub fn export(run: &RunView, out: &Path, options: &ExportOptions) -> Result<ExportSummary> {
    let folder = NewFolder::create(out)?;
    let mut summary = ExportSummary::default();
    match options.format {
        ExportFormat::Parquet => parquet(run, &folder, options.answers, &mut summary)?,
        ExportFormat::Csv => csv_tables::write(run, &folder, options.per_cell, &mut summary)?,
        ExportFormat::FocusCsv => {
            published::write(run, &folder, &options.vision_models, &mut summary)?;
        }
    }
    folder.commit()?;
    Ok(summary)
}

// Bytes are copied after the store has read and checked them, so that columns of later versions survive.
fn parquet(
    run: &RunView,
    folder: &NewFolder,
    answers: bool,
    summary: &mut ExportSummary,
) -> Result<()> {
    let records = run.records()?;
    folder.copy(&run.records_path(), "records.parquet")?;
    summary.files += 1;
    for (file, predictions) in run.prediction_files()?.iter().zip(run.all_predictions()?) {
        let predictions = predictions?;
        records.check_predictions(&predictions, file)?;
        folder.copy(
            file,
            &format!("predictions/{}.parquet", predictions.cell.file_stem()),
        )?;
        summary.files += 1;
        summary.cells += 1;
        summary.rows += predictions.rows.len() as u64;
    }
    if run.metrics_path().exists() {
        run.metrics()?;
        folder.copy(&run.metrics_path(), "metrics.parquet")?;
        summary.files += 1;
    }
    for file in if answers {
        run.answer_files()?
    } else {
        Vec::new()
    } {
        check_answers(&file, run)?;
        let name =
            file.file_name()
                .and_then(|n| n.to_str())
                .ok_or_else(|| StoreError::NotARun {
                    path: file.clone(),
                    what: "the name of an answer file is no text".into(),
                })?;
        folder.copy(&file, &format!("answers/{name}"))?;
        summary.files += 1;
    }
    Ok(())
}

/// Every value of an answer file, embeddings or generations, is what was written.
fn check_answers(file: &Path, run: &RunView) -> Result<()> {
    let limits = Limits::default();
    match generation_layout(run) {
        Some(layout) => GenerationFile::open(file, &layout, &limits)?
            .batches()?
            .try_for_each(|batch| batch.map(drop))?,
        None => AnswerFile::open(file, &limits)?
            .batches()?
            .try_for_each(|batch| batch.map(drop))?,
    }
    Ok(())
}

/// Prompts and variants of a prompted run, as its identity has them.
fn generation_layout(run: &RunView) -> Option<GenerationLayout> {
    let asked = run.manifest().options.get("prompting")?;
    let texts = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let prompts = asked["prompts"].as_array()?.iter();
    let variants = asked["variants"].as_array()?.iter();
    Some(GenerationLayout {
        prompts: prompts
            .map(|prompt| texts(&prompt["task"]))
            .collect::<Option<_>>()?,
        variants: variants.map(texts).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests;
