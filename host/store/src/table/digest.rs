//! The digest of a column's values in one row group. Parquet as written here has no checksums, and zstd as it uses it has
//! none either: without this, a flipped bit could come back as another score.

use arrow_array::{
    Array, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Float64Array,
    Int32Array, StringArray, UInt32Array,
};
use arrow_schema::DataType;

/// BLAKE3 over name, type, number of rows, one validity byte for each row, then the values that are there, little-endian;
/// text with its length before it. `None` for a type the store does not write.
pub(crate) fn column_digest(name: &str, column: &dyn Array) -> Option<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut head = Vec::with_capacity(column.len() + 64);
    text(&mut head, name);
    text(&mut head, &type_name(column.data_type())?);
    head.extend((column.len() as u64).to_le_bytes());
    head.extend((0..column.len()).map(|row| u8::from(column.is_valid(row))));
    hasher.update(&head);
    let any = column.as_any();
    let mut bytes = Vec::new();
    match column.data_type() {
        DataType::Boolean => bytes.extend(
            any.downcast_ref::<BooleanArray>()?
                .iter()
                .flatten()
                .map(u8::from),
        ),
        DataType::Int32 => {
            any.downcast_ref::<Int32Array>()?
                .iter()
                .flatten()
                .for_each(|v| bytes.extend(v.to_le_bytes()));
        }
        DataType::UInt32 => {
            any.downcast_ref::<UInt32Array>()?
                .iter()
                .flatten()
                .for_each(|v| bytes.extend(v.to_le_bytes()));
        }
        DataType::Float64 => {
            any.downcast_ref::<Float64Array>()?
                .iter()
                .flatten()
                .for_each(|v| bytes.extend(v.to_le_bytes()));
        }
        DataType::Utf8 => any
            .downcast_ref::<StringArray>()?
            .iter()
            .flatten()
            .for_each(|v| text(&mut bytes, v)),
        DataType::FixedSizeBinary(_) => {
            any.downcast_ref::<FixedSizeBinaryArray>()?
                .iter()
                .flatten()
                .for_each(|v| bytes.extend(v));
        }
        DataType::FixedSizeList(_, _) => {
            let lists = any.downcast_ref::<FixedSizeListArray>()?;
            let values = lists.values().as_any().downcast_ref::<Float32Array>()?;
            let dim = lists.value_length() as usize;
            for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
                let start = lists.value_offset_at(row);
                let row = &values.values()[start..start + dim];
                bytes.resize(4 * dim, 0);
                for (place, value) in bytes.chunks_exact_mut(4).zip(row) {
                    place.copy_from_slice(&value.to_le_bytes());
                }
                hasher.update(&bytes);
            }
            return Some(hasher.finalize());
        }
        _ => return None,
    }
    hasher.update(&bytes);
    Some(hasher.finalize())
}

// Ours, not Arrow's: how Arrow spells its types has changed between its versions.
fn type_name(kind: &DataType) -> Option<String> {
    Some(match kind {
        DataType::Boolean => "bool".into(),
        DataType::Int32 => "i32".into(),
        DataType::UInt32 => "u32".into(),
        DataType::Float64 => "f64".into(),
        DataType::Utf8 => "text".into(),
        DataType::FixedSizeBinary(width) => format!("bytes[{width}]"),
        DataType::FixedSizeList(_, dim) => format!("f32[{dim}]"),
        _ => return None,
    })
}

fn text(bytes: &mut Vec<u8>, value: &str) {
    bytes.extend((value.len() as u64).to_le_bytes());
    bytes.extend(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_nulls_borders_and_names_all_count() {
        let digest = |name: &str, values: Vec<Option<&str>>| {
            column_digest(name, &StringArray::from(values)).expect("text")
        };
        let base = digest("a", vec![Some("xy"), Some("z")]);
        assert_eq!(base, digest("a", vec![Some("xy"), Some("z")]));
        assert_ne!(base, digest("b", vec![Some("xy"), Some("z")]));
        assert_ne!(base, digest("a", vec![Some("x"), Some("yz")]));
        assert_ne!(
            digest("a", vec![Some(""), None]),
            digest("a", vec![None, Some("")])
        );
        let float = |v: f64| column_digest("s", &Float64Array::from(vec![v])).expect("floats");
        assert_ne!(float(0.0), float(-0.0));
    }

    #[test]
    fn a_slice_digests_as_its_copy() {
        let whole = StringArray::from(vec![Some("a"), None, Some("b"), Some("c")]);
        let copy = StringArray::from(vec![None, Some("b")]);
        assert_eq!(
            column_digest("c", &whole.slice(1, 2)),
            column_digest("c", &copy)
        );
    }
}
