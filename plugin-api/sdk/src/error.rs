//! The error a model returns. Must not know how it crosses.

pub use focus_plugin_abi::v1::ErrorKind;
use focus_plugin_abi::v1::PluginError;
use std::fmt::Display;

/// What went wrong, and what could be done about it. Messages start with a capital, quote literals in backticks, say what was
/// expected and what was found, and have no full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error of any kind.
    pub fn new(kind: ErrorKind, message: impl Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            hint: None,
        }
    }

    /// The request makes no sense.
    pub fn invalid_request(message: impl Display) -> Self {
        Self::new(ErrorKind::INVALID_REQUEST, message)
    }

    /// The model does not offer it.
    pub fn unsupported(message: impl Display) -> Self {
        Self::new(ErrorKind::UNSUPPORTED, message)
    }

    /// Weights are missing, wrong or unreadable.
    pub fn weights(message: impl Display) -> Self {
        Self::new(ErrorKind::WEIGHTS, message)
    }

    /// An image of the batch cannot be processed. The host splits the batch until it knows which.
    pub fn image(message: impl Display) -> Self {
        Self::new(ErrorKind::IMAGE, message)
    }

    /// Out of memory.
    pub fn out_of_memory(message: impl Display) -> Self {
        Self::new(ErrorKind::OUT_OF_MEMORY, message)
    }

    /// The device failed.
    pub fn device(message: impl Display) -> Self {
        Self::new(ErrorKind::DEVICE, message)
    }

    /// Stopped, because [`crate::Host::cancelled`] said so.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::CANCELLED, "Cancelled by the host")
    }

    /// Anything else.
    pub fn internal(message: impl Display) -> Self {
        Self::new(ErrorKind::INTERNAL, message)
    }

    /// The same error with advice for the person who reads it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Its kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Its advice.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::internal(format!("Input or output failed: {error}"))
    }
}

impl From<PluginError> for Error {
    fn from(error: PluginError) -> Self {
        Self {
            kind: error.kind(),
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

impl From<Error> for PluginError {
    fn from(error: Error) -> Self {
        let crossed = Self::new(error.kind, error.message);
        match error.hint {
            Some(hint) => crossed.with_hint(hint),
            None => crossed,
        }
    }
}
