//! JPEG through libjpeg-turbo, with its defaults (slow integer DCT, smooth chroma upsampling), which are Pillow's: the pixels are equal.
//!
//! Where a picture is only resized, it may be left in its planes: `focus-resize` then makes the same pixels a few rows at a time.
//!
//! Every warning of the library is an error: it warns where it has invented pixels. Knows no resizing.

use focus_resize::{Chroma, YccPlanes};
use turbojpeg::{
    Colorspace, DecompressHeader, Decompressor, Image, PixelFormat, Subsamp, YuvImage,
};

use crate::orientation::Orientation;
use crate::{DecodeNotes, ImageError, ImageFormat, Limits, SourceMode};

const FORMAT: ImageFormat = ImageFormat::Jpeg;

/// A library that has read one file's header.
struct Opened {
    library: Decompressor,
    header: DecompressHeader,
    mode: SourceMode,
}

/// Takes the library out of `kept`: after an error the instance is dropped, so that nothing of a damaged file can reach the next one.
fn open(
    kept: &mut Option<Decompressor>,
    bytes: &[u8],
    limits: &Limits,
) -> Result<Opened, ImageError> {
    let start = |error: turbojpeg::Error| ImageError::Decoder {
        reason: error.to_string(),
    };
    let mut library = match kept.take() {
        Some(library) => library,
        None => Decompressor::new().map_err(start)?,
    };
    library
        .set_scan_limit(limits.max_jpeg_scans)
        .map_err(start)?;
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
    Ok(Opened {
        library,
        header,
        mode,
    })
}

impl Opened {
    fn notes(&self, orientation: Orientation, remarks: Vec<String>) -> DecodeNotes {
        DecodeNotes {
            format: FORMAT,
            stored_width: self.header.width as u32,
            stored_height: self.header.height as u32,
            orientation: orientation.value(),
            mode: self.mode,
            bits: 8,
            alpha_composited: false,
            translucent_pixels: 0,
            remarks,
        }
    }

    /// How chroma is spaced, where `focus-resize` can take the planes as they are.
    fn planes(&self) -> Option<Chroma> {
        let chroma = match self.header.subsamp {
            Subsamp::None => Chroma::Full,
            Subsamp::Sub2x1 => Chroma::HalfWidth,
            Subsamp::Sub2x2 => Chroma::Quarter,
            _ => return None,
        };
        let usual = self.mode == SourceMode::Ycbcr && !self.header.is_lossless;
        let smooth = chroma == Chroma::Full || self.header.width.div_ceil(2) > 2;
        (usual && smooth).then_some(chroma)
    }
}

/// What `decode` left in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Interleaved RGB.
    Rgb,
    /// Luma, blue difference and red difference, one plane behind the other.
    Planes(Chroma),
}

/// Decodes into `pixels`, as stored. `kept` is the library's instance, reused from one picture to the next.
///
/// With `planes_will_do`, an upright picture of a usual kind is left in its planes, which is less work.
pub(crate) fn decode(
    kept: &mut Option<Decompressor>,
    bytes: &[u8],
    limits: &Limits,
    pixels: &mut Vec<u8>,
    planes_will_do: bool,
) -> Result<(DecodeNotes, Orientation, Layout), ImageError> {
    let mut opened = open(kept, bytes, limits)?;
    let mut remarks = Vec::new();
    let orientation = Orientation::of_jpeg(bytes, &mut remarks);
    let (width, height) = (opened.header.width, opened.header.height);
    let planes = opened
        .planes()
        .filter(|_| planes_will_do && orientation == Orientation::UPRIGHT);
    let (decoded, layout) = if let Some(chroma) = planes {
        let extent = Extent::new((width, height), chroma);
        pixels.resize(extent.luma() + 2 * extent.difference(), 0);
        let image = YuvImage {
            pixels: &mut pixels[..],
            width,
            align: 1,
            height,
            subsamp: opened.header.subsamp,
        };
        (
            opened.library.decompress_to_yuv(bytes, image),
            Layout::Planes(chroma),
        )
    } else {
        pixels.resize(width * height * 3, 0);
        let image = Image {
            pixels: &mut pixels[..],
            width,
            pitch: width * 3,
            height,
            format: PixelFormat::RGB,
        };
        (opened.library.decompress(bytes, image), Layout::Rgb)
    };
    decoded.map_err(|error| fault(&error, bytes))?;
    let notes = opened.notes(orientation, remarks);
    *kept = Some(opened.library);
    Ok((notes, orientation, layout))
}

/// Sides of a difference's plane in samples, and of luma's in those: the library rounds luma up to whole chroma samples.
#[derive(Debug, Clone, Copy)]
struct Extent {
    columns: usize,
    rows: usize,
    across: usize,
    down: usize,
}

impl Extent {
    fn new((width, height): (usize, usize), chroma: Chroma) -> Self {
        let (across, down) = match chroma {
            Chroma::Full => (1, 1),
            Chroma::HalfWidth => (2, 1),
            Chroma::Quarter => (2, 2),
        };
        Self {
            columns: width.div_ceil(across),
            rows: height.div_ceil(down),
            across,
            down,
        }
    }

    fn difference(self) -> usize {
        self.columns * self.rows
    }

    fn luma(self) -> usize {
        self.difference() * self.across * self.down
    }
}

/// The planes that `decode` left in `pixels`.
pub(crate) fn planes(pixels: &[u8], size: (u32, u32), chroma: Chroma) -> YccPlanes<'_> {
    let extent = Extent::new((size.0 as usize, size.1 as usize), chroma);
    let (luma, differences) = pixels.split_at(extent.luma());
    let (blue, red) = differences.split_at(extent.difference());
    YccPlanes {
        size,
        chroma,
        luma,
        luma_stride: extent.columns * extent.across,
        differences: [blue, red],
        difference_stride: extent.columns,
    }
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

#[cfg(test)]
mod tests;
