//! The run folder: where each file lies, who may write, and that a resumed run is the same run. It knows no row.
//!
//! ```text
//! run.json                     what makes this run this run
//! lock                         who is writing, if anybody
//! records.parquet              harmonised records
//! answers/<name>.log           answers so far; then
//! answers/<name>.parquet       all answers, sorted
//! predictions/<cell>.parquet   one file for each cell
//! metrics.parquet              metric values, long form
//! report.md, report.json       what people read
//! ```

use crate::{
    answer::{AnswerFile, AnswerLog, Answers},
    atomic::{
        create_private_folder, is_temporary, make_private, read_capped, sweep, sync_parent,
        write_atomic,
    },
    error::{Result, StoreError},
    generation::{GenerationFile, GenerationLayout, GenerationLog, Generations},
    limits::Limits,
    lock::RunLock,
    log::AnswerLogOptions,
    manifest::RunManifest,
    metric::Metrics,
    name::{CellKey, file_stem},
    prediction::Predictions,
    record::Records,
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};

const SCHEMA: &str = "focus.run";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    schema: String,
    schema_version: u32,
    identity: RunManifest,
}

/// A run folder open for reading. No lock is taken: every file appears whole, so a run may be read while it goes on.
#[derive(Debug, Clone)]
pub struct RunView {
    path: PathBuf,
    manifest: RunManifest,
    limits: Limits,
}

/// A run folder open for writing, by this process alone. Everything `RunView` reads, it reads too.
#[derive(Debug)]
pub struct RunFolder {
    view: RunView,
    resumed: bool,
    _lock: RunLock,
}

impl RunView {
    /// Open an existing run folder.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, Limits::default())
    }

    /// The same with other caps on reading.
    pub fn open_with(path: &Path, limits: Limits) -> Result<Self> {
        let file = path.join("run.json");
        if path.is_dir() && !file.exists() {
            return Err(StoreError::NotARun {
                path: path.into(),
                what: "it has no `run.json`".into(),
            });
        }
        let bytes = read_capped(&file, &limits)?;
        // Version before shape: another version may well have other fields.
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|e| StoreError::damaged(&file, e))?;
        let field = |name: &str| {
            value.get(name).map_or("none".to_owned(), |v| {
                v.as_str().map_or_else(|| v.to_string(), str::to_owned)
            })
        };
        if field("schema") != SCHEMA {
            return Err(StoreError::SchemaName {
                file,
                expected: SCHEMA.into(),
                found: field("schema"),
            });
        }
        if field("schema_version") != VERSION.to_string() {
            return Err(StoreError::SchemaVersion {
                file,
                expected: VERSION,
                found: field("schema_version"),
            });
        }
        let run: RunFile =
            serde_json::from_value(value).map_err(|e| StoreError::damaged(&file, e))?;
        Ok(Self {
            path: path.into(),
            manifest: run.identity,
            limits,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What makes the run this run.
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// Where the records are.
    pub fn records_path(&self) -> PathBuf {
        self.path.join("records.parquet")
    }

    /// Where the finished answers called `name` are, or will be.
    pub fn answers_path(&self, name: &str) -> PathBuf {
        self.path
            .join("answers")
            .join(format!("{}.parquet", file_stem(&[name])))
    }

    /// Where a cell's predictions are, or will be.
    pub fn predictions_path(&self, cell: &CellKey) -> PathBuf {
        self.path
            .join("predictions")
            .join(format!("{}.parquet", cell.file_stem()))
    }

    /// Where the metrics are.
    pub fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.parquet")
    }

    /// The records.
    pub fn records(&self) -> Result<Records> {
        Records::read(&self.records_path(), &self.limits)
    }

    /// Finished answers called `name`.
    pub fn answer_file(&self, name: &str) -> Result<AnswerFile> {
        AnswerFile::open(&self.answers_path(name), &self.limits)
    }

    /// Finished generations called `name`.
    pub fn generation_file(&self, name: &str, layout: &GenerationLayout) -> Result<GenerationFile> {
        GenerationFile::open(&self.answers_path(name), layout, &self.limits)
    }

    /// Files of finished answers, sorted.
    pub fn answer_files(&self) -> Result<Vec<PathBuf>> {
        list(&self.path.join("answers"))
    }

    /// Files of predictions, sorted.
    pub fn prediction_files(&self) -> Result<Vec<PathBuf>> {
        list(&self.path.join("predictions"))
    }

    /// One cell's predictions.
    pub fn predictions(&self, cell: &CellKey) -> Result<Predictions> {
        self.read_predictions(&self.predictions_path(cell))
    }

    /// Predictions of each cell, one in memory at a time, in order of file name.
    pub fn all_predictions(&self) -> Result<impl Iterator<Item = Result<Predictions>>> {
        Ok(self
            .prediction_files()?
            .into_iter()
            .map(|file| self.read_predictions(&file)))
    }

    fn read_predictions(&self, file: &Path) -> Result<Predictions> {
        let predictions = Predictions::read(file, &self.limits)?;
        let stem = predictions.cell.file_stem();
        if file.file_stem().and_then(|s| s.to_str()) != Some(stem.as_str()) {
            let rule = "a predictions file must bear the name of its cell";
            return Err(StoreError::rule(
                file,
                0,
                rule,
                format!("the cell `{}`", predictions.cell),
            ));
        }
        Ok(predictions)
    }

    /// The metrics.
    pub fn metrics(&self) -> Result<Metrics> {
        Metrics::read(&self.metrics_path(), &self.limits)
    }

    /// The report as Markdown.
    pub fn report_markdown(&self) -> Result<String> {
        self.text("report.md")
    }

    /// The report as JSON text.
    pub fn report_json(&self) -> Result<String> {
        self.text("report.json")
    }

    fn text(&self, name: &str) -> Result<String> {
        let file = self.path.join(name);
        String::from_utf8(read_capped(&file, &self.limits)?)
            .map_err(|e| StoreError::damaged(file, e))
    }
}

