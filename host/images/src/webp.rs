//! WebP: lossy, lossless, with alpha; of an animation the first frame. Knows no resizing.
//!
//! Lossy pictures are upsampled as libwebp does by default, which is what Pillow gets.

use std::io::{Cursor, ErrorKind};

use image_webp::{DecodingError, WebPDecoder};

use crate::orientation::Orientation;
use crate::raster::{Color, Raster, Samples, check_size};
use crate::{ImageError, ImageFormat, Limits};

const FORMAT: ImageFormat = ImageFormat::Webp;

/// The picture, and its orientation.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    remarks: &mut Vec<String>,
) -> Result<(Raster, Orientation), ImageError> {
    check_chunks(bytes, limits)?;
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|error| fault(&error))?;
    let (width, height) = decoder.dimensions();
    check_size(width.into(), height.into(), FORMAT, limits)?;
    decoder.set_memory_limit(limits.max_extra_bytes);
    if decoder.is_animated() {
        remarks.push(format!(
            "an animation of {} frames; the first is read",
            decoder.num_frames()
        ));
    }
    let orientation = match decoder.exif_metadata().map_err(|error| fault(&error))? {
        // Some writers keep the marker of JPEG's segment before the block.
        Some(block) => Orientation::of_block(
            block.strip_prefix(b"Exif\0\0").unwrap_or(&block).to_vec(),
            remarks,
        ),
        None => Orientation::UPRIGHT,
    };
    let color = if decoder.has_alpha() {
        Color::Rgba
    } else {
        Color::Rgb
    };
    let channels = color.channels();
    let mut samples = vec![0; width as usize * height as usize * channels];
    decoder
        .read_image(&mut samples)
        .map_err(|error| fault(&error))?;
    let raster = Raster {
        width,
        height,
        stride: channels,
        color,
        bits: 8,
        premultiplied: false,
        samples: Samples::Bytes(samples),
    };
    Ok((raster, orientation))
}

/// The container must be complete, and the sizes within its parts, which the decoder allocates for, within the limit.
fn check_chunks(bytes: &[u8], limits: &Limits) -> Result<(), ImageError> {
    let cut = |detail: &str| ImageError::Truncated {
        format: FORMAT,
        detail: detail.into(),
    };
    let word = |at: usize| {
        bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map(|&four| u32::from_le_bytes(four) as usize)
    };
    let stated = word(4).ok_or_else(|| cut("the header is not complete"))?;
    if stated.saturating_add(8) > bytes.len() {
        return Err(cut(&format!(
            "expected {} bytes, found {}",
            stated.saturating_add(8),
            bytes.len()
        )));
    }
    let mut at = 12;
    // To the end of the file and not of the container: the decoder may look at what follows.
    while at + 8 <= bytes.len() {
        let length = word(at + 4).ok_or_else(|| cut("a part's length is missing"))?;
        let body = at + 8;
        let three = |from: usize| word(from).map_or(0, |value| value & 0xFF_FFFF);
        let size = match &bytes[at..at + 4] {
            b"VP8 " => word(body + 6).map(|value| (value & 0x3FFF, value >> 16 & 0x3FFF)),
            b"VP8L" => {
                word(body + 1).map(|value| ((value & 0x3FFF) + 1, (value >> 14 & 0x3FFF) + 1))
            }
            b"VP8X" => Some((three(body + 4) + 1, three(body + 7) + 1)),
            b"ANMF" => Some((three(body + 6) + 1, three(body + 9) + 1)),
            _ => None,
        };
        if let Some((width, height)) = size {
            check_size(width as u64, height as u64, FORMAT, limits)?;
        }
        // A frame's parts follow its own sixteen bytes.
        at = if &bytes[at..at + 4] == b"ANMF" {
            body + 16
        } else {
            body.saturating_add(length).saturating_add(length % 2)
        };
    }
    Ok(())
}

fn fault(error: &DecodingError) -> ImageError {
    let detail = error.to_string().trim_end_matches('.').to_owned();
    match error {
        DecodingError::IoError(inner) if inner.kind() == ErrorKind::UnexpectedEof => {
            // The container was found complete, so that a part ends early is a fault within.
            ImageError::Corrupt {
                format: FORMAT,
                detail: "a part of the file ends before its data does".into(),
            }
        }
        DecodingError::UnsupportedFeature(_) => ImageError::Unsupported {
            format: FORMAT,
            what: detail,
        },
        DecodingError::MemoryLimitExceeded => ImageError::Unsupported {
            format: FORMAT,
            what: "its extra data needs more memory than is allowed".into(),
        },
        _ => ImageError::Corrupt {
            format: FORMAT,
            detail,
        },
    }
}
