//! JPEG through libjpeg-turbo, with its defaults (slow integer DCT, smooth chroma upsampling), which are Pillow's: the pixels are equal.
//!
//! Where a picture is only resized, it may be left in its planes: `focus-resize` then makes the same pixels a few rows at a time. Where less detail will
//! do, the library decodes at a number of eighths of the size, which is less work.
//!
//! Four inks are inverted where the Adobe marker is there, and only there: Adobe's programs store 255 minus the ink. Pillow inverts always, so it differs
//! for files without the marker, which is remarked on.
//!
//! Every warning of the library is an error: it warns where it has invented pixels. Knows no resizing.

mod markers;

use focus_resize::{Chroma, YccPlanes};
use turbojpeg::{
    Colorspace, DecompressHeader, Decompressor, Image, PixelFormat, ScalingFactor, Subsamp,
    YuvImage,
};

use markers::{has_adobe_marker, is_cut, pictures};

use crate::orientation::Orientation;
use crate::raster::ink;
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
    let limit = match header.colorspace {
        // One byte more for each pixel, in a buffer of its own.
        Colorspace::CMYK | Colorspace::YCCK => limits.max_pixels / 2,
        _ => limits.max_pixels,
    };
    if width as u64 * height as u64 > limit {
        return Err(ImageError::TooLarge {
            width: width as u64,
            height: height as u64,
            limit,
        });
    }
    let mode = match header.colorspace {
        Colorspace::YCbCr => SourceMode::Ycbcr,
        Colorspace::RGB => SourceMode::Rgb,
        Colorspace::Gray => SourceMode::Grey,
        Colorspace::CMYK => SourceMode::Cmyk,
        Colorspace::YCCK => SourceMode::Ycck,
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
            eighths: None,
            field: None,
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

/// How much of a picture is wanted.
#[derive(Clone, Copy)]
pub(crate) enum Detail<'a> {
    /// All of it, as RGB.
    Full,
    /// All of it; planes will do for an upright picture of a usual kind, which is less work.
    Planes,
    /// A number of eighths of each side, 1 to 8, for an upright picture of the size that it is given; with 8 planes may do.
    Eighths {
        wanted: &'a dyn Fn((u32, u32)) -> u8,
        planes: bool,
    },
}

/// What `decode` made.
pub(crate) struct Made {
    pub notes: DecodeNotes,
    pub orientation: Orientation,
    pub layout: Layout,
    /// Width and height as decoded, before orientation.
    pub size: (u32, u32),
}

/// Scales that are used: those that the library has vector code for. At five eighths a photograph takes twice as long as in full.
const SCALES: [u8; 4] = [1, 2, 4, 8];

/// Decodes into `pixels`, as stored. `kept` is the library's instance, reused from one picture to the next; `raw` is room for inks.
pub(crate) fn decode(
    kept: &mut Option<Decompressor>,
    bytes: &[u8],
    limits: &Limits,
    (raw, pixels): (&mut Vec<u8>, &mut Vec<u8>),
    detail: Detail<'_>,
) -> Result<Made, ImageError> {
    let mut opened = open(kept, bytes, limits)?;
    let mut remarks = Vec::new();
    let orientation = Orientation::of_jpeg(bytes, &mut remarks);
    if let Some(count) = pictures(bytes) {
        remarks.push(format!(
            "a multi-picture file (MPO) of {count}; the first is read"
        ));
    }
    let stored = (opened.header.width as u32, opened.header.height as u32);
    let eighths = match detail {
        Detail::Eighths { wanted, .. } if !opened.header.is_lossless => {
            let wanted = wanted(orientation.upright(stored));
            SCALES
                .into_iter()
                .find(|&scale| scale >= wanted)
                .unwrap_or(8)
        }
        _ => 8,
    };
    let factor = ScalingFactor::new(eighths.into(), 8);
    let scale = |library: &mut Decompressor, factor| {
        library
            .set_scaling_factor(factor)
            .map_err(|error| ImageError::Decoder {
                reason: error.to_string(),
            })
    };
    if eighths < 8 {
        scale(&mut opened.library, factor)?;
    }
    let (width, height) = (
        factor.scale(opened.header.width),
        factor.scale(opened.header.height),
    );
    let planes_will_do = matches!(
        detail,
        Detail::Planes | Detail::Eighths { planes: true, .. }
    );
    let planes = opened
        .planes()
        .filter(|_| planes_will_do && eighths == 8 && orientation == Orientation::UPRIGHT);
    let inks = matches!(opened.mode, SourceMode::Cmyk | SourceMode::Ycck);
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
        let (buffer, format) = if inks {
            (&mut *raw, PixelFormat::CMYK)
        } else {
            (&mut *pixels, PixelFormat::RGB)
        };
        buffer.resize(width * height * format.size(), 0);
        let image = Image {
            pixels: &mut buffer[..],
            width,
            pitch: width * format.size(),
            height,
            format,
        };
        (opened.library.decompress(bytes, image), Layout::Rgb)
    };
    decoded.map_err(|error| fault(&error, bytes))?;
    if eighths < 8 {
        scale(&mut opened.library, ScalingFactor::ONE)?;
    }
    if inks {
        let inverted = has_adobe_marker(bytes);
        if !inverted {
            remarks.push("inks without the Adobe marker, taken as they are".into());
        }
        let turn = if inverted { 255 } else { 0 };
        pixels.clear();
        pixels.extend(
            raw.as_chunks::<4>()
                .0
                .iter()
                .flat_map(|inks| ink(inks.map(|value| value ^ turn))),
        );
    }
    let mut notes = opened.notes(orientation, remarks);
    notes.eighths = (eighths < 8).then_some(eighths);
    *kept = Some(opened.library);
    Ok(Made {
        notes,
        orientation,
        layout,
        size: (width as u32, height as u32),
    })
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

#[cfg(test)]
mod tests;
