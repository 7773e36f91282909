//! How much a cache holds, and making room: the least recently used entries go first. Knows no pixels and no keys.
//!
//! An entry's time of change is the time of its last use: set when it is written and whenever it is read, so that all processes that share a folder share
//! the order. Only one process at a time makes room, under a lock that the system takes back when its holder dies. Removing an entry that another process
//! reads does no harm: it has the file open. Files that are being written have another name and are never counted as entries; those that a killed process
//! left are removed when they are an hour old.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// How names of files that are being written begin.
pub(super) const PART: &str = ".part-";
/// The lock's name.
const LOCK: &str = ".lock";
/// Age at which a file that was never finished is taken for left behind.
const STALE: Duration = Duration::from_hours(1);

/// The size of a cache as far as this process knows it.
#[derive(Debug)]
pub(super) struct Room {
    /// Bytes that the folder may hold.
    limit: u64,
    /// Bytes that it held when it was last looked at, and what this process added since.
    held: AtomicU64,
    /// Bytes that this process added since then. Others add too, so the folder is looked at again before this grows large.
    added: AtomicU64,
}

/// An entry found in the folder.
struct Entry {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// What lies in a folder.
#[derive(Default)]
struct Content {
    entries: Vec<Entry>,
    /// Of entries and of unfinished files.
    bytes: u64,
    stale: Vec<PathBuf>,
}

impl Room {
    /// Of a folder that may hold `limit` bytes. Nothing is removed before something is added.
    pub(super) fn new(folder: &Path, limit: u64) -> Self {
        Self {
            limit,
            held: AtomicU64::new(look(folder).bytes),
            added: AtomicU64::new(0),
        }
    }

    /// Whether an entry of `bytes` may be kept at all.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        bytes <= self.limit
    }

    /// Counts an entry that was written, and makes room if the limit is passed. Returns how many entries were removed.
    pub(super) fn added(&self, folder: &Path, bytes: u64) -> io::Result<usize> {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.added.fetch_add(bytes, Ordering::Relaxed);
        if !self.is_due() {
            return Ok(0);
        }
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(LOCK))?;
        lock.lock()?;
        // Another thread may have made room meanwhile.
        Ok(if self.is_due() { self.make(folder) } else { 0 })
    }

    fn is_due(&self) -> bool {
        let added = self.added.load(Ordering::Relaxed);
        self.held.load(Ordering::Relaxed) > self.limit || added > self.limit / 16
    }

    /// Looks at the folder; where it holds more than the limit, removes the oldest entries down to nine tenths, so that the next look is not at once.
    fn make(&self, folder: &Path) -> usize {
        self.added.store(0, Ordering::Relaxed);
        let mut content = look(folder);
        for path in &content.stale {
            let _ = fs::remove_file(path);
        }
        let mut removed = 0;
        if content.bytes > self.limit {
            let aim = self.limit - self.limit / 10;
            content
                .entries
                .sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
            for entry in &content.entries {
                if content.bytes <= aim {
                    break;
                }
                // Used since it was looked at: it is not the oldest any more.
                let now = fs::metadata(&entry.path).and_then(|found| found.modified());
                if now.is_ok_and(|now| now == entry.used) && fs::remove_file(&entry.path).is_ok() {
                    content.bytes -= entry.bytes;
                    removed += 1;
                }
            }
        }
        self.held.store(content.bytes, Ordering::Relaxed);
        removed
    }
}

/// Notes that an entry was used now. A failure costs only its place in the order.
pub(super) fn touch(file: &File) {
    let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
}

/// Goes through the folder; what vanishes meanwhile or cannot be read counts nothing.
fn look(folder: &Path) -> Content {
    let mut content = Content::default();
    let now = SystemTime::now();
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    for inner in folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        for file in fs::read_dir(inner.path()).into_iter().flatten().flatten() {
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            let Ok(used) = metadata.modified() else {
                continue;
            };
            content.bytes += metadata.len();
            let unfinished = file
                .file_name()
                .as_encoded_bytes()
                .starts_with(PART.as_bytes());
            if !unfinished {
                content.entries.push(Entry {
                    used,
                    bytes: metadata.len(),
                    path: file.path(),
                });
            } else if now.duration_since(used).is_ok_and(|age| age > STALE) {
                content.bytes -= metadata.len();
                content.stale.push(file.path());
            }
        }
    }
    content
}
