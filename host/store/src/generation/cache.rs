//! Generations by content, shared by all runs: `<key>/<blake3 of its images>.parquet`, written once and never changed. A cache:
//! whatever is damaged is dropped with a warning and asked anew. It knows no run and no image.
//!
//! A segment is a generations table whose `id` is the image's content hash. Rows are some kilobytes, so all are read on opening.

use super::{
    file::GenerationFile,
    row::{GenerationLayout, GenerationRow},
};
use crate::{
    atomic::{create_private_folder, sweep, write_atomic},
    error::{Result, StoreError},
    hash::ContentHash,
    key::ModelKey,
    limits::Limits,
};
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The generations of one model, adapter and question, by content hash of the image. Several processes may use one folder.
#[derive(Debug)]
pub struct GenerationCache {
    folder: PathBuf,
    layout: GenerationLayout,
    groups: HashMap<ContentHash, Vec<GenerationRow>>,
}

impl GenerationCache {
    /// Open the cache of `key` below `dir`, making its folder (mode 0700). The key's parts, where known, are kept in `key.json` for
    /// people to read.
    pub fn open(dir: &Path, key: &ModelKey, layout: &GenerationLayout) -> Result<Self> {
        layout.check(dir)?;
        let folder = dir.join(key.to_string());
        create_private_folder(dir)?;
        create_private_folder(&folder)?;
        // Others may be writing: only what has been left for a day is surely nobody's.
        sweep(&folder, Duration::from_hours(24));
        let note = folder.join("key.json");
        if let Some(json) = key.json().filter(|_| !note.exists()) {
            write_atomic(&note, json.as_bytes())?;
        }
        let mut cache = Self {
            folder,
            layout: layout.clone(),
            groups: HashMap::new(),
        };
        cache.read()?;
        Ok(cache)
    }

    fn read(&mut self) -> Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(StoreError::io("list", &self.folder))? {
            let path = entry.map_err(StoreError::io("list", &self.folder))?.path();
            files.extend(
                path.extension()
                    .is_some_and(|e| e == "parquet")
                    .then_some(path),
            );
        }
        files.sort();
        for path in files {
            match self.segment(&path) {
                Ok(groups) => self.groups.extend(groups),
                // Another version's segment is somebody else's and none of our business.
                Err(StoreError::SchemaVersion { .. }) => {}
                Err(error) if error.is_damage() => {
                    tracing::warn!(%error, "dropping a damaged segment of the generation cache; its images are asked about anew");
                    let _ = fs::remove_file(&path);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn segment(&self, path: &Path) -> Result<Vec<(ContentHash, Vec<GenerationRow>)>> {
        let limits = Limits {
            file_bytes: Limits::default().segment_bytes,
            ..Limits::default()
        };
        let file = GenerationFile::open(path, &self.layout, &limits)?;
        let mut groups: BTreeMap<u32, Vec<GenerationRow>> = BTreeMap::new();
        for batch in file.batches()? {
            for row in batch? {
                groups.entry(row.sample).or_default().push(row);
            }
        }
        let whole = |rows: Vec<GenerationRow>| {
            let hash = rows[0]
                .content_hash
                .filter(|_| rows.len() == self.layout.prompts.len());
            hash.map(|hash| (hash, rows))
                .ok_or_else(|| StoreError::damaged(path, "a group is not whole"))
        };
        groups.into_values().map(whole).collect()
    }

    /// What is known of an image: a row for each prompt, in the layout's order. `sample`, `id` and a note on the file's name are the
    /// caller's to fill in.
    pub fn get(&self, hash: ContentHash) -> Option<&[GenerationRow]> {
        self.groups.get(&hash).map(Vec::as_slice)
    }

    /// Add whole groups without an error. Images that are there already are left out. Gives the number added; they are on disk, whole,
    /// when this returns.
    pub fn insert(&mut self, groups: &[(ContentHash, Vec<GenerationRow>)]) -> Result<usize> {
        let mut fresh: BTreeMap<ContentHash, Vec<GenerationRow>> = BTreeMap::new();
        for (hash, rows) in groups {
            if !self.groups.contains_key(hash) {
                fresh.entry(*hash).or_insert_with(|| rows.clone());
            }
        }
        let mut names = blake3::Hasher::new();
        let mut segment = Vec::new();
        for (sample, (hash, rows)) in fresh.iter_mut().enumerate() {
            names.update(&hash.0);
            for row in rows.iter_mut() {
                row.sample = sample as u32;
                row.id = hash.to_string();
                row.content_hash = Some(*hash);
                let checked = if row.outcome.is_error() {
                    Err((
                        "a cached row must not be an error",
                        row.outcome.as_str().into(),
                    ))
                } else {
                    self.layout.check_row(row)
                };
                checked
                    .map_err(|(rule, found)| StoreError::rule(&self.folder, sample, rule, found))?;
            }
            segment.extend(rows.iter().cloned());
        }
        if segment.is_empty() {
            return Ok(0);
        }
        let name = names.finalize().to_hex();
        GenerationFile::write(
            &self.folder.join(format!("{name}.parquet")),
            &self.layout,
            &segment,
        )?;
        let added = fresh.len();
        self.groups.extend(fresh);
        Ok(added)
    }
}
