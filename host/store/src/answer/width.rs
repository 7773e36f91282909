//! The embedding width that a log's header states. It reads no frame.

use super::row::answer_schema;
use crate::{
    error::{Result, StoreError, shorten},
    limits::Limits,
};
use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_schema::DataType;
use std::path::Path;

/// The embedding width a log's header states; an error when it is no answer schema.
pub(super) fn dim_of(path: &Path, bytes: &[u8], limits: &Limits) -> Result<usize> {
    let schema = try_schema_from_ipc_buffer(bytes).map_err(|e| StoreError::damaged(path, e))?;
    let width =
        schema
            .field_with_name("embedding")
            .ok()
            .and_then(|field| match field.data_type() {
                DataType::FixedSizeList(_, dim) => usize::try_from(*dim).ok(),
                _ => None,
            });
    let dim = width.ok_or_else(|| StoreError::MissingColumn {
        file: path.into(),
        column: "embedding".into(),
    })?;
    if dim == 0 || dim > limits.dim {
        return Err(StoreError::TooLarge {
            file: path.into(),
            what: "values of an embedding",
            limit: limits.dim as u64,
            found: dim as u64,
        });
    }
    if schema != *answer_schema(dim) {
        return Err(StoreError::damaged(
            path,
            format!(
                "its columns are not those of an answer log: {}",
                shorten(&schema.to_string(), 200)
            ),
        ));
    }
    Ok(dim)
}
