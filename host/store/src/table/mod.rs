//! Parquet as the store writes and reads it: the same bytes for the same rows, and nothing believed on reading. It knows
//! columns, not what they mean.

mod builder;
mod column;
mod digest;
mod page_guard;
mod reader;
mod writer;

pub(crate) use builder::{bools, floats, ints, texts, uints};
pub(crate) use column::Columns;
pub(crate) use reader::{TableReader, read_all};
pub(crate) use writer::{Encoder, write_table};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// Key under which a file's schema name is kept.
pub(crate) const KEY_SCHEMA: &str = "focus.schema";
/// Key under which a file's schema version is kept.
pub(crate) const KEY_VERSION: &str = "focus.schema_version";
/// Key under which the number of rows is kept.
pub(crate) const KEY_ROWS: &str = "focus.rows";
/// Key under which the rows per group are kept.
pub(crate) const KEY_GROUP: &str = "focus.rows_per_group";
/// Prefix of the keys under which each column's digests are kept, one for each row group, joined by commas.
pub(crate) const KEY_DIGEST: &str = "focus.blake3.";

/// A table of the contract: name, version, columns, and rows per row group (fixed, so that bytes depend on rows alone).
#[derive(Debug, Clone)]
pub(crate) struct TableSpec {
    pub name: &'static str,
    pub version: u32,
    pub schema: SchemaRef,
    pub rows_per_group: usize,
}

/// Rows in a group of a table of plain columns.
pub(crate) const PLAIN_GROUP: usize = 1 << 16;

/// Rows in a group that holds embeddings of `dim` values: 16 MiB of them, within 64 and 8,192.
pub(crate) fn embedding_group(dim: usize) -> usize {
    ((16 << 20) / (4 * dim.max(1))).clamp(64, 8192)
}

/// A column that always has a value.
pub(crate) fn required(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

/// A column whose value may be missing.
pub(crate) fn optional(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

/// The Arrow type of an embedding of `dim` values. The list may be null, its values never are.
pub(crate) fn embedding_type(dim: usize) -> DataType {
    DataType::FixedSizeList(
        Arc::new(Field::new("item", DataType::Float32, false)),
        dim as i32,
    )
}

/// A schema of `fields`.
pub(crate) fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}
