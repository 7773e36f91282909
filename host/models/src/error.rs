//! Why a model could not do its work at all. Single images' failures are `Answer`s, not errors.

use focus_os::OsError;
use focus_plugin_abi::v1::message::{AttachReply, OpenedModel};
use focus_wire::{FailureKind, WireError};

/// What a caller's sink says when it cannot go on.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// A model could not do its work at all (single images' failures are `Answer`s).
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The plugin said no, died, or broke the contract.
    #[error("Plugin `{plugin}`: {error}")]
    Plugin {
        /// The plugin's file name.
        plugin: String,
        /// What happened.
        #[source]
        error: WireError,
    },
    /// Too many deaths.
    #[error("Plugin `{plugin}` was restarted {restarts} times and failed again: {last}")]
    RestartsUsedUp {
        /// The plugin's file name.
        plugin: String,
        /// How often it was restarted.
        restarts: u32,
        /// The last failure.
        last: WireError,
    },
    /// Even a call without any image fails: the fault is not in the images.
    #[error("Plugin `{plugin}` fails on a batch of black images too: {error}")]
    FailsOnBlack {
        /// The plugin's file name.
        plugin: String,
        /// How it fails.
        #[source]
        error: WireError,
    },
    /// After a restart the plugin opened something else than before, so its embeddings would not compare.
    #[error(
        "Plugin `{plugin}` opened another model after a restart: expected {expected}, found {found}"
    )]
    Changed {
        /// The plugin's file name.
        plugin: String,
        /// JSON of what was opened first.
        expected: String,
        /// JSON of what was opened now.
        found: String,
    },
    /// After a restart an adapter was attached differently than before.
    #[error(
        "Plugin `{plugin}` attached adapter `{adapter}` differently after a restart: expected {expected}, found {found}"
    )]
    ChangedAdapter {
        /// The plugin's file name.
        plugin: String,
        /// The adapter's name.
        adapter: String,
        /// JSON of the reply to the first attachment.
        expected: String,
        /// JSON of the reply now.
        found: String,
    },
    /// The caller's batch does not fit the model.
    #[error("Batch does not fit the model `{model}`: expected {expected}, found {found}")]
    BadBatch {
        /// The model's id.
        model: String,
        /// What fits.
        expected: String,
        /// What came.
        found: String,
    },
    /// The worker could not be started or reached.
    #[error("Plugin `{plugin}` has no worker: {source}")]
    Worker {
        /// The plugin's file name.
        plugin: String,
        /// The system's word.
        #[source]
        source: OsError,
    },
    /// The caller's sink failed.
    #[error(transparent)]
    Sink(SinkError),
}

impl ModelError {
    /// `Changed`, with both sides as JSON.
    pub(crate) fn changed(plugin: String, expected: &OpenedModel, found: &OpenedModel) -> Self {
        let json = |opened: &OpenedModel| serde_json::to_string(opened).unwrap_or_default();
        Self::Changed {
            plugin,
            expected: json(expected),
            found: json(found),
        }
    }

    /// The adapter must be attached as it was before. How far it moved the logits is a measurement, and not compared.
    pub(crate) fn same_adapter(
        plugin: &str,
        expected: &AttachReply,
        found: &AttachReply,
    ) -> Result<(), Self> {
        let measured = AttachReply {
            probe_change: expected.probe_change,
            ..found.clone()
        };
        if measured == *expected {
            return Ok(());
        }
        let json = |reply: &AttachReply| serde_json::to_string(reply).unwrap_or_default();
        Err(Self::ChangedAdapter {
            plugin: plugin.to_owned(),
            adapter: expected.name.clone(),
            expected: json(expected),
            found: json(found),
        })
    }

    /// Advice, where there is some: the plugin's own, or what it printed last.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Plugin { error, .. } => error.hint.clone(),
            Self::FailsOnBlack { error, .. } => Some(error.hint.clone().unwrap_or_else(|| {
                "No image is to blame; it is a fault of the plugin: its log shows with -vv, and `--in-process` lets a debugger in".into()
            })),
            Self::RestartsUsedUp { last, .. } => Some(match &last.hint {
                Some(hint) => format!("{hint}\nA higher limit of restarts lets a run go on past more failing images"),
                None => "A higher limit of restarts lets a run go on past more failing images".into(),
            }),
            Self::Worker { source, .. } => source.hint(),
            Self::Changed { .. } => Some("The weights folder or the device may have changed during the run".into()),
            Self::ChangedAdapter { .. } => Some("The adapter's folder may have changed during the run".into()),
            Self::BadBatch { .. } | Self::Sink(_) => None,
        }
    }
}

/// Cap on the message of an error that crossed a border, bytes.
pub(crate) const MESSAGE_CAP: usize = 4096;

/// Cut at a character's border, with a mark.
pub(crate) fn capped(text: &str, cap: usize) -> String {
    if text.len() <= cap {
        return text.to_owned();
    }
    let end = (0..=cap)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    format!("{}...", &text[..end])
}

/// An error of the host's own.
pub(crate) fn wire_error(kind: FailureKind, message: String) -> WireError {
    WireError {
        kind,
        message: capped(&message, MESSAGE_CAP),
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(capped("aéé", 2), "a...");
        assert_eq!(capped("aéé", 3), "aé...");
        assert_eq!(capped("aéé", 5), "aéé");
        assert_eq!(capped("é", 0), "...");
    }
}
