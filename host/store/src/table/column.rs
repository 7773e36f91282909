//! Rows out of columns: typed access by name, with the file and row in every error. It knows types and caps, no rules.

use crate::error::{Result, StoreError};
use arrow_array::{
    Array, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Float64Array,
    Int32Array, RecordBatch, StringArray, UInt32Array,
};
use std::path::Path;

/// The columns of one batch, whose first row is row `base` of `file`.
pub(crate) struct Columns<'a> {
    pub file: &'a Path,
    pub base: usize,
    pub batch: &'a RecordBatch,
    pub string_bytes: usize,
}

impl<'a> Columns<'a> {
    fn get<A: Array + 'static>(&self, name: &str) -> Result<&'a A> {
        let column = self
            .batch
            .column_by_name(name)
            .ok_or_else(|| StoreError::MissingColumn {
                file: self.file.into(),
                column: name.into(),
            })?;
        column
            .as_any()
            .downcast_ref()
            .ok_or_else(|| StoreError::ColumnType {
                file: self.file.into(),
                column: name.into(),
                expected: std::any::type_name::<A>()
                    .rsplit("::")
                    .next()
                    .unwrap_or_default()
                    .into(),
                found: column.data_type().to_string(),
            })
    }

    /// Each text of a column, capped in length.
    pub fn texts(&self, name: &str) -> Result<Vec<Option<&'a str>>> {
        let column: &StringArray = self.get(name)?;
        for row in 0..column.len() {
            let length = column.value_length(row) as usize;
            if column.is_valid(row) && length > self.string_bytes {
                return Err(StoreError::TooLarge {
                    file: self.file.into(),
                    what: "bytes of a text",
                    limit: self.string_bytes as u64,
                    found: length as u64,
                });
            }
        }
        Ok(column.iter().collect())
    }

    /// Each truth value of a column.
    pub fn bools(&self, name: &str) -> Result<Vec<Option<bool>>> {
        Ok(self.get::<BooleanArray>(name)?.iter().collect())
    }

    /// Each f64 of a column.
    pub fn floats(&self, name: &str) -> Result<Vec<Option<f64>>> {
        Ok(self.get::<Float64Array>(name)?.iter().collect())
    }

    /// Each i32 of a column.
    pub fn ints(&self, name: &str) -> Result<Vec<Option<i32>>> {
        Ok(self.get::<Int32Array>(name)?.iter().collect())
    }

    /// Each u32 of a column.
    pub fn uints(&self, name: &str) -> Result<Vec<Option<u32>>> {
        Ok(self.get::<UInt32Array>(name)?.iter().collect())
    }

    /// A column of 32-byte values.
    pub fn hashes(&self, name: &str) -> Result<&'a FixedSizeBinaryArray> {
        self.get(name)
    }

    /// A column of embeddings, with their values in one row-major block (rows x dim; rows that are null hold anything).
    pub fn embeddings(&self, name: &str) -> Result<(&'a FixedSizeListArray, &'a Float32Array)> {
        let lists: &FixedSizeListArray = self.get(name)?;
        let values =
            lists
                .values()
                .as_any()
                .downcast_ref()
                .ok_or_else(|| StoreError::ColumnType {
                    file: self.file.into(),
                    column: name.into(),
                    expected: "Float32".into(),
                    found: lists.values().data_type().to_string(),
                })?;
        Ok((lists, values))
    }

    /// The value of a column that has one in each row.
    pub fn must<T>(&self, name: &'static str, row: usize, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| {
            StoreError::rule(
                self.file,
                self.base + row,
                "a required column must have a value",
                format!("none in `{name}`"),
            )
        })
    }
}
