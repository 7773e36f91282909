//! From a dataset's name and folder to records with labels, files, and what a report says of them. Reads no pixels.

use super::splits::split;
use super::{Advised, DatasetFacts, EvalError};
use crate::config::{DEFAULT_DATASET, EvalConfig, Folders};
use focus_curation::splits::SplitPlan;
use focus_datasets::{Job, Limits, Mapped, MapperSource, Track, map_stream};
use focus_store::{DatasetIdentity, Record, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A mapped dataset.
#[derive(Debug)]
pub struct Dataset {
    /// Its records, in the mapper's order; the index is the sample.
    pub records: Records,
    /// Each record's file on this machine. Never shown to a model.
    pub files: Vec<PathBuf>,
    /// What makes it this dataset.
    pub identity: DatasetIdentity,
    /// What a report says of it.
    pub facts: DatasetFacts,
    /// Tasks it offers labels for.
    pub tasks: Vec<String>,
    /// Options of the mapper in force, defaults included.
    pub options: Vec<(String, String)>,
    /// Drawn by a program.
    pub synthetic: bool,
    /// How the data are had.
    pub access: focus_datasets::Access,
    /// Where the data are had.
    pub route: String,
    /// How records came into their splits.
    pub split: Option<SplitPlan>,
    /// The same file as the published code reads it, where the split is a published file.
    pub published: Option<SplitPlan>,
}

/// The folder to read: the user's, or for the embedded default one that is drawn on first use.
fn data_folder(
    dataset: &str,
    data: Option<&Path>,
    folders: &Folders,
) -> Result<PathBuf, EvalError> {
    match data {
        Some(folder) => Ok(folder.to_path_buf()),
        None if dataset == DEFAULT_DATASET => {
            let config = focus_synth::Config::default();
            let folder = folders
                .synthetic()
                .join(format!("default-v{}", focus_synth::GENERATOR_VERSION));
            Ok(focus_synth::write_dataset(&folder, &config)?.dir)
        }
        None => Err(EvalError::Request(Advised::new(
            format!("Dataset `{dataset}` needs its folder"),
            "Give the folder as downloaded: --data DIR. Only `synthetic` comes with the program",
        ))),
    }
}

/// Map the dataset of a configuration.
pub fn open(config: &EvalConfig) -> Result<Dataset, EvalError> {
    let mapped = map(
        &config.dataset,
        config.data.as_deref(),
        &config.dataset_options,
        &config.folders,
    )?;
    split(convert(mapped), &config.split)
}

/// A dataset as its mapper gives it, its source's split untouched.
pub fn mapped_dataset(
    dataset: &str,
    data: Option<&Path>,
    options: &[(String, String)],
    folders: &Folders,
) -> Result<Dataset, EvalError> {
    Ok(convert(map(dataset, data, options, folders)?))
}

/// A dataset's records and identity, with its mapper's default options.
pub fn records_of(
    dataset: &str,
    data: &Path,
    folders: &Folders,
) -> Result<(Records, DatasetIdentity), EvalError> {
    let mapped = convert(map(dataset, Some(data), &[], folders)?);
    Ok((mapped.records, mapped.identity))
}

/// Run the mapper over the label files of a dataset: its folder, or the embedded default's.
pub fn map(
    dataset: &str,
    data: Option<&Path>,
    options: &[(String, String)],
    folders: &Folders,
) -> Result<Mapped, EvalError> {
    // The name first: a mapper that does not exist needs no folder.
    let mapper: MapperSource = dataset.parse()?;
    let data = data_folder(dataset, data, folders)?;
    let (limits, cache) = (Limits::default(), folders.mappers());
    let job = Job {
        mapper: &mapper,
        data: &data,
        options,
        limits: &limits,
        cache: Some(&cache),
    };
    let mut records = Vec::new();
    let summary = map_stream(&job, &mut |batch| {
        records.extend(batch);
        Ok(())
    })?;
    let mut mapped = Mapped { summary, records };
    super::ratio::measure(&mut mapped);
    Ok(mapped)
}

fn convert(mapped: Mapped) -> Dataset {
    let descriptor = &mapped.summary.descriptor;
    let tasks: Vec<String> = descriptor
        .tasks
        .iter()
        .map(|task| task.id.clone())
        .collect();
    let mut dropped = BTreeMap::new();
    for row in &mapped.summary.dropped {
        *dropped.entry(row.reason.clone()).or_insert(0) += 1;
    }
    let facts = DatasetFacts {
        id: descriptor.id.clone(),
        title: descriptor.title.clone(),
        licence: descriptor.licence.clone(),
        citation: descriptor.citation.clone(),
        mapper_version: descriptor.version.clone(),
        mapper_digest: format!("blake3:{}", mapped.summary.mapper_digest),
        rows: mapped
            .summary
            .tables
            .iter()
            .filter(|table| table.join.is_none())
            .map(|table| table.rows)
            .sum(),
        dropped,
        missing_images: mapped.summary.missing.len() as u64,
        unusable_parts: mapped.summary.unusable.len() as u64,
        unlisted_images: mapped.summary.unmatched.len() as u64,
    };
    let identity = DatasetIdentity {
        id: descriptor.id.clone(),
        mapper_digest: Some(facts.mapper_digest.clone()),
        tables: mapped
            .summary
            .tables
            .iter()
            .map(|t| (t.id.clone(), format!("blake3:{}", t.digest)))
            .collect(),
    };
    let files = mapped
        .records
        .iter()
        .map(|record| mapped.summary.file(&record.sample.path))
        .collect();
    let rows = mapped
        .records
        .iter()
        .map(|record| store_record(record, &tasks))
        .collect();
    let records = Records {
        tasks: tasks.iter().cloned().collect::<BTreeSet<_>>(),
        rows,
    };
    Dataset {
        options: mapped.summary.options.clone(),
        synthetic: descriptor.synthetic,
        access: descriptor.access,
        route: descriptor.route.clone(),
        split: None,
        published: None,
        records,
        files,
        identity,
        facts,
        tasks,
    }
}

fn store_record(record: &focus_datasets::Record, tasks: &[String]) -> Record {
    let labels = |track| -> BTreeMap<String, bool> {
        tasks
            .iter()
            .filter_map(|task| Some((task.clone(), record.label(task, track).known()?)))
            .collect()
    };
    let split = record.sample.split.map(|split| split.as_str().to_owned());
    // Everything else that the mapper said, so that a stored record loses nothing.
    let extra = serde_json::json!({
        "table": record.table,
        "line": record.line,
        "view": record.view,
        "edema_level": record.edema,
        "age_at_least": record.age.map(|age| age.at_least),
        "vcdr": record.vcdr,
        "camera": record.camera,
        "findings": record.findings,
        "landmarks": record.landmarks,
        "boxes": record.boxes,
        "masks": record.masks,
        "contours": record.contours,
    });
    Record {
        dataset: record.sample.dataset.clone(),
        id: record.sample.id(),
        path: Some(record.sample.path.clone()),
        content_hash: None,
        source_split: split.clone(),
        split,
        patient: record.patient.clone(),
        eye: record.eye.map(|eye| eye.as_str().to_owned()),
        grade: record.grade.map(i32::from),
        edema: record.edema.map(|level| level > 0),
        age: record.age.map(|age| age.years),
        sex: record.sex.map(|sex| sex.as_str().to_owned()),
        quality: record.quality.map(|quality| quality.as_str().to_owned()),
        width: None,
        height: None,
        extra: Some(without_nulls(extra).to_string()),
        labels: labels(Track::Corrected),
        published_labels: labels(Track::AsPublished),
    }
}

fn without_nulls(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(map) => map
            .into_iter()
            .filter(|(_, v)| !v.is_null() && !v.as_array().is_some_and(Vec::is_empty))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
pub(super) mod tests {
    //! Datasets without a mapper, for tests of what is built on them.

    use super::*;
    use focus_datasets::Access;

    /// A dataset of these records, drawn and open.
    pub(crate) fn drawn(records: Records, files: Vec<PathBuf>) -> Dataset {
        Dataset {
            tasks: records.tasks.iter().cloned().collect(),
            records,
            files,
            identity: DatasetIdentity {
                id: "drawn".into(),
                mapper_digest: None,
                tables: BTreeMap::new(),
            },
            facts: DatasetFacts {
                id: "drawn".into(),
                title: "Drawn".into(),
                licence: "none".into(),
                citation: "none".into(),
                mapper_version: "0".into(),
                mapper_digest: "blake3:0".into(),
                rows: 0,
                dropped: BTreeMap::new(),
                missing_images: 0,
                unusable_parts: 0,
                unlisted_images: 0,
            },
            options: Vec::new(),
            synthetic: true,
            access: Access::Open,
            route: String::new(),
            split: None,
            published: None,
        }
    }

    /// One without records, had in this way.
    pub(crate) fn of_access(access: Access) -> Dataset {
        let records = Records {
            tasks: BTreeSet::new(),
            rows: Vec::new(),
        };
        Dataset {
            access,
            ..drawn(records, Vec::new())
        }
    }
}
