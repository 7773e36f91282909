//! One life of a worker process, behind a trait so that the supervisor's tests can script deaths. Knows no messages.

use crate::WorkerOptions;
use crate::logs::{LogTail, Origin};
use focus_os::{MemoryWatch, OsError, ProcessEnd, WorkerCommand, WorkerProcess};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// Starts lives; called again for each restart.
pub(crate) trait Launcher: Send {
    fn launch(&mut self) -> Result<Life, OsError>;
}

/// A worker that runs: where to talk to it, how to end it, what it printed.
pub(crate) struct Life {
    pub(crate) socket: UnixStream,
    pub(crate) control: Box<dyn Control>,
    pub(crate) logs: Arc<LogTail>,
}

/// Power over a process. Dropping it ends the process.
pub(crate) trait Control: Send {
    /// Process id.
    fn id(&self) -> u32;
    /// Kill it and what it started; nothing if it is gone.
    fn kill(&self);
    /// Wait for its end, at most this long.
    fn wait(&self, timeout: Duration) -> Option<ProcessEnd>;
    /// Resident set in bytes at which it was killed for its size, if it was.
    fn memory_killed_at(&self) -> Option<u64>;
    /// Largest resident set seen, bytes.
    fn peak_memory(&self) -> u64;
}

/// The real thing.
#[derive(Debug)]
pub(crate) struct ProcessLauncher {
    command: WorkerCommand,
    plugin: String,
    memory_limit: Option<u64>,
}

impl ProcessLauncher {
    pub(crate) fn new(options: &WorkerOptions, threads: u32) -> Self {
        Self {
            command: WorkerCommand {
                program: options.program.clone(),
                args: options.args.clone(),
                threads,
                library_paths: options.library_paths.clone(),
                env: options.env.clone(),
                pass: if options.network.is_empty() {
                    Vec::new()
                } else {
                    options.environment.clone()
                },
            },
            plugin: options.plugin_name(),
            memory_limit: options.memory_limit,
        }
    }
}

impl Launcher for ProcessLauncher {
    fn launch(&mut self) -> Result<Life, OsError> {
        let mut process = self.command.start()?;
        let watch = MemoryWatch::start(&process, self.memory_limit)?;
        let logs = LogTail::new(&self.plugin);
        if let Some(pipe) = process.take_stdout() {
            logs.follow(Origin::Stdout, pipe);
        }
        if let Some(pipe) = process.take_stderr() {
            logs.follow(Origin::Stderr, pipe);
        }
        let socket = process
            .socket()
            .try_clone()
            .map_err(|source| OsError::System {
                doing: "sharing the worker's socket",
                source,
            })?;
        Ok(Life {
            socket,
            control: Box::new(ProcessControl { process, watch }),
            logs,
        })
    }
}

struct ProcessControl {
    process: WorkerProcess,
    watch: MemoryWatch,
}

impl Control for ProcessControl {
    fn id(&self) -> u32 {
        self.process.id()
    }

    fn kill(&self) {
        self.process.handle().kill_group();
    }

    fn wait(&self, timeout: Duration) -> Option<ProcessEnd> {
        self.process.handle().wait(timeout)
    }

    fn memory_killed_at(&self) -> Option<u64> {
        self.watch.killed_at()
    }

    fn peak_memory(&self) -> u64 {
        self.watch.peak()
    }
}
