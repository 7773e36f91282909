//! Errors of this crate. Knows no other room.

use std::io;

/// A system call failed, or what came back was not what was agreed.
#[derive(Debug, thiserror::Error)]
pub enum OsError {
    /// A system call failed.
    #[error("System call failed ({doing}): {source}")]
    System {
        /// What was being done, `creating the pixel memory`.
        doing: &'static str,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The program of a worker could not be started.
    #[error("Cannot start worker `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// Shared memory of a size that makes no sense.
    #[error(
        "Pixel memory must have at least one slot and at most {max} bytes: found {slots} slots of {slot_bytes} bytes"
    )]
    BadSize {
        /// Slots asked for.
        slots: u32,
        /// Bytes in each.
        slot_bytes: u64,
        /// The cap on the whole.
        max: u64,
    },
    /// The memory that arrived has another size than announced.
    #[error("Pixel memory has the wrong size: expected {expected} bytes, found {found}")]
    WrongSize {
        /// Bytes announced.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// The memory that arrived could still be cut short under a reader.
    #[error("Pixel memory is not sealed: expected seals {expected:#x}, found {found:#x}")]
    NotSealed {
        /// `F_SEAL_*` bits that must be set.
        expected: u32,
        /// Bits that are.
        found: u32,
    },
    /// A message carried no descriptor, more than one, or was cut.
    #[error("Expected exactly one file descriptor in the message, found {0}")]
    Descriptors(String),
    /// A sandbox rule could not be built or installed.
    #[error("Cannot install the sandbox ({part}): {reason}")]
    Sandbox {
        /// `seccomp` or `landlock`.
        part: &'static str,
        /// Why not.
        reason: String,
    },
}

impl OsError {
    /// Advice, where there is some.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Start { .. } => Some("Check that the program exists and may be executed".into()),
            Self::Sandbox { .. } => Some("Some containers forbid seccomp; the sandbox can be turned off for plugins you trust".into()),
            _ => None,
        }
    }

    /// For `map_err`: name what was being done.
    pub(crate) fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            doing,
            source: source.into(),
        }
    }
}