impl RunFolder {
    /// Start a run in `path` (absent or empty), or go on with the one that is there if it is the same run.
    ///
    /// Errors: `Locked` when another process writes into it, `IdentityDiffers` when it is another run, `NotARun` when it
    /// holds other things.
    pub fn create_or_resume(path: &Path, manifest: &RunManifest) -> Result<Self> {
        create_private_folder(path)?;
        if !path.join("run.json").exists() {
            if let Some(other) = foreign(path)? {
                return Err(StoreError::NotARun {
                    path: path.into(),
                    what: format!("it has no `run.json` but holds `{other}`"),
                });
            }
            make_private(path)?;
        }
        let lock = RunLock::acquire(&path.join("lock"), path)?;
        // Looked at again: another process may have started and ended a run here before the lock was ours.
        let resumed = path.join("run.json").exists();
        let view = if resumed {
            let view = RunView::open(path)?;
            if let Some(difference) = view.manifest.first_difference(manifest) {
                let (field, expected, found) =
                    (difference.field, difference.expected, difference.found);
                return Err(StoreError::IdentityDiffers {
                    path: path.into(),
                    field,
                    expected,
                    found,
                });
            }
            view
        } else {
            let run = RunFile {
                schema: SCHEMA.into(),
                schema_version: VERSION,
                identity: manifest.clone(),
            };
            let mut text = serde_json::to_string_pretty(&run).expect("a manifest is JSON");
            text.push('\n');
            write_atomic(&path.join("run.json"), text.as_bytes())?;
            RunView {
                path: path.into(),
                manifest: manifest.clone(),
                limits: Limits::default(),
            }
        };
        for folder in ["answers", "predictions"] {
            create_private_folder(&path.join(folder))?;
            sweep(&path.join(folder), Duration::ZERO);
        }
        sweep(path, Duration::ZERO);
        Ok(Self {
            view,
            resumed,
            _lock: lock,
        })
    }

    /// The folder was there before.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// The reading side.
    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// Write the records.
    pub fn write_records(&self, records: &Records) -> Result<()> {
        records.write(&self.records_path())
    }

    /// The answers called `name` (one model's embeddings of `dim` values): finished, or a log to go on with.
    pub fn answers(&self, name: &str, dim: usize, options: AnswerLogOptions) -> Result<Answers> {
        let finished = self.answers_path(name);
        let log = finished.with_extension("log");
        if finished.exists() {
            let file = AnswerFile::open(&finished, &self.limits)?;
            if file.dim() != dim {
                return Err(StoreError::Width {
                    file: finished,
                    expected: dim,
                    found: file.dim(),
                });
            }
            // Killed after the rename: the log has done its work.
            remove(&log)?;
            return Ok(Answers::Finished(file));
        }
        let (log, summary) = AnswerLog::open_with(&log, dim, options)?;
        Ok(Answers::Open(log, summary))
    }

    /// Turn a complete log into its Parquet file and remove it.
    pub fn finish_answers(&self, mut log: AnswerLog) -> Result<AnswerFile> {
        log.sync()?;
        let path = log.path().to_owned();
        let file = log.compact(&path.with_extension("parquet"))?;
        drop(log);
        remove(&path)?;
        Ok(file)
    }

    /// The generations called `name`: finished, or a log to go on with.
    pub fn generations(
        &self,
        name: &str,
        layout: &GenerationLayout,
        options: AnswerLogOptions,
    ) -> Result<Generations> {
        let finished = self.answers_path(name);
        let log = finished.with_extension("log");
        if finished.exists() {
            let file = GenerationFile::open(&finished, layout, &self.limits)?;
            // Killed after the rename: the log has done its work.
            remove(&log)?;
            return Ok(Generations::Finished(file));
        }
        GenerationLog::open_with(&log, layout, options).map(Generations::Open)
    }

    /// Turn a complete log into its Parquet file and remove it.
    pub fn finish_generations(&self, mut log: GenerationLog) -> Result<GenerationFile> {
        log.sync()?;
        let path = log.path().to_owned();
        let file = log.compact(&path.with_extension("parquet"))?;
        drop(log);
        remove(&path)?;
        Ok(file)
    }

