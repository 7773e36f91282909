//! Result files of the published Python code, into a run folder: nothing is guessed, nothing is passed over unsaid, and
//! nothing is written before everything has been read. It must not know the catalogue or a mapper: aliases and records
//! are given.

mod build;
mod file;
mod metadata;
mod name;
mod roster;
mod summary;
mod text;

pub(crate) use file::ERROR_TEXT;
pub(crate) use name::slug;
pub use name::{Aliases, Reading, Vocabulary, read_name};
pub use roster::Roster;
pub use summary::{Counted, ImportSummary};

use crate::error::{BadRows, ExchangeError, Result};
use build::Build;
use file::ResultFile;
use focus_store::{CellKey, DatasetIdentity, ModelIdentity, RunFolder, RunManifest, write_atomic};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use text::TextTable;

/// The rule that an id is there once.
pub(crate) const ONCE: &str = "`id` must be there once";
/// How deep folders are searched.
const DEPTH: usize = 8;

/// What to do with rows that break rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadRow {
    /// Stop, list them, write nothing.
    #[default]
    Error,
    /// Leave them out and count them. Of rows with one id, one stays if all say the same, none otherwise.
    Drop,
}

/// What a text with `prob_yes` = 0 and `prob_no` = 0 has for a score. The published code writes both as 0 when it found
/// no probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BothZero {
    /// 0, as written; counted.
    #[default]
    Keep,
    /// None; counted.
    Missing,
}

/// How to import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions<'a> {
    /// Version of the program, for the run's identity.
    pub tool_version: String,
    /// What file names are read against.
    pub vocabulary: Vocabulary,
    /// Model ids by their spellings in file names.
    pub aliases: Aliases,
    /// Bad rows.
    pub on_bad_row: OnBadRow,
    /// Scores that may be placeholders.
    pub both_zero: BothZero,
    /// What is known of the images.
    pub roster: Roster<'a>,
    /// The results are of drawn images; every report says so.
    pub synthetic: bool,
}

/// A file that was read, and its cell.
struct Source {
    name: String,
    digest: String,
    reading: Reading,
    file: ResultFile,
    remarks: Vec<String>,
}

impl Source {
    fn cell(&self) -> CellKey {
        let Reading {
            dataset,
            task,
            method,
            model,
            ..
        } = &self.reading;
        CellKey::new(dataset, task, method, model)
    }
}

