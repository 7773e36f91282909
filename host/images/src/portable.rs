//! PNG: every colour type and depth to 8-bit RGB, alpha composited on black. Knows no resizing.
//!
//! Checksums count, the picture must be complete to its last chunk, and samples of 16 bits keep their upper byte, as in Pillow. Grey of 16 bits, which
//! Pillow saturates at 255, is brought to 8 as `raster` says. For masks the samples are given as stored.

use std::io::{Cursor, ErrorKind};

use png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Transformations};

use crate::orientation::Orientation;
use crate::raster::{Color, Raster, Samples, check_size, on_black};
use crate::{DecodeNotes, ImageError, ImageFormat, Limits, SourceMode};

const FORMAT: ImageFormat = ImageFormat::Png;

type Reader<'a> = png::Reader<Cursor<&'a [u8]>>;

/// What the header says.
struct Opened<'a> {
    reader: Reader<'a>,
    color: ColorType,
    depth: BitDepth,
    size: (u32, u32),
}

/// Reads the header, checks the size, and sets up what `transformations` says of a colour type and depth.
fn open<'a>(
    bytes: &'a [u8],
    limits: &Limits,
    transformations: impl Fn(ColorType, BitDepth) -> Transformations,
) -> Result<Opened<'a>, ImageError> {
    let fault = |error: DecodingError| fault(&error, bytes);
    let mut options = DecodeOptions::default();
    options.set_ignore_adler32(false);
    options.set_ignore_crc(false);
    options.set_skip_ancillary_crc_failures(false);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    decoder.set_limits(png::Limits {
        bytes: limits.max_extra_bytes,
    });
    let header = decoder.read_header_info().map_err(fault)?;
    let (width, height) = (header.width, header.height);
    let (color, depth) = (header.color_type, header.bit_depth);
    check_size(width.into(), height.into(), FORMAT, limits)?;
    decoder.set_transformations(transformations(color, depth));
    let reader = decoder.read_info().map_err(fault)?;
    Ok(Opened {
        reader,
        color,
        depth,
        size: (width, height),
    })
}

impl Opened<'_> {
    /// All samples, in `raw`.
    fn read(&mut self, bytes: &[u8], limits: &Limits, raw: &mut Vec<u8>) -> Result<(), ImageError> {
        let fault = |error: DecodingError| fault(&error, bytes);
        let size = self
            .reader
            .output_buffer_size()
            .ok_or(ImageError::TooLarge {
                width: self.size.0.into(),
                height: self.size.1.into(),
                limit: limits.max_pixels,
            })?;
        raw.resize(size, 0);
        self.reader.next_frame(raw).map_err(fault)?;
        // To the end: a file cut after its pixels is still a cut file, and the orientation may come behind them.
        self.reader.finish().map_err(fault)
    }

    fn orientation(&self, remarks: &mut Vec<String>) -> Orientation {
        match &self.reader.info().exif_metadata {
            Some(block) => Orientation::of_block(block.to_vec(), remarks),
            None => Orientation::UPRIGHT,
        }
    }
}

/// The samples as stored, for masks: indices stay indices.
pub(crate) fn stored(bytes: &[u8], limits: &Limits) -> Result<(Raster, Orientation), ImageError> {
    let mut opened = open(bytes, limits, |_, _| Transformations::IDENTITY)?;
    let mut raw = Vec::new();
    opened.read(bytes, limits, &mut raw)?;
    let palette = opened.reader.info().palette.as_deref().unwrap_or(&[]);
    let color = match opened.color {
        ColorType::Grayscale => Color::Grey,
        ColorType::GrayscaleAlpha => Color::GreyAlpha,
        ColorType::Rgb => Color::Rgb,
        ColorType::Rgba => Color::Rgba,
        ColorType::Indexed => {
            let colors = palette.as_chunks::<3>().0.iter();
            Color::Palette(colors.map(|&[r, g, b]| [r, g, b, 255]).collect())
        }
    };
    let bits = opened.depth as u8;
    let stride = color.channels();
    let samples = match bits {
        8 => Samples::Bytes(raw),
        16 => words(&raw),
        _ => {
            // Rows begin on whole bytes.
            let row = (opened.size.0 as usize * usize::from(bits)).div_ceil(8);
            let each = usize::from(8 / bits);
            let sample = |row: &[u8], x: usize| {
                let shift = 8 - usize::from(bits) * (x % each + 1);
                row[x / each] >> shift & ((1 << bits) - 1)
            };
            let rows = raw.chunks_exact(row);
            let columns = opened.size.0 as usize;
            Samples::Bytes(
                rows.flat_map(|row| (0..columns).map(move |x| sample(row, x)))
                    .collect(),
            )
        }
    };
    let raster = Raster {
        width: opened.size.0,
        height: opened.size.1,
        color,
        bits,
        stride,
        premultiplied: false,
        samples,
    };
    let orientation = opened.orientation(&mut Vec::new());
    Ok((raster, orientation))
}

fn words(raw: &[u8]) -> Samples {
    let pairs = raw.as_chunks::<2>().0.iter();
    Samples::Words(pairs.map(|&pair| u16::from_be_bytes(pair)).collect())
}

/// Decodes to RGB in `pixels`, as stored. `raw` is room for the samples before they become RGB.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    raw: &mut Vec<u8>,
    pixels: &mut Vec<u8>,
) -> Result<(DecodeNotes, Orientation), ImageError> {
    let deep_grey = |color, depth| (color, depth) == (ColorType::Grayscale, BitDepth::Sixteen);
    let mut opened = open(bytes, limits, |color, depth| {
        if deep_grey(color, depth) {
            Transformations::EXPAND
        } else {
            Transformations::EXPAND | Transformations::STRIP_16
        }
    })?;
    opened.read(bytes, limits, raw)?;
    let (color, depth) = (opened.color, opened.depth);
    let (width, height) = opened.size;
    let mut remarks = Vec::new();
    let reader = &opened.reader;
    let translucent_pixels = match reader.output_color_type().0 {
        found @ (ColorType::Grayscale | ColorType::GrayscaleAlpha) if deep_grey(color, depth) => {
            let color = match found {
                ColorType::Grayscale => Color::Grey,
                _ => Color::GreyAlpha,
            };
            let raster = Raster {
                width,
                height,
                stride: color.channels(),
                color,
                bits: 16,
                premultiplied: false,
                samples: words(raw),
            };
            raster.remark_on_range(&mut remarks);
            raster.to_rgb(FORMAT, pixels)?.pixels
        }
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
    let orientation = opened.orientation(&mut remarks);
    let info = opened.reader.info();
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
        eighths: None,
        field: None,
        remarks,
    };
    Ok((notes, orientation))
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
