//! Why an evaluation could not be done at all. Failures of single images are outcomes, not errors.

use focus_datasets::DatasetError;
use focus_models::ModelError;
use focus_probe::ProbeError;
use focus_store::StoreError;

/// An evaluation failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// What was asked for does not exist or does not fit together.
    #[error("{}", .0.message)]
    Request(Advised),
    /// The input is not usable.
    #[error("{}", .0.message)]
    Input(Advised),
    /// The plugin's file, sidecar or description.
    #[error("{}", .0.message)]
    Plugin(Advised),
    /// What a run folder's answers are about is no longer there.
    #[error("{}", .0.message)]
    Changed(Advised),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The dataset could not be mapped.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The run folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedded dataset could not be drawn.
    #[error(transparent)]
    Synthetic(#[from] focus_synth::Error),
    /// The model's weights are not on this machine.
    #[error(transparent)]
    Weights(#[from] Box<crate::weights::WeightsError>),
    /// A fit could not be made.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The report could not be made.
    #[error(transparent)]
    Report(#[from] crate::report::ReportError),
}

/// A message and what to do about it.
#[derive(Debug)]
pub struct Advised {
    /// What is wrong.
    pub message: String,
    /// Advice.
    pub hint: Option<String>,
}

impl Advised {
    /// Both.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// A message that needs no advice.
    pub fn plain(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }
}

impl EvalError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Request(a) | Self::Input(a) | Self::Plugin(a) | Self::Changed(a) => {
                a.hint.clone()
            }
            Self::Model(error) => error.hint(),
            Self::Dataset(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Synthetic(error) => error.hint(),
            Self::Weights(error) => error.hint(),
            Self::Probe(error) => error.hint(),
            Self::Report(error) => error.hint(),
        }
    }
}
