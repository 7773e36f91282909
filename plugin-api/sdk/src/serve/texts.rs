//! `dual_encoder.encode_texts`. Must not know of images.

use super::images::matrix;
use super::take;
use crate::{DualEncoder, Error, Host, TextReply, TextRequest};
use focus_plugin_abi::v1::Message;

/// What comes back goes out as it is: rows, tokens and marks are for the host to judge.
pub(super) fn encode(
    encoder: &mut dyn DualEncoder,
    message: Message,
    host: &Host,
) -> Result<Message, Error> {
    let (request, []): (TextRequest, _) = take("encode_texts", message)?;
    if request.texts.is_empty() {
        return Err(Error::invalid_request("No texts: expected at least one"));
    }
    let embedded = encoder.encode_texts(&request.texts, host)?;
    let (dim, rows) = (embedded.rows.dim(), embedded.rows.rows());
    let header = TextReply {
        rows: rows as u32,
        dim: dim as u32,
        tokens: embedded.tokens,
        truncated: embedded.truncated,
    };
    let header = serde_json::to_string(&header).map_err(Error::internal)?;
    let values = embedded.rows.into_values();
    Ok(Message::new(header, vec![matrix(dim, values)?]))
}
