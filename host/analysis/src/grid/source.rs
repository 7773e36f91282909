//! Where cells come from: a run folder, or tables in memory. It reads, and judges nothing.

use crate::catalogue::ModelFacts;
use crate::error::{AnalysisError, Result};
use focus_store::{CellKey, Predictions, Records, RunView, StoreError};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// A cell that a source names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Which cell.
    pub cell: CellKey,
    /// Why it has no predictions, where it has none.
    pub skipped: Option<String>,
}

/// One run, wherever it is kept.
pub trait CellSource: Send + Sync {
    /// Its name in errors and tables.
    fn name(&self) -> &str;

    /// Its records.
    ///
    /// # Errors
    /// A stored table that cannot be read.
    fn records(&self) -> Result<Records>;

    /// Its cells, each once.
    ///
    /// # Errors
    /// A stored table that cannot be read.
    fn cells(&self) -> Result<Vec<Listed>>;

    /// The predictions of a cell that it lists.
    ///
    /// # Errors
    /// A stored table that cannot be read.
    fn predictions(&self, cell: &CellKey) -> Result<Predictions>;

    /// Share of labelled test images that may lack an answer.
    fn error_budget(&self) -> f64;

    /// Images were drawn by a program.
    fn synthetic(&self) -> bool;

    /// What it says of its model, where it says anything.
    ///
    /// # Errors
    /// A stored file that cannot be read.
    fn facts(&self) -> Result<Option<ModelFacts>>;
}

/// A run folder.
#[derive(Debug)]
pub struct RunSource {
    name: String,
    view: RunView,
}

/// What of `cells.json` is needed here; how the fit went is the report's to show.
#[derive(Deserialize)]
struct CellNote {
    cell: CellKey,
    skipped: Option<String>,
}

impl RunSource {
    /// Opens a run folder; it is named by its path as given.
    ///
    /// # Errors
    /// A folder that is no run.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::new(path.display().to_string(), RunView::open(path)?))
    }

    /// An open run folder under a name.
    pub fn new(name: impl Into<String>, view: RunView) -> Self {
        Self {
            name: name.into(),
            view,
        }
    }

    /// The folder.
    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// A JSON file of the run; none where it is not there.
    fn json<T: serde::de::DeserializeOwned>(&self, file: &str) -> Result<Option<T>> {
        let file = self.view.path().join(file);
        let fault = |reason: String| AnalysisError::Json {
            file: file.clone(),
            reason,
        };
        match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| fault(error.to_string())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(error.to_string())),
        }
    }
}

impl CellSource for RunSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn records(&self) -> Result<Records> {
        Ok(self.view.records()?)
    }

    fn cells(&self) -> Result<Vec<Listed>> {
        if let Some(notes) = self.json::<Vec<CellNote>>("cells.json")? {
            return Ok(notes
                .into_iter()
                .map(|note| Listed {
                    cell: note.cell,
                    skipped: note.skipped,
                })
                .collect());
        }
        // Imported predictions come without the list.
        let mut cells = Vec::new();
        for predictions in self.view.all_predictions()? {
            cells.push(Listed {
                cell: predictions?.cell,
                skipped: None,
            });
        }
        Ok(cells)
    }

    fn predictions(&self, cell: &CellKey) -> Result<Predictions> {
        Ok(self.view.predictions(cell)?)
    }

    fn error_budget(&self) -> f64 {
        let budget = self.view.manifest().options.get("error_budget");
        budget.and_then(Value::as_f64).unwrap_or(0.0)
    }

    fn synthetic(&self) -> bool {
        self.view.manifest().synthetic
    }

    fn facts(&self) -> Result<Option<ModelFacts>> {
        Ok(self
            .json::<Value>("facts.json")?
            .as_ref()
            .and_then(ModelFacts::from_facts))
    }
}

/// Tables in memory.
#[derive(Debug, Clone, Default)]
pub struct MemorySource {
    /// Name in errors and tables.
    pub name: String,
    /// Records.
    pub records: Records,
    /// Cells.
    pub cells: BTreeMap<CellKey, Predictions>,
    /// Cells without predictions, and why.
    pub skipped: BTreeMap<CellKey, String>,
    /// Share of labelled test images that may lack an answer.
    pub error_budget: f64,
    /// Images were drawn by a program.
    pub synthetic: bool,
    /// What is known of the model.
    pub facts: Option<ModelFacts>,
}

impl MemorySource {
    /// Records and cells under a name; no failure allowed, nothing else known.
    pub fn new(name: &str, records: Records, cells: Vec<Predictions>) -> Self {
        Self {
            name: name.into(),
            records,
            cells: cells
                .into_iter()
                .map(|cell| (cell.cell.clone(), cell))
                .collect(),
            ..Self::default()
        }
    }
}

impl CellSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn records(&self) -> Result<Records> {
        Ok(self.records.clone())
    }

    fn cells(&self) -> Result<Vec<Listed>> {
        let present = self.cells.keys().map(|cell| (cell, None));
        let skipped = self.skipped.iter().map(|(cell, why)| (cell, Some(why)));
        Ok(present
            .chain(skipped)
            .map(|(cell, skipped)| Listed {
                cell: cell.clone(),
                skipped: skipped.cloned(),
            })
            .collect())
    }

    fn predictions(&self, cell: &CellKey) -> Result<Predictions> {
        self.cells.get(cell).cloned().ok_or_else(|| {
            StoreError::Io {
                action: "find",
                path: format!("{}/{cell}", self.name).into(),
                source: ErrorKind::NotFound.into(),
            }
            .into()
        })
    }

    fn error_budget(&self) -> f64 {
        self.error_budget
    }

    fn synthetic(&self) -> bool {
        self.synthetic
    }

    fn facts(&self) -> Result<Option<ModelFacts>> {
        Ok(self.facts.clone())
    }
}
