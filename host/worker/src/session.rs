//! A loaded plugin and its open model: the one place that calls through the contract. Behind the socket and behind plain calls alike.
//!
//! Must not know who asks.

use crate::failure::{failure, from_plugin};
use crate::library::{Plugin, Verified};
use arrow_array::{Array as _, FixedSizeBinaryArray, FixedSizeListArray, Float32Array};
use arrow_buffer::Buffer;
use focus_plugin_abi::v1::message::{EncodeReply, EncodeRequest};
use focus_plugin_abi::v1::{Array, HostEvents, Interface, Message, Model};
use focus_wire::{FailureKind, MAX_FRAME, WireError};
use std::sync::Arc;

/// Longest JSON text taken from a plugin, bytes.
const MAX_JSON: usize = 4 << 20;

/// Most values in a reply: what a frame can hold beside its header.
const MAX_VALUES: usize = (MAX_FRAME - 1024) / size_of::<f32>();

/// Embeddings as a plugin returned them: the shape is true, the values are not looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Rows returned; the request's, if the plugin keeps to the contract.
    pub rows: u32,
    /// Values in a row.
    pub dim: u32,
    /// Row-major, `rows * dim`.
    pub values: Vec<f32>,
}

pub(crate) struct Session {
    plugin: Plugin,
    model: Option<Model>,
    events: Arc<dyn HostEvents>,
}

impl Session {
    pub(crate) fn load(library: Verified, events: Arc<dyn HostEvents>) -> Result<Self, WireError> {
        Ok(Self {
            plugin: library.load()?,
            model: None,
            events,
        })
    }

    pub(crate) fn contract(&self) -> u32 {
        self.plugin.contract()
    }

    pub(crate) fn describe(&self) -> Result<String, WireError> {
        let Plugin::V1(plugin) = &self.plugin;
        capped(plugin.describe().map_err(|e| from_plugin(&e))?)
    }

    /// Open a model. One that was open is closed first: two sets of weights may not fit.
    pub(crate) fn open(&mut self, options: &str) -> Result<String, WireError> {
        self.model = None;
        let Plugin::V1(plugin) = &self.plugin;
        let model = plugin
            .open(options, Arc::clone(&self.events))
            .map_err(|e| from_plugin(&e))?;
        let opened = capped(model.opened())?;
        self.model = Some(model);
        Ok(opened)
    }

    /// `pixels`: exactly the bytes of the request's rows. The plugin reads them where they lie.
    pub(crate) fn encode(&mut self, header: &str, pixels: Buffer) -> Result<Encoded, WireError> {
        let invalid = |message: String| failure(FailureKind::InvalidRequest, message);
        let Some(model) = self.model.as_mut() else {
            return Err(invalid(
                "No model is open: expected `open` before `encode`".to_owned(),
            ));
        };
        let request: EncodeRequest = serde_json::from_str(header)
            .map_err(|error| invalid(format!("Header of `encode` cannot be read: {error}")))?;
        let image = u64::from(request.width) * u64::from(request.height) * 3;
        let Some(size) = i32::try_from(image).ok().filter(|&size| size > 0) else {
            return Err(invalid(format!(
                "Image size out of range: {} x {} pixels",
                request.width, request.height
            )));
        };
        if image.checked_mul(request.rows.into()) != Some(pixels.len() as u64)
            || request.rows == 0
            || request.used > request.rows
        {
            return Err(invalid(format!(
                "Batch does not fit its pixels: expected {} rows of {image} bytes with at most as many used, found {} bytes and {} used",
                request.rows,
                pixels.len(),
                request.used
            )));
        }
        let pixels = FixedSizeBinaryArray::try_new(size, pixels, None)
            .map_err(|error| invalid(error.to_string()))?;
        let pixels = Array::export(&pixels).map_err(|e| from_plugin(&e))?;
        let message = Message::new(header.to_owned(), vec![pixels]);
        let reply = model
            .call(Interface::IMAGE_ENCODER, "encode", message)
            .map_err(|e| from_plugin(&e))?;
        embeddings(reply)
    }

    /// Close the model, if one is open. The library stays.
    pub(crate) fn close(&mut self) {
        self.model = None;
    }
}

