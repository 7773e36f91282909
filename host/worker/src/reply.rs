//! What a model replied, taken out of the contract's types: shapes true to the header, sizes that a frame holds.
//!
//! Must not judge values: the host does.

use crate::failure::failure;
use arrow_array::{Array as _, FixedSizeListArray, Float32Array};
use focus_plugin_abi::v1::message::EncodeReply;
use focus_plugin_abi::v1::{Array, Message};
use focus_wire::{FailureKind, MAX_FRAME, MAX_HEADER, Matrix, Method, Reply, WireError};

/// Most values in a reply: what a frame can hold beside the longest header.
const MAX_VALUES: usize = (MAX_FRAME - MAX_HEADER - 1024) / size_of::<f32>();

fn bad(message: impl AsRef<str>) -> WireError {
    failure(FailureKind::BadReply, message)
}

pub(crate) fn read(method: Method, reply: Message) -> Result<Reply, WireError> {
    let (header, arrays) = reply.into_parts();
    if header.len() > MAX_HEADER {
        return Err(bad(format!(
            "Header of the reply is too long: expected at most {MAX_HEADER} bytes, found {}",
            header.len()
        )));
    }
    let matrix = match method {
        // A `TextReply` has the same two fields.
        Method::Encode | Method::EncodeTexts => Some(matrix(&header, arrays)?),
        Method::Generate | Method::AttachAdapter | Method::DetachAdapter => {
            if !arrays.is_empty() {
                return Err(bad(format!(
                    "Wrong number of arrays in the reply: expected 0, found {}",
                    arrays.len()
                )));
            }
            None
        }
    };
    Ok(Reply { header, matrix })
}

fn matrix(header: &str, arrays: Vec<Array>) -> Result<Matrix, WireError> {
    let header: EncodeReply = serde_json::from_str(header)
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
    Ok(Matrix {
        rows: header.rows,
        dim: header.dim,
        values: floats.values()[start..start + length].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Float32Type;

    fn reply(header: &str, array: &dyn arrow_array::Array) -> Result<Matrix, WireError> {
        let arrays = vec![Array::export(array).expect("exports")];
        let reply = read(Method::Encode, Message::new(header.to_owned(), arrays))?;
        assert_eq!(reply.header, header);
        Ok(reply.matrix.expect("there"))
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
            Matrix {
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
        let none = Message::new("{\"rows\":0,\"dim\":1}".into(), Vec::new());
        assert!(read(Method::EncodeTexts, none).is_err());
        let stray = vec![Array::export(&rows()).expect("exports")];
        assert!(read(Method::Generate, Message::new("{}".into(), stray)).is_err());
    }

    #[test]
    fn headers_are_capped() {
        let long = |bytes| Message::new(" ".repeat(bytes), Vec::new());
        assert!(read(Method::Generate, long(MAX_HEADER)).is_ok());
        let error = read(Method::Generate, long(MAX_HEADER + 1)).expect_err("long");
        assert!(error.message.contains("too long"), "{error}");
    }
}
