//! A folder that appears whole or not at all: written under a temporary name beside its place, flushed, renamed. It must
//! not know what is in it.

use crate::error::{ExchangeError, Result};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

pub(super) struct NewFolder {
    target: PathBuf,
    temporary: PathBuf,
    committed: bool,
}

impl NewFolder {
    /// A folder that will be `target`, which must not exist or be empty.
    pub fn create(target: &Path) -> Result<Self> {
        let taken = match fs::read_dir(target) {
            Ok(mut entries) => entries.next().is_some(),
            Err(_) => target.symlink_metadata().is_ok(),
        };
        let name = target
            .file_name()
            .and_then(|n| n.to_str())
            .filter(|_| !taken);
        let Some(name) = name else {
            return Err(ExchangeError::OutputExists {
                path: target.into(),
            });
        };
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(ExchangeError::io("create", parent))?;
        }
        let temporary = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        // Left by a killed process of the same number.
        let _ = fs::remove_dir_all(&temporary);
        private_folder(&temporary)?;
        Ok(Self {
            target: target.into(),
            temporary,
            committed: false,
        })
    }

    /// Write the file `name` (`/` between folders) by `fill`.
    pub fn file(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        let path = self.place(name)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(ExchangeError::io("create", &path))?;
        let mut writer = BufWriter::with_capacity(1 << 16, file);
        fill(&mut writer)
            .and_then(|()| {
                writer
                    .into_inner()
                    .map_err(std::io::IntoInnerError::into_error)
            })
            .and_then(|file| file.sync_all())
            .map_err(ExchangeError::io("write", &path))
    }

    /// Copy the file `from` to `name`.
    pub fn copy(&self, from: &Path, name: &str) -> Result<()> {
        let mut source = File::open(from).map_err(ExchangeError::io("open", from))?;
        self.file(name, |sink| std::io::copy(&mut source, sink).map(drop))
    }

    fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.temporary.join(name);
        if let Some(parent) = path.parent().filter(|p| !p.exists()) {
            private_folder(parent)?;
        }
        Ok(path)
    }

    /// Put the folder in its place.
    pub fn commit(mut self) -> Result<()> {
        fs::rename(&self.temporary, &self.target)
            .map_err(ExchangeError::io("rename to", &self.target))?;
        self.committed = true;
        let parent = match self.target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        File::open(parent)
            .and_then(|f| f.sync_all())
            .map_err(ExchangeError::io("flush", parent))
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

fn private_folder(path: &Path) -> Result<()> {
    DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(path)
        .map_err(ExchangeError::io("create", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_appears_whole_or_not_at_all() {
        let parent = tempfile::tempdir().expect("folder");
        let target = parent.path().join("a/out");
        let half = NewFolder::create(&target).expect("starts");
        half.file("x/y.csv", |sink| sink.write_all(b"1"))
            .expect("writes");
        drop(half);
        assert_eq!(
            fs::read_dir(parent.path().join("a"))
                .expect("lists")
                .count(),
            0
        );
        let whole = NewFolder::create(&target).expect("starts");
        whole
            .file("x/y.csv", |sink| sink.write_all(b"1"))
            .expect("writes");
        whole.commit().expect("commits");
        assert_eq!(fs::read(target.join("x/y.csv")).expect("reads"), b"1");
        let error = NewFolder::create(&target).err().expect("taken");
        assert!(error.to_string().contains("must not exist") && error.hint().is_some());
    }
}