/// Read all result files below `folder` and write them as a run into `out` (absent or empty, or the same import).
pub fn import_focus_csv(
    folder: &Path,
    out: &Path,
    options: &ImportOptions<'_>,
) -> Result<ImportSummary> {
    let mut summary = ImportSummary {
        schema: "focus-import".into(),
        schema_version: 1,
        ..ImportSummary::default()
    };
    let files = result_files(folder)?;
    let named = read_names(&files, options, &mut summary)?;
    if named.is_empty() {
        return Err(ExchangeError::NoFiles {
            folder: folder.into(),
        });
    }
    let mut sources = named
        .into_par_iter()
        .map(|(path, name, reading)| read_source(path, name, reading, options))
        .collect::<Result<Vec<Source>>>()?;
    sources.sort_by(|a, b| (a.cell(), &a.name).cmp(&(b.cell(), &b.name)));
    for pair in sources.windows(2) {
        if pair[0].cell() == pair[1].cell() {
            return Err(ExchangeError::SameCell {
                cell: pair[0].cell().to_string(),
                first: pair[0].name.clone(),
                second: pair[1].name.clone(),
            });
        }
    }
    let metadata = match options.roster {
        Roster::Metadata(path) => Some(metadata::read_metadata(path)?),
        _ => None,
    };
    let (known, label_tasks): (&[focus_store::Record], BTreeSet<String>) =
        match (&metadata, options.roster) {
            (Some(metadata), _) => (&metadata.records, metadata.tasks.clone()),
            (None, Roster::Records { records, tasks, .. }) => (records, tasks.clone()),
            (None, _) => (&[], BTreeSet::new()),
        };
    summary.labels = match (&metadata, options.roster) {
        (Some(_), _) if !label_tasks.is_empty() => {
            let tasks: Vec<&str> = label_tasks.iter().map(String::as_str).collect();
            format!("Corrected labels of {} are the metadata table's, all others and the published ones are `ground_truth`", tasks.join(", "))
        }
        (None, Roster::Records { .. }) => "Corrected labels are the mapper's, published labels are `ground_truth`; an image of which the data folder knows nothing has `ground_truth` for both".into(),
        _ => "Corrected and published labels are both `ground_truth`".into(),
    };
    let mut bad = BadRows::default();
    for source in &mut sources {
        bad.extend(std::mem::take(&mut source.file.bad));
    }
    let mut build = Build::new(known, label_tasks, options.on_bad_row);
    build.resolve(&sources, &mut bad)?;
    if options.on_bad_row == OnBadRow::Error && bad.total > 0 {
        return Err(ExchangeError::BadRows {
            shown: bad.shown,
            total: bad.total,
        });
    }
    build.labels(&sources)?;
    let (records, cells) = build.finish(
        &sources,
        matches!(options.roster, Roster::Nothing),
        &mut summary,
    )?;
    tell(&sources, &cells, &mut summary);
    let manifest = manifest(&sources, metadata.as_ref(), options, &summary);
    let run = RunFolder::create_or_resume(out, &manifest)?;
    run.write_records(&records)?;
    cells
        .par_iter()
        .try_for_each(|predictions| run.write_predictions(predictions))?;
    let mut text = serde_json::to_string_pretty(&summary).expect("a summary is JSON");
    text.push('\n');
    write_atomic(&run.path().join("import.json"), text.as_bytes())?;
    Ok(summary)
}

