//! The arrays of a request, made over memory where it lies.
//!
//! Must not know how the memory came here.

use crate::failure::{failure, from_plugin};
use arrow_array::{BinaryArray, FixedSizeBinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use focus_plugin_abi::v1::Array;
use focus_plugin_abi::v1::message::{EncodeRequest, GenerateRequest};
use focus_wire::{FailureKind, Method, WireError};
use serde::de::DeserializeOwned;

fn invalid(message: impl AsRef<str>) -> WireError {
    failure(FailureKind::InvalidRequest, message)
}

/// `pixels` are exactly the bytes of the method's array.
pub(crate) fn arrays(
    method: Method,
    header: &str,
    pixels: Option<Buffer>,
) -> Result<Vec<Array>, WireError> {
    let pixels = pixels.unwrap_or_default();
    let array = match method {
        Method::Encode => Array::export(&images(&parse("encode", header)?, pixels)?),
        Method::Generate => Array::export(&pictures(&parse("generate", header)?, pixels)?),
        Method::EncodeTexts | Method::AttachAdapter | Method::DetachAdapter => {
            return if pixels.is_empty() {
                Ok(Vec::new())
            } else {
                Err(invalid(format!(
                    "{method:?} takes no array: found {} bytes",
                    pixels.len()
                )))
            };
        }
    };
    Ok(vec![array.map_err(|e| from_plugin(&e))?])
}

fn parse<T: DeserializeOwned>(method: &str, header: &str) -> Result<T, WireError> {
    serde_json::from_str(header)
        .map_err(|error| invalid(format!("Header of `{method}` cannot be read: {error}")))
}

fn images(request: &EncodeRequest, pixels: Buffer) -> Result<FixedSizeBinaryArray, WireError> {
    let image = (u64::from(request.width) * u64::from(request.height))
        .saturating_mul(request.pixels.pixel_bytes().into());
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
    FixedSizeBinaryArray::try_new(size, pixels, None).map_err(|error| invalid(error.to_string()))
}

fn pictures(request: &GenerateRequest, pixels: Buffer) -> Result<BinaryArray, WireError> {
    let mut total = 0i32;
    let mut offsets = vec![0i32];
    for (number, size) in request.images.iter().enumerate() {
        let bytes = (u64::from(size.width) * u64::from(size.height)).saturating_mul(3);
        let end = i32::try_from(bytes)
            .ok()
            .and_then(|bytes| total.checked_add(bytes));
        let Some(end) = end.filter(|_| bytes > 0) else {
            return Err(invalid(format!(
                "Picture {number} of {} x {} pixels has no place: expected 1 to {} bytes in all",
                size.width,
                size.height,
                i32::MAX
            )));
        };
        total = end;
        offsets.push(end);
    }
    if total as usize != pixels.len() {
        return Err(invalid(format!(
            "Pictures do not fit their sizes: expected {total} bytes, found {}",
            pixels.len()
        )));
    }
    let offsets = OffsetBuffer::new(offsets.into());
    BinaryArray::try_new(offsets, pixels, None).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array as _;

    fn request(sizes: &[(u32, u32)]) -> GenerateRequest {
        let images: Vec<_> = sizes
            .iter()
            .map(|(w, h)| serde_json::json!({ "width": w, "height": h }))
            .collect();
        serde_json::from_value(serde_json::json!({
            "images": images, "groups": [], "max_new_tokens": 0
        }))
        .expect("a header")
    }

    #[test]
    fn pictures_are_cut_where_they_lie() {
        let memory = Buffer::from_vec((0u8..9).collect::<Vec<_>>());
        let start = memory.as_ptr();
        let array = pictures(&request(&[(1, 1), (2, 1)]), memory).expect("fits");
        assert_eq!(array.value(1), [3, 4, 5, 6, 7, 8]);
        assert_eq!(array.values().as_ptr(), start, "not copied");
        let none = pictures(&request(&[]), Buffer::default()).expect("none");
        assert_eq!(none.len(), 0);
    }

    #[test]
    fn pictures_that_do_not_fit_are_refused() {
        let bytes = |n: usize| Buffer::from_vec(vec![0u8; n]);
        for (sizes, found, word) in [
            (&[(1, 1)][..], 4, "expected 3 bytes, found 4"),
            (&[], 1, "expected 0 bytes"),
            (&[(0, 1)], 0, "Picture 0"),
            (&[(1, 1), (u32::MAX, u32::MAX)], 3, "Picture 1"),
            (&[(26_000, 26_000), (26_000, 26_000)], 3, "Picture 1"),
        ] {
            let error = pictures(&request(sizes), bytes(found)).expect_err(word);
            assert!(error.message.contains(word), "{error}");
        }
    }

    #[test]
    fn floats_take_twelve_bytes_a_pixel() {
        let header = |pixels: &str| {
            format!(r#"{{"width":1,"height":1,"rows":1,"used":1,"pixels":"{pixels}"}}"#)
        };
        let bytes = || Some(Buffer::from_vec(vec![0u8; 12]));
        assert_eq!(
            arrays(Method::Encode, &header("f32"), bytes())
                .expect("fits")
                .len(),
            1
        );
        assert!(arrays(Method::Encode, &header("u8"), bytes()).is_err());
        let error = arrays(Method::EncodeTexts, "{}", bytes()).expect_err("no array");
        assert!(error.message.contains("takes no array"), "{error}");
    }
}