    /// Write one cell's predictions.
    pub fn write_predictions(&self, predictions: &Predictions) -> Result<()> {
        predictions.write(&self.predictions_path(&predictions.cell))
    }

    /// Write the metrics.
    pub fn write_metrics(&self, metrics: &Metrics) -> Result<()> {
        metrics.write(&self.metrics_path())
    }

    /// Write the report in both forms.
    pub fn write_report(&self, markdown: &str, json: &str) -> Result<()> {
        write_atomic(&self.path.join("report.md"), markdown.as_bytes())?;
        write_atomic(&self.path.join("report.json"), json.as_bytes())
    }
}

impl Deref for RunFolder {
    type Target = RunView;

    fn deref(&self) -> &RunView {
        &self.view
    }
}

// The first thing in a folder that a run about to start has not put there.
fn foreign(path: &Path) -> Result<Option<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(StoreError::io("list", path))? {
        let name = entry.map_err(StoreError::io("list", path))?.file_name();
        if name != "lock" && !is_temporary(&name) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    // Another process may have become the owner since the caller looked; the lock will tell.
    Ok(names
        .iter()
        .all(|n| n != "run.json")
        .then(|| names.into_iter().next())
        .flatten())
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(StoreError::io("list", folder))? {
        let path = entry.map_err(StoreError::io("list", folder))?.path();
        if path.extension().is_some_and(|e| e == "parquet") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(StoreError::io("remove", path)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::sample;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_run_resumes_as_itself_only() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("deep/run");
        let run = RunFolder::create_or_resume(&path, &sample()).expect("starts");
        assert!(!run.resumed());
        assert!(matches!(
            RunFolder::create_or_resume(&path, &sample()),
            Err(StoreError::Locked { .. })
        ));
        drop(run);
        assert!(
            RunFolder::create_or_resume(&path, &sample())
                .expect("resumes")
                .resumed()
        );
        let mut other = sample();
        other.seeds.insert("bootstrap".into(), 14);
        let error = RunFolder::create_or_resume(&path, &other).expect_err("another run");
        assert!(
            error
                .to_string()
                .ends_with("`seeds.bootstrap` differs: expected 13, found 14"),
            "{error}"
        );
        assert_eq!(RunView::open(&path).expect("reads").manifest(), &sample());
        for (name, mode) in [
            ("", 0o700),
            ("answers", 0o700),
            ("predictions", 0o700),
            ("run.json", 0o600),
            ("lock", 0o600),
        ] {
            let found = fs::metadata(path.join(name))
                .expect("there")
                .permissions()
                .mode()
                & 0o777;
            assert_eq!(found, mode, "{name}");
        }
    }

    #[test]
    fn a_folder_with_other_things_in_it_is_left_alone() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join("thesis.tex"), "x").expect("writes");
        let error = RunFolder::create_or_resume(folder.path(), &sample()).expect_err("not ours");
        assert!(
            error.to_string().contains("`thesis.tex`") && error.hint().is_some(),
            "{error}"
        );
        assert_eq!(
            fs::read_dir(folder.path()).expect("lists").count(),
            1,
            "nothing added"
        );
    }

    #[test]
    fn run_json_of_another_version_or_broken_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("run");
        drop(RunFolder::create_or_resume(&path, &sample()).expect("starts"));
        let file = path.join("run.json");
        let text = fs::read_to_string(&file).expect("reads");
        let spoil = |from: &str, to: &str| {
            fs::write(&file, text.replacen(from, to, 1)).expect("writes");
            RunView::open(&path).expect_err("spoilt")
        };
        assert!(matches!(
            spoil("\"schema_version\": 1", "\"schema_version\": 2"),
            StoreError::SchemaVersion { expected: 1, .. }
        ));
        assert!(matches!(
            spoil("focus.run", "focus.fun"),
            StoreError::SchemaName { .. }
        ));
        assert!(matches!(
            spoil("\"tasks\"", "\"tusks\""),
            StoreError::Damaged { .. }
        ));
        assert!(matches!(spoil("{", ""), StoreError::Damaged { .. }));
        assert!(matches!(
            RunView::open(folder.path()),
            Err(StoreError::NotARun { .. })
        ));
    }

    #[test]
    fn what_killed_processes_left_is_swept() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join(".run.json.99.0.tmp"), "{").expect("writes");
        let run = RunFolder::create_or_resume(folder.path(), &sample()).expect("starts");
        assert!(!folder.path().join(".run.json.99.0.tmp").exists());
        fs::write(folder.path().join("predictions/.x.parquet.99.0.tmp"), "{").expect("writes");
        drop(run);
        let run = RunFolder::create_or_resume(folder.path(), &sample()).expect("resumes");
        assert!(run.prediction_files().expect("lists").is_empty());
        assert_eq!(
            fs::read_dir(folder.path().join("predictions"))
                .expect("lists")
                .count(),
            0
        );
    }
}
