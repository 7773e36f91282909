//! Columns out of rows: one short function for each type. It checks nothing.

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, StringArray, UInt32Array};
use std::sync::Arc;

/// A text column.
pub(crate) fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// A column of truth values.
pub(crate) fn bools(values: impl Iterator<Item = Option<bool>>) -> ArrayRef {
    Arc::new(values.collect::<BooleanArray>())
}

/// A column of f64.
pub(crate) fn floats(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

/// A column of i32.
pub(crate) fn ints(values: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.collect::<Int32Array>())
}

/// A column of u32.
pub(crate) fn uints(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(values.collect::<UInt32Array>())
}