// Every `.csv` below `folder` with its name there, sorted.
fn result_files(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    fn walk(
        folder: &Path,
        below: &str,
        depth: usize,
        found: &mut Vec<(PathBuf, String)>,
    ) -> Result<()> {
        for entry in fs::read_dir(folder).map_err(ExchangeError::io("list", folder))? {
            let entry = entry.map_err(ExchangeError::io("list", folder))?;
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            let path = entry.path();
            // Hidden files are a system's (`._x.csv` of archives made on a Mac).
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if path.is_dir() {
                if depth > 0 && !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    walk(&path, &format!("{name}/"), depth - 1, found)?;
                }
            } else if path
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("csv"))
            {
                found.push((path, name));
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    walk(folder, "", DEPTH, &mut found)?;
    found.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(found)
}

fn read_names(
    files: &[(PathBuf, String)],
    options: &ImportOptions<'_>,
    summary: &mut ImportSummary,
) -> Result<Vec<(PathBuf, String, Reading)>> {
    let mut named = Vec::new();
    let mut without = Vec::new();
    for (path, name) in files {
        let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
        let last = match last.len().checked_sub(4) {
            Some(end) if last.is_char_boundary(end) => &last[..end],
            _ => last,
        };
        match read_name(last, folder, &options.vocabulary, &options.aliases) {
            Ok(reading) => named.push((path.clone(), name.clone(), reading)),
            Err(ExchangeError::FileNames { names }) => {
                without.extend(
                    names
                        .into_iter()
                        .map(|(_, readings)| (name.clone(), readings)),
                );
            }
            Err(other) => return Err(other),
        }
    }
    if options.on_bad_row == OnBadRow::Error && !without.is_empty() {
        return Err(ExchangeError::FileNames { names: without });
    }
    summary.skipped_files = without.into_iter().map(|(name, _)| name).collect();
    Ok(named)
}

fn read_source(
    path: PathBuf,
    name: String,
    reading: Reading,
    options: &ImportOptions<'_>,
) -> Result<Source> {
    let table = TextTable::read(&path, &name)?;
    let file = file::read_rows(
        &table,
        options.both_zero == BothZero::Missing,
        options.on_bad_row,
    )?;
    if file.prompted != reading.method.starts_with("prompting") {
        return Err(ExchangeError::Columns {
            expected: format!(
                "those of `{}` (`{}`)",
                reading.method,
                if file.prompted {
                    "prediction"
                } else {
                    "prediction_text"
                }
            ),
            found: format!(
                "`{}`",
                if file.prompted {
                    "prediction_text"
                } else {
                    "prediction"
                }
            ),
            file: name,
        });
    }
    Ok(Source {
        digest: table.digest,
        remarks: table.remarks,
        name,
        reading,
        file,
    })
}

fn tell(sources: &[Source], cells: &[focus_store::Predictions], summary: &mut ImportSummary) {
    summary.files = sources.len() as u64;
    summary.cells = cells.len() as u64;
    let mut models = BTreeSet::new();
    for source in sources {
        summary.both_zero += source.file.both_zero;
        for (reason, count) in &source.file.dropped {
            *summary.dropped.entry((*reason).into()).or_default() += count;
        }
        for column in &source.file.unread {
            *summary.unread_columns.entry(column.clone()).or_default() += 1;
        }
        for remark in &source.remarks {
            summary.remarks.push(format!("`{}`: {remark}", source.name));
        }
        if !source.reading.known {
            models.insert(source.reading.model.clone());
        }
    }
    summary.unknown_models = models.into_iter().collect();
    for row in cells.iter().flat_map(|cell| &cell.rows) {
        summary.rows += 1;
        summary.unknown_labels += u64::from(row.label.is_none());
        if row.outcome != focus_store::Outcome::Ok {
            let name = match &row.reason {
                Some(reason) => format!("{}:{reason}", row.outcome.as_str()),
                None => row.outcome.as_str().to_owned(),
            };
            *summary.excluded.entry(name).or_default() += 1;
        }
    }
}

fn manifest(
    sources: &[Source],
    metadata: Option<&metadata::Metadata>,
    options: &ImportOptions<'_>,
    summary: &ImportSummary,
) -> RunManifest {
    let distinct = |get: fn(&Reading) -> &String| -> BTreeSet<String> {
        sources
            .iter()
            .map(|source| get(&source.reading).clone())
            .collect()
    };
    let identities = match options.roster {
        Roster::Records { identities, .. } => identities,
        _ => &[],
    };
    let datasets = distinct(|r| &r.dataset).into_iter().map(|id| {
        let mapped = identities.iter().find(|identity| identity.id == id);
        let mut tables: BTreeMap<String, String> =
            mapped.map(|m| m.tables.clone()).unwrap_or_default();
        let own = sources.iter().filter(|source| source.reading.dataset == id);
        tables.extend(own.map(|source| (format!("result:{}", source.name), source.digest.clone())));
        tables.extend(metadata.map(|m| (format!("metadata:{}", m.name), m.digest.clone())));
        DatasetIdentity {
            mapper_digest: mapped.and_then(|m| m.mapper_digest.clone()),
            id,
            tables,
        }
    });
    let models = distinct(|r| &r.model).into_iter().map(|id| ModelIdentity {
        id,
        plugin: None,
        opened: Value::Null,
        preprocessing_key: "imported".into(),
    });
    RunManifest {
        tool_version: options.tool_version.clone(),
        models: models.collect(),
        datasets: datasets.collect(),
        tasks: distinct(|r| &r.task).into_iter().collect(),
        methods: distinct(|r| &r.method).into_iter().collect(),
        device_kind: "imported".into(),
        seeds: BTreeMap::new(),
        permissions: Vec::new(),
        synthetic: options.synthetic,
        options: BTreeMap::from([
            ("import".into(), json!("focus-csv 1")),
            ("labels".into(), json!(summary.labels)),
            (
                "on_bad_row".into(),
                json!(if options.on_bad_row == OnBadRow::Drop {
                    "drop"
                } else {
                    "error"
                }),
            ),
            (
                "both_zero".into(),
                json!(if options.both_zero == BothZero::Missing {
                    "missing"
                } else {
                    "keep"
                }),
            ),
        ]),
    }
}

#[cfg(test)]
mod tests;
