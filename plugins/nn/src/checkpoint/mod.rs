//! A checkpoint as published: files opened, tensors found and named. Must not know layers or devices.
//!
//! safetensors (one file or shards with an index) and PyTorch pickles (`.pth`, `.pt`, `.bin`; the zip form and the one before it).
//! Files stay memory-mapped; values are copied only when an architecture asks for a tensor by name and shape.

mod file;
mod folder;
mod pickle;
mod rename;
mod safetensor;
mod tensor;

pub use file::MappedFile;
pub use rename::Layout;
pub use tensor::{Kind, RawTensor};

use crate::LoadError;
use std::collections::BTreeMap;
use std::path::Path;

/// Named tensors of one or more files.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    tensors: BTreeMap<String, RawTensor>,
}

impl Checkpoint {
    /// Open what a model folder holds. `files` are the names to look for, best first; when it is empty or none is there, the usual
    /// names are tried, then a single file of a known kind.
    pub fn open_folder(folder: &Path, files: &[&str], layout: &Layout) -> Result<Self, LoadError> {
        folder::open(folder, files, layout)
    }

    /// Open one file: safetensors, an index of shards, or a pickle, by its content.
    pub fn open_file(path: &Path, layout: &Layout) -> Result<Self, LoadError> {
        folder::open_file(path, layout)
    }

    /// Name the tensors as `layout` says.
    pub(crate) fn from_tensors(
        tensors: impl IntoIterator<Item = (String, RawTensor)>,
        layout: &Layout,
    ) -> Result<Self, LoadError> {
        let mut named: BTreeMap<String, RawTensor> = BTreeMap::new();
        let mut origin: BTreeMap<String, String> = BTreeMap::new();
        for (full, tensor) in tensors {
            let name = layout.strip(&full);
            if let Some(first) = origin.insert(name.clone(), full.clone()) {
                return Err(LoadError::SameName {
                    name,
                    first,
                    second: full,
                });
            }
            named.insert(name, tensor);
        }
        Ok(Self { tensors: named })
    }

    /// The tensor of that name.
    pub fn get(&self, name: &str) -> Option<&RawTensor> {
        self.tensors.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Take a tensor out; for architectures that rename.
    pub fn remove(&mut self, name: &str) -> Option<RawTensor> {
        self.tensors.remove(name)
    }

    /// Put a tensor in under a name, in place of one that has it.
    pub fn insert(&mut self, name: impl Into<String>, tensor: RawTensor) {
        self.tensors.insert(name.into(), tensor);
    }
}
