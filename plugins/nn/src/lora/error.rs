//! What is wrong with an adapter.

use crate::LoadError;

/// An adapter that cannot be attached.
#[derive(Debug, thiserror::Error)]
pub enum LoraError {
    /// A file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its configuration cannot be used.
    #[error("`adapter_config.json` cannot be used: {0}")]
    Settings(String),
    /// A target that no module has.
    #[error("The adapter targets {0}, which this model does not have")]
    NoSuchTarget(String),
    /// Tensors, targets and model do not agree.
    #[error("The adapter does not fit this model: {}", .0.join("; "))]
    Mismatch(Vec<String>),
    /// The name is in use.
    #[error("An adapter `{0}` is attached already")]
    NameTaken(String),
    /// The name is not known.
    #[error("No adapter `{name}` is attached: expected one of {known}")]
    NoSuchAdapter {
        /// The name.
        name: String,
        /// Those attached.
        known: String,
    },
    /// The tensor library failed.
    #[error("The adapter could not be placed: {0}")]
    Compute(#[from] candle_core::Error),
}

impl LoraError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Load(error) => error.hint(),
            Self::Settings(_) => Some("Adapters of type LORA without biases, DoRA or other extensions are supported".into()),
            Self::NoSuchTarget(_) | Self::Mismatch(_) => {
                Some("Check `base_model_name_or_path` in adapter_config.json: the adapter may have been trained on another base".into())
            }
            Self::NameTaken(_) => Some("Choose another name, or detach it first".into()),
            Self::NoSuchAdapter { .. } | Self::Compute(_) => None,
        }
    }
}
