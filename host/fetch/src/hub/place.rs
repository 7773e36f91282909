//! Where a repository lies in the cache, and putting links and references there whole.

use crate::error::{FetchError, Result, quoted};
use std::{
    io,
    path::{Path, PathBuf},
};

/// A commit is short.
const LONGEST_REFERENCE: u64 = 1000;

/// `models--ORG--NAME` of a cache.
pub(super) struct Repository(PathBuf);

impl Repository {
    pub(super) fn new(cache: &Path, name: &str) -> Result<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let plain =
            |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(allowed);
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() > 2 || !parts.iter().all(|part| plain(part)) {
            return Err(FetchError::RepositoryName { name: quoted(name) });
        }
        Ok(Self(cache.join(format!("models--{}", parts.join("--")))))
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.0.join("blobs")
    }

    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.0.join("snapshots").join(commit)
    }

    /// The commit that a revision was when it was last fetched; a revision without a reference is a commit itself.
    pub(super) fn commit(&self, revision: &str) -> Result<String> {
        let path = self.0.join("refs").join(revision);
        let read = || {
            let file = std::fs::File::open(&path)?;
            io::read_to_string(io::Read::take(file, LONGEST_REFERENCE))
        };
        match read() {
            Ok(text) if super::is_hex(text.trim(), 40) => Ok(text.trim().to_owned()),
            Ok(_) => Err(FetchError::io("read", path)(
                io::ErrorKind::InvalidData.into(),
            )),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(revision.to_owned()),
            Err(e) => Err(FetchError::io("read", path)(e)),
        }
    }

    /// The snapshot's name for a blob.
    pub(super) fn link(&self, commit: &str, name: &str, blob: &str) -> Result<()> {
        let path = self.snapshot(commit).join(name);
        let up = "../".repeat(2 + name.matches('/').count());
        let target = format!("{up}blobs/{blob}");
        if std::fs::read_link(&path).is_ok_and(|there| there == Path::new(&target)) {
            return Ok(());
        }
        put(&path, |part| std::os::unix::fs::symlink(&target, part))
    }

    /// What a revision is now.
    pub(super) fn refer(&self, revision: &str, commit: &str) -> Result<()> {
        let path = self.0.join("refs").join(revision);
        put(&path, |part| std::fs::write(part, commit))
    }
}

/// Make something beside `path` and give it that name.
fn put(path: &Path, make: impl Fn(&Path) -> io::Result<()>) -> Result<()> {
    let parent = path.parent().expect("it lies in the cache");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = parent.join(format!(".{name}.{}.part", std::process::id()));
    std::fs::create_dir_all(parent)
        .and_then(|()| match std::fs::remove_file(&part) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => make(&part),
        })
        .and_then(|()| std::fs::rename(&part, path))
        .map_err(FetchError::io("write", path))
}
