//! A file mapped into memory, read only. Knows no formats.

use crate::LoadError;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a file, shared by the tensors that point into it.
#[derive(Clone)]
pub struct MappedFile {
    name: Arc<str>,
    map: Arc<memmap2::Mmap>,
}

impl std::fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedFile")
            .field("name", &self.name)
            .field("len", &self.map.len())
            .finish()
    }
}

impl MappedFile {
    /// Map the file at `path`.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let read = |error: std::io::Error| LoadError::Read {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let file = File::open(path).map_err(read)?;
        if !file.metadata().map_err(read)?.is_file() {
            return Err(LoadError::Read {
                path: path.to_owned(),
                reason: "it is not a file".into(),
            });
        }
        #[expect(unsafe_code, reason = "no safe way maps a file")]
        // SAFETY: the mapping is private and only read, as bytes of which every pattern is valid. What is left is another process
        // that shortens or rewrites the file meanwhile: the host hands over a folder that it verified and that nobody writes to, and
        // should the file be cut nonetheless, the fault ends this worker process, which the host reports and replaces.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(read)?;
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self {
            name: name.into(),
            map: Arc::new(map),
        })
    }

    /// The file's name without its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Some bytes; `None` outside the file.
    pub fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        self.map.get(range)
    }

    /// An error about this file.
    pub(crate) fn fault(&self, reason: impl Into<String>) -> LoadError {
        LoadError::Format {
            file: self.name.to_string(),
            reason: reason.into(),
        }
    }
}
