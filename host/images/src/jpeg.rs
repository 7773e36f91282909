//! JPEG through libjpeg-turbo, with its defaults (slow integer DCT, smooth chroma upsampling), which are Pillow's: the pixels are equal.
//!
//! Every warning of the library is an error: it warns where it has invented pixels. Knows no resizing.

use turbojpeg::{Colorspace, Decompressor, Image, PixelFormat};

use crate::orientation::Orientation;
use crate::{DecodeNotes, ImageError, ImageFormat, Limits, SourceMode};

const FORMAT: ImageFormat = ImageFormat::Jpeg;

/// Decodes to RGB in `pixels`, as stored. `kept` is the library's instance, reused from one picture to the next.
pub(crate) fn decode(
    kept: &mut Option<Decompressor>,
    bytes: &[u8],
    limits: &Limits,
    pixels: &mut Vec<u8>,
) -> Result<(DecodeNotes, Orientation), ImageError> {
    // After an error the instance is dropped: nothing of a damaged file can reach the next one.
    let mut library = match kept.take() {
        Some(library) => library,
        None => Decompressor::new().map_err(|error| ImageError::Decoder {
            reason: error.to_string(),
        })?,
    };
    library
        .set_scan_limit(limits.max_jpeg_scans)
        .map_err(|error| ImageError::Decoder {
            reason: error.to_string(),
        })?;
    let header = library
        .read_header(bytes)
        .map_err(|error| fault(&error, bytes))?;
    let (width, height) = (header.width, header.height);
    if width as u64 * height as u64 > limits.max_pixels {
        return Err(ImageError::TooLarge {
            width: width as u64,
            height: height as u64,
            limit: limits.max_pixels,
        });
    }
    let mode = match header.colorspace {
        Colorspace::YCbCr => SourceMode::Ycbcr,
        Colorspace::RGB => SourceMode::Rgb,
        Colorspace::Gray => SourceMode::Grey,
        Colorspace::CMYK | Colorspace::YCCK => {
            return Err(ImageError::Unsupported {
                format: FORMAT,
                what: "four ink channels (CMYK), whose colours depend on a press profile".into(),
            });
        }
    };
    pixels.resize(width * height * 3, 0);
    let image = Image {
        pixels: &mut pixels[..],
        width,
        pitch: width * 3,
        height,
        format: PixelFormat::RGB,
    };
    library
        .decompress(bytes, image)
        .map_err(|error| fault(&error, bytes))?;
    *kept = Some(library);

    let mut remarks = Vec::new();
    let orientation = Orientation::of_jpeg(bytes, &mut remarks);
    let notes = DecodeNotes {
        format: FORMAT,
        stored_width: width as u32,
        stored_height: height as u32,
        orientation: orientation.value(),
        mode,
        bits: 8,
        alpha_composited: false,
        translucent_pixels: 0,
        remarks,
    };
    Ok((notes, orientation))
}

/// The library gives its messages as text only.
fn fault(error: &turbojpeg::Error, bytes: &[u8]) -> ImageError {
    let text = error.to_string();
    // "TurboJPEG error: tj3Decompress8(): message" or without the function.
    let detail = text.trim_start_matches("TurboJPEG error: ");
    let detail = detail
        .split_once("(): ")
        .map_or(detail, |(_, message)| message)
        .trim_end_matches('.')
        .replace('\n', " ");
    let has = |part: &str| detail.contains(part);
    if has("Premature end") || is_cut(bytes) {
        ImageError::Truncated {
            format: FORMAT,
            detail,
        }
    } else if has("Unsupported")
        || has("precision")
        || has("Could not determine")
        || has("Maximum supported image dimension")
    {
        ImageError::Unsupported {
            format: FORMAT,
            what: detail,
        }
    } else {
        ImageError::Corrupt {
            format: FORMAT,
            detail,
        }
    }
}

/// Whether the segments run past the end of the file before the closing marker.
fn is_cut(bytes: &[u8]) -> bool {
    const MARKER: u8 = 0xFF;
    let mut at = 2;
    while let Some(&[first, code]) = bytes.get(at..at + 2) {
        match (first, code) {
            (MARKER, 0xD9) => return false,
            // Coded data (where 0xFF stands as 0xFF 0), restart markers, and fill bytes have no length.
            (MARKER, 0 | 0x01 | 0xD0..=0xD8) => at += 2,
            (MARKER, MARKER) | (0..MARKER, _) => at += 1,
            (MARKER, _) => {
                let Some(&[high, low]) = bytes.get(at + 2..at + 4) else {
                    return true;
                };
                at += 2 + usize::from(u16::from_be_bytes([high, low]));
            }
        }
    }
    true
}
