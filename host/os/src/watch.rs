//! A watchdog on a worker: its resident set, and its end. Knows nothing of what the worker does.
//!
//! When the process ends, whatever it forked is killed with its group and the host's end of the socket is shut down: a forgotten
//! grandchild that holds the socket must not make a death look like a silence. What has arrived by then can still be read.
//!
//! Not RLIMIT_AS: CUDA reserves address space far beyond what it uses. Only the process itself is measured, not what it may fork.

use crate::{OsError, WorkerProcess};
use std::fs::File;
use std::io;
use std::net::Shutdown;
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
    pub fn start(process: &WorkerProcess, limit: Option<u64>) -> Result<Self, OsError> {
        let socket = process
            .socket()
            .try_clone()
            .map_err(OsError::system("sharing the worker's socket"))?;
        let process = process.handle();
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
                        if limit.is_some_and(|limit| bytes > limit)
                            && seen.killed_at.load(Ordering::SeqCst) == 0
                        {
                            // Before the kill: whoever sees the death must find the reason.
                            seen.killed_at.store(bytes, Ordering::SeqCst);
                            process.kill_group();
                        }
                    }
                    if process.wait(INTERVAL).is_some() {
                        // An error means that it is shut down already.
                        let _ = socket.shutdown(Shutdown::Both);
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

    /// bash, since dash takes no descriptor above 9 in a redirection.
    fn shell(script: &str) -> crate::WorkerProcess {
        let command = WorkerCommand {
            program: "/bin/bash".into(),
            args: vec!["-c".into(), script.into(), "sh".into()],
            ..WorkerCommand::default()
        };
        command.start().expect("starts")
    }

    #[test]
    fn a_process_over_the_limit_is_killed_and_the_reason_is_known() {
        // A string that doubles, up to 512 MB.
        let process =
            shell("x=a; i=0; while [ $i -lt 29 ]; do x=$x$x; i=$((i+1)); done; exec sleep 100");
        let watch = MemoryWatch::start(&process, Some(40 << 20)).expect("watches");
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
        let watch = MemoryWatch::start(&process, Some(1 << 30)).expect("watches");
        assert_eq!(
            process.handle().wait(Duration::from_secs(20)),
            Some(ProcessEnd::Exited(0))
        );
        assert_eq!(watch.killed_at(), None);
        assert!(watch.peak() > 0);
    }

    #[test]
    fn a_grandchild_with_the_socket_does_not_hide_a_death() {
        use std::io::Read;
        // In the group, and out of it in a session of its own.
        for script in ["sleep 100 & exit 3", "/usr/bin/setsid sleep 3 & exit 3"] {
            let mut process = shell(&format!("echo before >&$2; {script}"));
            let _watch = MemoryWatch::start(&process, None).expect("watches");
            drop((process.take_stdout(), process.take_stderr()));
            let mut text = String::new();
            let begun = std::time::Instant::now();
            process
                .socket()
                .try_clone()
                .expect("dup")
                .read_to_string(&mut text)
                .expect("reads to the end");
            assert_eq!(text, "before\n");
            assert!(
                begun.elapsed() < Duration::from_secs(2),
                "waited for the grandchild"
            );
            assert_eq!(
                process.handle().wait(Duration::from_secs(20)),
                Some(ProcessEnd::Exited(3))
            );
        }
    }
}
