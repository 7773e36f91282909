//! PNG: every colour type and depth to 8-bit RGB, alpha composited on black. Knows no resizing.
//!
//! Checksums count, the picture must be complete to its last chunk, and samples of 16 bits keep their upper byte, as in Pillow. Grey of 16 bits is
//! refused: Pillow saturates it at 255, which is no picture, and the right scaling depends on the instrument.

use std::io::{Cursor, ErrorKind};

use png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Transformations};

use crate::orientation::Orientation;
use crate::{DecodeNotes, ImageError, ImageFormat, Limits, SourceMode};

const FORMAT: ImageFormat = ImageFormat::Png;

/// Decodes to RGB in `pixels`, as stored. `raw` is room for the samples before they become RGB.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    raw: &mut Vec<u8>,
    pixels: &mut Vec<u8>,
) -> Result<(DecodeNotes, Orientation), ImageError> {
    let fault = |error: DecodingError| fault(&error, bytes);
    let mut options = DecodeOptions::default();
    options.set_ignore_adler32(false);
    options.set_ignore_crc(false);
    options.set_skip_ancillary_crc_failures(false);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    decoder.set_limits(png::Limits {
        bytes: limits.max_png_extra_bytes,
    });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let header = decoder.read_header_info().map_err(fault)?;
    let (width, height, color, depth) = (
        header.width,
        header.height,
        header.color_type,
        header.bit_depth,
    );
    let count = u64::from(width) * u64::from(height);
    if count > limits.max_pixels {
        return Err(ImageError::TooLarge {
            width: width.into(),
            height: height.into(),
            limit: limits.max_pixels,
        });
    }
    if (color, depth) == (ColorType::Grayscale, BitDepth::Sixteen) {
        return Err(ImageError::Unsupported {
            format: FORMAT,
            what: "16-bit grey, whose range of values is not known".into(),
        });
    }
    let mut reader = decoder.read_info().map_err(fault)?;
    let size = reader.output_buffer_size().ok_or(ImageError::TooLarge {
        width: width.into(),
        height: height.into(),
        limit: limits.max_pixels,
    })?;
    raw.resize(size, 0);
    reader.next_frame(raw).map_err(fault)?;
    // To the end: a file cut after its pixels is still a cut file, and the orientation may come behind them.
    reader.finish().map_err(fault)?;

    let translucent_pixels = match reader.output_color_type().0 {
        ColorType::Grayscale => expand(raw, pixels, |&[grey]: &[u8; 1]| ([grey; 3], 255)),
        ColorType::GrayscaleAlpha => expand(raw, pixels, |&[grey, alpha]: &[u8; 2]| {
            ([on_black(grey, alpha); 3], alpha)
        }),
        ColorType::Rgba => expand(raw, pixels, |&[r, g, b, alpha]: &[u8; 4]| {
            ([r, g, b].map(|value| on_black(value, alpha)), alpha)
        }),
        ColorType::Rgb | ColorType::Indexed => {
            std::mem::swap(raw, pixels);
            0
        }
    };
    let info = reader.info();
    let mut remarks = Vec::new();
    let orientation = match &info.exif_metadata {
        Some(block) => Orientation::of_block(block.to_vec(), &mut remarks),
        None => Orientation::UPRIGHT,
    };
    let notes = DecodeNotes {
        format: FORMAT,
        stored_width: width,
        stored_height: height,
        orientation: orientation.value(),
        mode: match color {
            ColorType::Grayscale => SourceMode::Grey,
            ColorType::GrayscaleAlpha => SourceMode::GreyAlpha,
            ColorType::Rgb => SourceMode::Rgb,
            ColorType::Rgba => SourceMode::Rgba,
            ColorType::Indexed => SourceMode::Palette,
        },
        bits: depth as u8,
        alpha_composited: matches!(color, ColorType::GrayscaleAlpha | ColorType::Rgba)
            || info.trns.is_some(),
        translucent_pixels,
        remarks,
    };
    Ok((notes, orientation))
}

/// A colour of coverage `alpha` over black, to the nearest level: the same for all 65,536 pairs as Pillow's `alpha_composite` on opaque black.
fn on_black(value: u8, alpha: u8) -> u8 {
    ((u32::from(value) * u32::from(alpha) + 127) / 255) as u8
}

/// Writes RGB for each pixel of `N` samples; counts those not fully opaque.
fn expand<const N: usize>(
    raw: &[u8],
    pixels: &mut Vec<u8>,
    rgb: impl Fn(&[u8; N]) -> ([u8; 3], u8),
) -> u64 {
    let (samples, rest) = raw.as_chunks::<N>();
    debug_assert!(rest.is_empty());
    pixels.resize(samples.len() * 3, 0);
    let mut translucent = 0;
    for (sample, pixel) in samples.iter().zip(pixels.chunks_exact_mut(3)) {
        let (color, alpha) = rgb(sample);
        pixel.copy_from_slice(&color);
        translucent += u64::from(alpha != 255);
    }
    translucent
}

fn fault(error: &DecodingError, bytes: &[u8]) -> ImageError {
    let detail = error.to_string().trim_end_matches('.').to_owned();
    match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            ImageError::Truncated {
                format: FORMAT,
                detail,
            }
        }
        DecodingError::LimitsExceeded => ImageError::Unsupported {
            format: FORMAT,
            what: "its extra data needs more memory than is allowed".into(),
        },
        _ if is_cut(bytes) => ImageError::Truncated {
            format: FORMAT,
            detail,
        },
        _ => ImageError::Corrupt {
            format: FORMAT,
            detail,
        },
    }
}

/// Whether the chunks run past the end of the file before the closing one.
fn is_cut(bytes: &[u8]) -> bool {
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        if &head[4..] == b"IEND" {
            return bytes.len() < at + 12;
        }
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        at += length + 12;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::on_black;

    #[test]
    fn compositing_rounds_to_nearest() {
        for value in 0..=255_u8 {
            assert_eq!(on_black(value, 255), value);
            assert_eq!(on_black(value, 0), 0);
            for alpha in 0..=255_u8 {
                let exact = f64::from(value) * f64::from(alpha) / 255.0;
                assert!((f64::from(on_black(value, alpha)) - exact).abs() <= 0.5);
            }
        }
    }
}
