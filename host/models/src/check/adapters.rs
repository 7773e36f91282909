//! Adapters: what is asked and what must come back. Knows no prompts.

use crate::error::wire_error;
use focus_plugin_abi::v1::message::{AttachReply, AttachRequest, DetachRequest};
use focus_wire::{FailureKind, Reply, WireError};

pub(crate) fn attach_header(request: &AttachRequest) -> String {
    serde_json::to_string(request).expect("strings are JSON")
}

pub(crate) fn detach_header(name: &str) -> String {
    let request = DetachRequest {
        name: name.to_owned(),
    };
    serde_json::to_string(&request).expect("strings are JSON")
}

/// Two adapters of one name.
pub(crate) fn taken(name: &str) -> WireError {
    let message = format!("Adapter `{name}` is attached already");
    wire_error(FailureKind::InvalidRequest, message)
}

/// A name that no adapter has.
pub(crate) fn not_attached(name: &str) -> WireError {
    let message = format!("No adapter `{name}` is attached");
    wire_error(FailureKind::InvalidRequest, message)
}

/// The reply to an attachment, which must be about the adapter asked for.
pub(crate) fn attached(request: &AttachRequest, reply: &Reply) -> Result<AttachReply, WireError> {
    let bad = |what: String| wire_error(FailureKind::BadReply, what);
    let said: AttachReply = serde_json::from_str(&reply.header)
        .map_err(|error| bad(format!("Header of the reply cannot be read: {error}")))?;
    if said.name != request.name {
        return Err(bad(format!(
            "Reply is about another adapter: expected `{}`, found `{}`",
            request.name, said.name
        )));
    }
    Ok(said)
}
