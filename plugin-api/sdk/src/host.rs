//! The plugin's handle on the host: log lines, progress, cancellation. Must not know where they go.

use crate::Error;
use focus_plugin_abi::v1::HostCallbacks;
use std::fmt::Display;

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is odd.
    Warn = 2,
    /// Worth knowing.
    Info = 3,
    /// For the plugin's author.
    Debug = 4,
    /// Everything.
    Trace = 5,
}

/// The host, as seen by a model. Cheap to clone, usable on any thread.
#[derive(Debug, Clone)]
pub struct Host {
    callbacks: Option<HostCallbacks>,
}

impl Host {
    pub(crate) fn new(callbacks: HostCallbacks) -> Self {
        Self {
            callbacks: Some(callbacks),
        }
    }

    /// A host that hears nothing and never cancels, for a model's own unit tests.
    pub fn detached() -> Self {
        Self { callbacks: None }
    }

    /// Write a line to the run's log.
    pub fn log(&self, level: Level, message: impl Display) {
        if let Some(callbacks) = &self.callbacks {
            callbacks.log(level as u32, &message.to_string());
        }
    }

    /// A line of level `info`.
    pub fn info(&self, message: impl Display) {
        self.log(Level::Info, message);
    }

    /// A line of level `warn`.
    pub fn warn(&self, message: impl Display) {
        self.log(Level::Warn, message);
    }

    /// Tell how far a long call is: `done` of `total` units, `total` 0 when unknown. Does not extend the time a call may take.
    pub fn progress(&self, stage: &str, done: u64, total: u64) {
        if let Some(callbacks) = &self.callbacks {
            callbacks.progress(stage, done, total);
        }
    }

    /// Whether the host no longer wants the answer of this call.
    pub fn cancelled(&self) -> bool {
        self.callbacks
            .as_ref()
            .is_some_and(HostCallbacks::cancelled)
    }

    /// For use with `?` in long loops.
    pub fn check_cancelled(&self) -> Result<(), Error> {
        if self.cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }
}
