//! One process at a time: an advisory lock on a file that names its holder. The lock is the kernel's and goes with the
//! process; the text in the file is only for the error message.

use crate::error::{Result, StoreError};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

/// An exclusive lock, held until dropped or until the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing alone would not do: a process being started by another thread holds a copy of the file until it execs.
        let _ = self.file.unlock();
    }
}

impl RunLock {
    /// Take the lock at `path` (created, mode 0600) or say who holds it. `shown` is what the error names.
    pub fn acquire(path: &Path, shown: &Path) -> Result<Self> {
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)
                .map_err(StoreError::io("open", path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(held(&mut file, shown)),
                Err(TryLockError::Error(e)) => return Err(StoreError::io("lock", path)(e)),
            }
            // Somebody may have removed the file between opening and locking; a lock on a nameless file excludes no one.
            let ours = file.metadata().map_err(StoreError::io("read", path))?;
            if std::fs::metadata(path)
                .is_ok_and(|there| there.ino() == ours.ino() && there.dev() == ours.dev())
            {
                let text = format!("pid {}\nhost {}\n", std::process::id(), host_name());
                file.set_len(0)
                    .and_then(|()| file.rewind())
                    .and_then(|()| file.write_all(text.as_bytes()))
                    .map_err(StoreError::io("write", path))?;
                return Ok(Self { file });
            }
        }
    }
}

fn held(file: &mut File, shown: &Path) -> StoreError {
    let mut text = String::new();
    let _ = file.take(1024).read_to_string(&mut text);
    let field = |name: &str| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .filter(|v| !v.is_empty())
            .unwrap_or("unknown")
            .to_owned()
    };
    StoreError::Locked {
        path: shown.into(),
        pid: field("pid"),
        host: field("host"),
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_holds_it() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("lock");
        let lock = RunLock::acquire(&path, folder.path()).expect("free");
        let error = RunLock::acquire(&path, folder.path()).expect_err("held");
        assert!(
            matches!(&error, StoreError::Locked { pid, .. } if *pid == std::process::id().to_string()),
            "{error}"
        );
        assert!(error.hint().expect("advice").contains("wait for process"));
        drop(lock);
        RunLock::acquire(&path, folder.path()).expect("free again");
    }

    #[test]
    fn a_lock_file_of_garbage_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("lock");
        std::fs::write(&path, [0xff; 5000]).expect("writes");
        let lock = RunLock::acquire(&path, folder.path()).expect("free");
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.starts_with("pid ") && text.len() < 500, "{text:?}");
        drop(lock);
    }
}