fn capped(json: String) -> Result<String, WireError> {
    if json.len() > MAX_JSON {
        return Err(failure(
            FailureKind::BadReply,
            format!(
                "JSON of the plugin is too long: expected at most {MAX_JSON} bytes, found {}",
                json.len()
            ),
        ));
    }
    Ok(json)
}

fn embeddings(reply: Message) -> Result<Encoded, WireError> {
    let bad = |message: String| failure(FailureKind::BadReply, message);
    let (header, arrays) = reply.into_parts();
    let header: EncodeReply = serde_json::from_str(&header)
        .map_err(|error| bad(format!("Header of the reply cannot be read: {error}")))?;
    let count = arrays.len();
    let Ok([array]) = <[Array; 1]>::try_from(arrays) else {
        return Err(bad(format!(
            "Wrong number of arrays in the reply: expected 1, found {count}"
        )));
    };
    let array = array.import().map_err(|error| bad(error.to_string()))?;
    let list = array.as_any().downcast_ref::<FixedSizeListArray>();
    let floats = list.and_then(|list| list.values().as_any().downcast_ref::<Float32Array>());
    let (Some(list), Some(floats)) = (list, floats) else {
        return Err(bad(format!(
            "Wrong type of array in the reply: expected FixedSizeList of Float32, found {}",
            array.data_type()
        )));
    };
    let found = (
        list.len() as u64,
        u64::try_from(list.value_length()).unwrap_or(0),
    );
    if found != (header.rows.into(), header.dim.into()) {
        return Err(bad(format!(
            "Reply contradicts itself: header says {} x {}, array has {} x {}",
            header.rows, header.dim, found.0, found.1
        )));
    }
    if list.null_count() + floats.null_count() > 0 {
        return Err(bad("Reply has nulls: expected none".to_owned()));
    }
    let start = list.value_offset_at(0);
    let length = (found.0 * found.1) as usize;
    if length > MAX_VALUES {
        return Err(bad(format!(
            "Reply is too large: expected at most {MAX_VALUES} values, found {length}"
        )));
    }
    Ok(Encoded {
        rows: header.rows,
        dim: header.dim,
        values: floats.values()[start..start + length].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Float32Type;

    fn reply(header: &str, array: &dyn arrow_array::Array) -> Result<Encoded, WireError> {
        embeddings(Message::new(
            header.to_owned(),
            vec![Array::export(array).expect("exports")],
        ))
    }

    fn rows() -> FixedSizeListArray {
        let rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]].map(|row| Some(row.map(Some)));
        FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2)
    }

    #[test]
    fn a_sliced_reply_is_read_from_its_offset() {
        let found = reply(r#"{"rows":2,"dim":2}"#, &rows().slice(1, 2)).expect("good");
        assert_eq!(
            found,
            Encoded {
                rows: 2,
                dim: 2,
                values: vec![3.0, 4.0, 5.0, 6.0]
            }
        );
        let none = reply(r#"{"rows":0,"dim":2}"#, &rows().slice(3, 0)).expect("good");
        assert!(none.values.is_empty());
    }

    #[test]
    fn replies_that_break_the_contract_are_told_apart() {
        let nulls = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
            [Some([Some(1.0), None])],
            2,
        );
        let cases: [(&str, &dyn arrow_array::Array, &str); 5] = [
            (r#"{"rows":4,"dim":2}"#, &rows(), "contradicts"),
            (r#"{"rows":3,"dim":3}"#, &rows(), "contradicts"),
            ("[]", &rows(), "Header"),
            (r#"{"rows":1,"dim":2}"#, &nulls, "nulls"),
            (
                r#"{"rows":2,"dim":1}"#,
                &Float32Array::from(vec![1.0, 2.0]),
                "Wrong type",
            ),
        ];
        for (header, array, word) in cases {
            let error = reply(header, array).expect_err(word);
            assert_eq!(error.kind, FailureKind::BadReply);
            assert!(error.message.contains(word), "{error}");
        }
        assert!(embeddings(Message::new("{\"rows\":0,\"dim\":1}".into(), Vec::new())).is_err());
    }
}
