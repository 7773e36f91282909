//! Which file of a folder is the checkpoint, and shards put together. Knows formats only by their first bytes.

use super::{Checkpoint, Layout, MappedFile, RawTensor, pickle, safetensor};
use crate::LoadError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names that checkpoints of the Hugging Face hub have, best first.
const USUAL: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];
const ENDINGS: [&str; 4] = ["safetensors", "pth", "pt", "bin"];
/// Largest index of shards, in bytes.
const MAX_INDEX: usize = 64 << 20;

pub(super) fn open(
    folder: &Path,
    files: &[&str],
    layout: &Layout,
) -> Result<Checkpoint, LoadError> {
    if let Some(name) = files
        .iter()
        .chain(&USUAL)
        .find(|name| folder.join(name).is_file())
    {
        return open_file(&folder.join(name), layout);
    }
    let entries = std::fs::read_dir(folder).map_err(|error| LoadError::Read {
        path: folder.to_owned(),
        reason: error.to_string(),
    })?;
    let mut found: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|end| ENDINGS.iter().any(|known| end == *known))
        })
        .collect();
    found.sort();
    match found.as_slice() {
        [] => Err(LoadError::NoCheckpoint {
            folder: folder.to_owned(),
            wanted: files
                .iter()
                .chain(&USUAL)
                .map(|name| format!("`{name}`"))
                .chain(["a `.pth` or `.pt` file".to_owned()])
                .collect::<Vec<_>>()
                .join(", "),
        }),
        [one] => open_file(&folder.join(one), layout),
        _ => Err(LoadError::Ambiguous {
            folder: folder.to_owned(),
            found,
        }),
    }
}

pub(super) fn open_file(path: &Path, layout: &Layout) -> Result<Checkpoint, LoadError> {
    let file = MappedFile::open(path)?;
    if path.extension().is_some_and(|end| end == "json") {
        return sharded(path, &file, layout);
    }
    Checkpoint::from_tensors(read(&file, layout)?, layout)
}

/// By content: `.bin` files are pickles or, now and then, safetensors.
fn read(file: &MappedFile, layout: &Layout) -> Result<Vec<(String, RawTensor)>, LoadError> {
    if file.bytes().get(8) == Some(&b'{') {
        safetensor::read(file)
    } else {
        pickle::read(file, layout)
    }
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// `model.safetensors.index.json`: every tensor it lists must be in the shard it names, and no shard may hold others.
fn sharded(path: &Path, file: &MappedFile, layout: &Layout) -> Result<Checkpoint, LoadError> {
    if file.bytes().len() > MAX_INDEX {
        return Err(file.fault(format!("an index of more than {MAX_INDEX} bytes")));
    }
    let index: Index = serde_json::from_slice(file.bytes())
        .map_err(|error| file.fault(format!("the index cannot be read: {error}")))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let shards: BTreeSet<&String> = index.weight_map.values().collect();
    let mut all = Vec::new();
    for shard in shards {
        // A shard lies beside its index: a path would reach out of the verified folder.
        if Path::new(shard).file_name() != Some(shard.as_ref()) {
            return Err(file.fault(format!("shard `{shard}` is not a plain file name")));
        }
        let mapped = MappedFile::open(&folder.join(shard))?;
        for (name, tensor) in read(&mapped, layout)? {
            if index.weight_map.get(&name) != Some(shard) {
                return Err(mapped.fault(format!("tensor `{name}` is not listed for this shard")));
            }
            all.push((name, tensor));
        }
    }
    if all.len() < index.weight_map.len() {
        let present: BTreeSet<&String> = all.iter().map(|(name, _)| name).collect();
        let missing = index
            .weight_map
            .keys()
            .filter(|name| !present.contains(name))
            .cloned()
            .collect();
        return Err(LoadError::Mismatch {
            missing,
            unexpected: Vec::new(),
            shapes: Vec::new(),
            wanted: index.weight_map.len(),
        });
    }
    Checkpoint::from_tensors(all, layout)
}
