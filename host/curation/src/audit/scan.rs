//! One look at each file: its content's hash, whether it decodes, its size, its looks. Keeps about one kilobyte of each and judges nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use focus_images::{ContentHash, ImageError, Limits, prepare_bytes, read_file};
use rayon::prelude::*;

use super::fingerprint::{Fingerprint, spec};

/// A file that decoded.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) content: ContentHash,
    /// Upright width and height.
    pub(super) size: (u32, u32),
    pub(super) print: Fingerprint,
}

/// A file that did not.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    pub(super) kind: &'static str,
    pub(super) message: String,
}

/// How far an audit or a preparation is: files done of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files done.
    pub done: u64,
    /// Files in all.
    pub total: u64,
}

fn look(path: &PathBuf, limits: &Limits) -> Result<Seen, ImageError> {
    let bytes = read_file(path, limits)?;
    let content = ContentHash::of(&bytes);
    let made = prepare_bytes(&bytes, content, &spec(), limits, None)?;
    let stored = (made.notes.stored_width, made.notes.stored_height);
    Ok(Seen {
        content,
        // Orientations from 5 swap the sides.
        size: if made.notes.orientation >= 5 {
            (stored.1, stored.0)
        } else {
            stored
        },
        print: Fingerprint::of(&made.pixels),
    })
}

/// Looks at all files on the current thread pool, in their order.
pub(super) fn scan(
    files: &[PathBuf],
    limits: &Limits,
    progress: &(dyn Fn(Progress) + Sync),
) -> Vec<Result<Seen, Failed>> {
    let done = AtomicU64::new(0);
    let total = files.len() as u64;
    files
        .par_iter()
        .map(|path| {
            let seen = look(path, limits).map_err(|error| Failed {
                kind: error.kind(),
                // A report names records, not folders of this machine.
                message: error
                    .to_string()
                    .replace(&path.display().to_string(), "the file"),
            });
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(Progress { done, total });
            seen
        })
        .collect()
}
