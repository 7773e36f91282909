//! Errors as a person or a script meets them: message, causes, hint, exit code.

use crate::eval::EvalError;
use focus_datasets::ErrorKind;
use focus_probe::ProbeError;
use focus_store::StoreError;
use std::process::ExitCode;

/// What kind of failure, by exit code (`args::EXIT_CODES`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// focus-host itself.
    Internal = 1,
    /// The command line.
    Usage = 2,
    /// Dataset, label file, image folder, run folder.
    Input = 3,
    /// The plugin as a whole.
    Plugin = 4,
    /// A cell failed.
    CellFailed = 5,
    /// A comparison found a difference.
    Difference = 6,
    /// The run folder is in use or another run's.
    RunFolder = 7,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// With an exit code and a message.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            // Names of files may hold anything; a terminal must not obey them.
            message: message.into().replace('\u{1b}', "\\u{1b}"),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// A fault of our own.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// Add advice.
    pub(crate) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// From an error and its sources, leaving out sources whose text the message already holds.
    pub(crate) fn from_error(
        code: Code,
        error: &(dyn std::error::Error + 'static),
        hint: Option<String>,
    ) -> Self {
        let mut failure = Self::new(code, error.to_string()).with_hint(hint);
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            let told =
                failure.message.contains(&text) || failure.causes.iter().any(|c| c.contains(&text));
            if !told {
                failure.causes.push(text);
            }
            source = cause.source();
        }
        failure
    }

    /// For `main`.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }

    /// `error: ...`, causes, and the hint after a blank line.
    pub(crate) fn for_people(&self, colour: bool) -> String {
        let (red, cyan, end) = if colour {
            ("\x1b[31;1m", "\x1b[36;1m", "\x1b[0m")
        } else {
            ("", "", "")
        };
        let mut text = format!("{red}error{end}: {}", self.message);
        for cause in &self.causes {
            text.push_str("\n  caused by: ");
            text.push_str(cause);
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n\n{cyan}hint{end}: {hint}"));
        }
        text
    }

    /// The message alone.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// `{"code", "message", "causes", "hint"}`.
    pub(crate) fn value(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.code as u8,
            "message": self.message,
            "causes": self.causes,
            "hint": self.hint,
        })
    }

    /// `{"error": {"code", "message", "causes", "hint"}}`.
    pub(crate) fn to_json(&self) -> String {
        serde_json::json!({ "error": self.value() }).to_string()
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Self {
        let code = match &error {
            EvalError::Request(_) => Code::Usage,
            EvalError::Dataset(inner) if inner.kind() == ErrorKind::Usage => Code::Usage,
            EvalError::Plugin(_) | EvalError::Model(_) => Code::Plugin,
            EvalError::Changed(_)
            | EvalError::Store(
                StoreError::Locked { .. }
                | StoreError::IdentityDiffers { .. }
                | StoreError::NotARun { .. },
            ) => Code::RunFolder,
            EvalError::Dataset(_)
            | EvalError::Input(_)
            | EvalError::Weights(_)
            | EvalError::Store(_)
            | EvalError::Report(_)
            | EvalError::Synthetic(_) => Code::Input,
            EvalError::Probe(ProbeError::DeviceName { .. } | ProbeError::NoCuda { .. }) => {
                Code::Usage
            }
            EvalError::Probe(_) => Code::Internal,
        };
        let hint = error.hint();
        Self::from_error(code, &error, hint)
    }
}
