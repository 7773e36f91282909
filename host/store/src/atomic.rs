//! Whole files or none: temporary file, fsync, rename, fsync of the folder. Files are for their owner's eyes only.

use crate::{
    error::{Result, StoreError},
    limits::Limits,
};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

const TEMPORARY: &str = ".tmp";
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file that appears under its name when committed, whole and on disk, and never otherwise.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    // `None` once committed: `Drop` then leaves the name alone.
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Start a file that will replace `target`. Mode 0600.
    pub fn create(target: &Path) -> Result<Self> {
        let name = target
            .file_name()
            .and_then(|n| n.to_str())
            .ok_or_else(|| StoreError::Io {
                action: "create",
                path: target.into(),
                source: io::ErrorKind::InvalidFilename.into(),
            })?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = target.with_file_name(format!(
            ".{name}.{}.{number}{TEMPORARY}",
            std::process::id()
        ));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(StoreError::io("create", &temporary))?;
        Ok(Self {
            target: target.into(),
            temporary,
            file: Some(BufWriter::with_capacity(1 << 18, file)),
        })
    }

    /// Put the file under its name; it is on disk when this returns.
    pub fn commit(mut self) -> Result<()> {
        let writer = self.file.take().expect("a file is committed once");
        let done = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .map_err(StoreError::io("write", &self.temporary))
            .and_then(|()| {
                fs::rename(&self.temporary, &self.target)
                    .map_err(StoreError::io("rename to", &self.target))
            });
        if done.is_err() {
            let _ = fs::remove_file(&self.temporary);
        }
        done?;
        sync_parent(&self.target)
    }

    fn writer(&mut self) -> &mut BufWriter<File> {
        self.file.as_mut().expect("a committed file takes no more")
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Replace `target` by `bytes`, whole or not at all.
pub fn write_atomic(target: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(bytes)
        .map_err(StoreError::io("write", target))?;
    file.commit()
}

/// Flush the folder that holds `path`, so that a rename or removal survives a power cut.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(StoreError::io("flush", folder))
}

/// Make a folder for its owner alone (0700), and its parents as the system likes. One that exists is left as it is.
pub(crate) fn create_private_folder(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(StoreError::io("create", parent))?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_parent(path),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) => Err(StoreError::io("create", path)(e)),
    }
}

/// Close a folder to everyone but its owner.
pub(crate) fn make_private(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .map_err(StoreError::io("set permissions of", path))
}

/// Remove what killed processes left: temporary files untouched for `age`. Failures are left for the next time.
pub(crate) fn sweep(folder: &Path, age: Duration) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let old = || {
            let touched = entry.metadata().ok()?.modified().ok()?;
            Some(
                SystemTime::now()
                    .duration_since(touched)
                    .unwrap_or_default()
                    >= age,
            )
        };
        if is_temporary(&entry.file_name()) && old().unwrap_or(false) {
            tracing::debug!(path = %entry.path().display(), "removing what a killed process left");
            let _ = fs::remove_file(entry.path());
        }
    }
}

pub(crate) fn is_temporary(name: &std::ffi::OsStr) -> bool {
    name.to_str()
        .is_some_and(|n| n.starts_with('.') && n.ends_with(TEMPORARY))
}

/// A whole small file, capped by `Limits::text_bytes`.
pub(crate) fn read_capped(path: &Path, limits: &Limits) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(StoreError::io("open", path))?;
    let mut bytes = Vec::new();
    // The size is not trusted: it may grow, or be that of a pipe.
    file.take(limits.text_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(StoreError::io("read", path))?;
    if bytes.len() as u64 > limits.text_bytes {
        return Err(StoreError::TooLarge {
            file: path.into(),
            what: "bytes",
            limit: limits.text_bytes,
            found: bytes.len() as u64,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("folder");
        let target = folder.path().join("a.txt");
        write_atomic(&target, b"one").expect("writes");
        let mut half = AtomicFile::create(&target).expect("starts");
        half.write_all(b"two").expect("buffers");
        drop(half);
        assert_eq!(fs::read(&target).expect("reads"), b"one");
        assert_eq!(
            fs::read_dir(folder.path()).expect("lists").count(),
            1,
            "nothing left behind"
        );
        assert_eq!(
            fs::metadata(&target).expect("stat").permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn sweep_takes_only_old_temporaries() {
        let folder = tempfile::tempdir().expect("folder");
        let stale = folder.path().join(".a.txt.1.0.tmp");
        fs::write(&stale, b"x").expect("writes");
        fs::write(folder.path().join("b.tmp"), b"x").expect("writes");
        sweep(folder.path(), Duration::from_hours(1));
        assert!(stale.exists());
        sweep(folder.path(), Duration::ZERO);
        assert!(!stale.exists());
        assert!(folder.path().join("b.tmp").exists(), "not one of ours");
    }

    #[test]
    fn reading_stops_at_the_cap() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a");
        fs::write(&path, vec![0; 11]).expect("writes");
        let limits = Limits {
            text_bytes: 10,
            ..Limits::default()
        };
        assert!(matches!(
            read_capped(&path, &limits),
            Err(StoreError::TooLarge {
                limit: 10,
                found: 11,
                ..
            })
        ));
    }
}
