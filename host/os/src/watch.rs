//! A watchdog on a process's resident set. Knows nothing of what the process does.
//!
//! Not RLIMIT_AS: CUDA reserves address space far beyond what it uses. Only the process itself is measured, not what it may fork.

use crate::OsError;
use crate::spawn::{ProcessHandle, wait_readable};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often the resident set is read: a process that touches memory at 10 GB/s overshoots its limit by some 200 MB.
const INTERVAL: Duration = Duration::from_millis(20);

/// Watches until the process ends; kills its group once it is over the limit.
#[derive(Debug)]
pub struct MemoryWatch {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Largest resident set seen, bytes.
    peak: AtomicU64,
    /// Resident set when it was killed, bytes; 0: it was not.
    killed_at: AtomicU64,
}

impl MemoryWatch {
    /// Watch `process`; `limit` in bytes, `None`: only measure.
    pub fn start(process: Arc<ProcessHandle>, limit: Option<u64>) -> Result<Self, OsError> {
        // Held open, the file stays that of this process even if the id is reused.
        let statm = File::open(format!("/proc/{}/statm", process.id()))
            .map_err(OsError::system("watching the worker's memory"))?;
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("focus-memory".into())
            .spawn(move || {
                loop {
                    if let Ok(bytes) = resident(&statm) {
                        seen.peak.fetch_max(bytes, Ordering::Relaxed);
                        if limit.is_some_and(|limit| bytes > limit) {
                            // Before the kill: whoever sees the death must find the reason.
                            seen.killed_at.store(bytes, Ordering::SeqCst);
                            process.kill_group();
                            return;
                        }
                    }
                    if wait_readable(process.pidfd(), INTERVAL) {
                        return;
                    }
                }
            })
            .map_err(OsError::system("starting the memory watch"))?;
        Ok(Self { shared })
    }

    /// The resident set in bytes at which the process was killed, if it was.
    pub fn killed_at(&self) -> Option<u64> {
        Some(self.shared.killed_at.load(Ordering::SeqCst)).filter(|bytes| *bytes > 0)
    }

    /// Largest resident set seen so far, bytes.
    pub fn peak(&self) -> u64 {
        self.shared.peak.load(Ordering::Relaxed)
    }
}

/// Resident bytes from an open `statm`.
fn resident(statm: &File) -> io::Result<u64> {
    let mut text = [0; 128];
    let got = statm.read_at(&mut text, 0)?;
    std::str::from_utf8(&text[..got])
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map(|pages| pages * rustix::param::page_size() as u64)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProcessEnd, WorkerCommand};

    fn shell(script: &str) -> crate::WorkerProcess {
        let command = WorkerCommand {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            ..WorkerCommand::default()
        };
        command.start().expect("starts")
    }

    #[test]
    fn a_process_over_the_limit_is_killed_and_the_reason_is_known() {
        // A string that doubles, up to 512 MB.
        let process =
            shell("x=a; i=0; while [ $i -lt 29 ]; do x=$x$x; i=$((i+1)); done; exec sleep 100");
        let watch = MemoryWatch::start(process.handle(), Some(40 << 20)).expect("watches");
        assert_eq!(
            process.handle().wait(Duration::from_mins(1)),
            Some(ProcessEnd::Killed(libc::SIGKILL))
        );
        assert!(watch.killed_at().expect("by the watch") > 40 << 20);
        assert!(watch.peak() > 40 << 20);
    }

    #[test]
    fn a_small_process_is_left_alone_and_measured() {
        let process = shell("sleep 0.2");
        let watch = MemoryWatch::start(process.handle(), Some(1 << 30)).expect("watches");
        assert_eq!(
            process.handle().wait(Duration::from_secs(20)),
            Some(ProcessEnd::Exited(0))
        );
        assert_eq!(watch.killed_at(), None);
        assert!(watch.peak() > 0);
    }
}
