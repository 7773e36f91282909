//! What a download tells while it runs. It must not know who listens.

use crate::{error::FetchError, job::Outcome};
use std::time::Duration;

/// Something happened. Files of one batch run in parallel: events of different files interleave.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A batch begins.
    Planned {
        /// Number of files.
        files: usize,
        /// Their sizes summed, if all are known.
        bytes: Option<u64>,
    },
    /// A transfer begins or continues.
    Started {
        /// Name below the target folder.
        name: &'a str,
        /// Bytes already there.
        have: u64,
        /// Bytes of the whole file, if known.
        total: Option<u64>,
    },
    /// Bytes arrived and were written.
    Received {
        /// Name below the target folder.
        name: &'a str,
        /// How many, since the last event.
        bytes: u64,
    },
    /// What was there is of no use; the file starts at byte 0 again.
    Restarted {
        /// Name below the target folder.
        name: &'a str,
        /// Bytes thrown away.
        discarded: u64,
        /// Why.
        reason: &'a str,
    },
    /// An attempt failed; another follows.
    Retrying {
        /// Name below the target folder, or address of a list.
        name: &'a str,
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// Wait before the next one.
        wait: Duration,
        /// What went wrong.
        error: &'a FetchError,
    },
    /// A file is in place.
    Finished {
        /// Name below the target folder.
        name: &'a str,
        /// How it got there.
        outcome: &'a Outcome,
    },
    /// A file came out of an archive.
    Unpacked {
        /// Name below the target folder.
        name: &'a str,
        /// Its bytes.
        bytes: u64,
    },
    /// A file failed for good.
    Failed {
        /// Name below the target folder.
        name: &'a str,
        /// What went wrong.
        error: &'a FetchError,
    },
}

/// Hears events, from several threads at once. Must return quickly.
pub trait Progress: Sync {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

/// Nobody listens.
impl Progress for () {
    fn event(&self, _: &Event<'_>) {}
}
