//! Errors that cross: a numbered kind, a message, advice.
//!
//! Must not know what the host does about a kind.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RString};
use std::fmt;

/// Kind of an error. A number, not an enum: a kind from a newer plugin survives the crossing and is shown as it is.
/// The numbers are those of `focus_wire::FailureKind` below 100; from 100 on they belong to the host.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, StableAbi)]
pub struct ErrorKind(pub u32);

impl ErrorKind {
    /// The request makes no sense to the plugin.
    pub const INVALID_REQUEST: Self = Self(1);
    /// The plugin does not offer it.
    pub const UNSUPPORTED: Self = Self(2);
    /// Weights are missing, wrong or unreadable.
    pub const WEIGHTS: Self = Self(3);
    /// An image of the batch cannot be processed.
    pub const IMAGE: Self = Self(4);
    /// Out of memory, and able to say so.
    pub const OUT_OF_MEMORY: Self = Self(5);
    /// The device failed.
    pub const DEVICE: Self = Self(6);
    /// Cancelled as asked.
    pub const CANCELLED: Self = Self(7);
    /// The model panicked; the process should be retired.
    pub const PANIC: Self = Self(8);
    /// Anything else.
    pub const INTERNAL: Self = Self(9);
}

/// An error that a plugin reports.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq, StableAbi)]
pub struct PluginError {
    kind: ErrorKind,
    message: RString,
    hint: ROption<RString>,
}

impl PluginError {
    /// A new error without advice. `message` starts with a capital and names expected and found.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: RString::from(message.into()),
            hint: ROption::RNone,
        }
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = ROption::RSome(RString::from(hint.into()));
        self
    }

    /// Its kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Its message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Its advice.
    pub fn hint(&self) -> Option<&str> {
        match &self.hint {
            ROption::RSome(hint) => Some(hint),
            ROption::RNone => None,
        }
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PluginError {}
