//! `image_encoder.encode`. Must not know of texts or prompts.

use super::take;
use crate::{EncodeReply, EncodeRequest, Error, Host, ImageBatch, ImageEncoder};
use arrow_array::{Array as _, FixedSizeBinaryArray, FixedSizeListArray, Float32Array};
use arrow_schema::{DataType, Field};
use focus_plugin_abi::v1::{Array, Message};
use std::sync::Arc;

pub(super) fn encode(
    encoder: &mut dyn ImageEncoder,
    message: Message,
    host: &Host,
) -> Result<Message, Error> {
    let (request, [pixels]): (EncodeRequest, _) = take("encode", message)?;
    let pixels = pixels.import()?;
    let size = (u64::from(request.width) * u64::from(request.height))
        .saturating_mul(request.pixels.pixel_bytes().into());
    let wanted = i32::try_from(size).map(DataType::FixedSizeBinary);
    let binary = pixels
        .as_any()
        .downcast_ref::<FixedSizeBinaryArray>()
        .filter(|a| wanted.as_ref() == Ok(a.data_type()));
    let Some(binary) = binary.filter(|a| a.len() == request.rows as usize && a.null_count() == 0)
    else {
        return Err(Error::invalid_request(format!(
            "Wrong pixel array: expected {} rows of FixedSizeBinary({size}) without nulls, found {} rows of {}",
            request.rows,
            pixels.len(),
            pixels.data_type()
        )));
    };
    let batch = ImageBatch::of_type(
        binary.value_data(),
        request.pixels,
        request.width as usize,
        request.height as usize,
        request.used as usize,
    )?;
    let embeddings = encoder.encode(&batch, host)?;
    let (dim, rows) = (embeddings.dim(), embeddings.rows());
    let mut values = embeddings.into_values();
    // The contract wants a row for each of the request; those of the padding are ignored. Any other count goes out as it is and is
    // for the host to judge.
    let rows = if rows == batch.used() {
        values.resize(batch.rows() * dim, 0.0);
        batch.rows()
    } else {
        rows
    };
    let header = EncodeReply {
        rows: rows as u32,
        dim: dim as u32,
    };
    let header = serde_json::to_string(&header).map_err(Error::internal)?;
    Ok(Message::new(header, vec![matrix(dim, values)?]))
}

/// Rows of `dim` values as the contract has them.
pub(super) fn matrix(dim: usize, values: Vec<f32>) -> Result<Array, Error> {
    let length = i32::try_from(dim)
        .map_err(|_| Error::internal(format!("Embedding too long: {dim} values")))?;
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let list =
        FixedSizeListArray::try_new(item, length, Arc::new(Float32Array::from(values)), None)
            .map_err(Error::internal)?;
    Ok(Array::export(&list)?)
}
