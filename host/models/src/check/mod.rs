//! Holding a plugin and a caller to the contract: what was opened must be something the host can feed, a batch must fit it, and a reply
//! must have the shape asked for.
//!
//! Knows nothing of processes.

mod adapters;
mod groups;
mod images;
mod texts;

pub(crate) use adapters::{attach_header, attached, detach_header, not_attached, taken};
pub(crate) use groups::GroupPlan;
pub(crate) use images::Plan;

use crate::ModelError;
use crate::error::wire_error;
use focus_plugin_abi::v1::message::OpenedModel;
use focus_wire::{FailureKind, MAX_HEADER, WireError};
use serde::Serialize;

/// Largest batch a model may ask for.
const MAX_BATCH: u32 = 4096;
/// Largest side of an image, pixels.
const MAX_SIDE: u32 = 16384;

/// How to feed an open model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plans {
    /// `None`: it has no image encoder.
    pub(crate) images: Option<Plan>,
    pub(crate) groups: GroupPlan,
}

impl Plans {
    /// `slots`: how many batches lie in memory at once.
    pub(crate) fn new(opened: &OpenedModel, slots: u32) -> Result<Self, WireError> {
        Ok(Self {
            images: match opened.embedding_dim {
                0 => None,
                _ => Some(Plan::new(opened)?),
            },
            groups: GroupPlan::new(opened, slots)?,
        })
    }

    /// The plan of an image encoder; a model without one is the caller's mistake.
    pub(crate) fn images(&self, plugin: &str, model: &str) -> Result<Plan, ModelError> {
        self.images.ok_or_else(|| ModelError::Plugin {
            plugin: plugin.to_owned(),
            error: wire_error(
                FailureKind::Unsupported,
                format!(
                    "Model `{model}` has no image encoder: it opened with embeddings of 0 values"
                ),
            ),
        })
    }
}

/// JSON of a request, if a message can carry it.
fn header(model: &str, request: &impl Serialize) -> Result<String, ModelError> {
    let header = serde_json::to_string(request).expect("strings and numbers are JSON");
    if header.len() > MAX_HEADER {
        return Err(ModelError::BadBatch {
            model: model.to_owned(),
            expected: format!("at most {MAX_HEADER} bytes of text"),
            found: format!("{} bytes", header.len()),
        });
    }
    Ok(header)
}
