//! Label masks: stored values read as they are, turned into labels by a coding that the caller names, resized by the nearest sample only.
//!
//! Owns the coding and the mask. Must not know what the labels mean. Palettes are never looked up in PNG, TIFF and GIF: the index is the value. In BMP, whose
//! writers always add a palette, a grey palette's level is the value.

mod measure;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

pub use measure::vertical_cup_to_disc;

use crate::raster::{Color, Raster, Samples};
use crate::{ImageError, ImageFormat, Limits, format, read_file, workspace};

/// From stored values to labels. A value that is not named is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskCoding {
    labels: BTreeMap<u16, u8>,
}

impl MaskCoding {
    /// Of pairs of a stored value and its label; of equal values the last counts.
    pub fn new(pairs: impl IntoIterator<Item = (u16, u8)>) -> Self {
        Self {
            labels: pairs.into_iter().collect(),
        }
    }

    /// Values 0 to `most` are the labels themselves: ORIGA, G1020, the copies of REFUGE that hold 0, 1, 2.
    pub fn labels(most: u8) -> Self {
        Self::new((0..=most).map(|label| (label.into(), label)))
    }

    /// REFUGE's original bitmaps: 255 background, 128 disc, 0 cup become 0, 1 and 2.
    pub fn refuge() -> Self {
        Self::new([(255, 0), (128, 1), (0, 2)])
    }

    /// 0 is the structure and 255 the background, as in ADAM and PALM: labels 1 and 0.
    pub fn dark_on_white() -> Self {
        Self::new([(255, 0), (0, 1)])
    }

    /// 255 is the structure and 0 the background, as in FIVES: labels 1 and 0.
    pub fn white_on_dark() -> Self {
        Self::new([(0, 0), (255, 1)])
    }

    fn in_words(&self) -> String {
        let names: Vec<String> = self
            .labels
            .keys()
            .map(|value| format!("`{value}`"))
            .collect();
        names.join(", ")
    }
}

/// One label a pixel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMask {
    width: u32,
    height: u32,
    labels: Vec<u8>,
}

impl LabelMask {
    /// Of `width * height` labels, rows top to bottom; `None` where the count is another or a side is 0.
    pub fn new(width: u32, height: u32, labels: Vec<u8>) -> Option<Self> {
        let fits = width > 0 && height > 0 && labels.len() == width as usize * height as usize;
        fits.then_some(Self {
            width,
            height,
            labels,
        })
    }

    /// Width in pixels, at least 1.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels, at least 1.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Labels, rows top to bottom.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// The label at column `x` and row `y`; `None` outside.
    pub fn label(&self, x: u32, y: u32) -> Option<u8> {
        let inside = x < self.width && y < self.height;
        inside.then(|| self.labels[y as usize * self.width as usize + x as usize])
    }

    /// The mask at another size, each pixel the label of the nearest sample: Pillow's `NEAREST`, pixel for pixel. Nothing between two labels is ever made.
    pub fn resize(&self, width: u32, height: u32) -> Result<Self, ImageError> {
        let area = u64::from(width) * u64::from(height);
        if area == 0 || area > MOST_PIXELS {
            return Err(ImageError::Geometry {
                width: self.width,
                height: self.height,
                reason: format!(
                    "expected a mask of 1 to `{MOST_PIXELS}` pixels, found `{width}` x `{height}`"
                ),
            });
        }
        let columns = nearest(self.width, width);
        let mut labels = Vec::with_capacity(area as usize);
        for from in nearest(self.height, height) {
            let row = &self.labels[from * self.width as usize..][..self.width as usize];
            labels.extend(columns.iter().map(|&x| row[x]));
        }
        Ok(Self {
            width,
            height,
            labels,
        })
    }
}

/// Largest mask that is made by resizing.
const MOST_PIXELS: u64 = 1 << 30;

/// For each pixel along a side the sample that it takes. The position is summed up, as in Pillow: for some sizes a product would round the other way.
fn nearest(from: u32, to: u32) -> Vec<usize> {
    let step = f64::from(from) / f64::from(to);
    let mut at = step * 0.5;
    (0..to)
        .map(|_| {
            let sample = (at as usize).min(from as usize - 1);
            at += step;
            sample
        })
        .collect()
}

/// Reads a mask from a path; the file is capped and checked as a photograph's is.
pub fn read_mask_file(
    path: impl AsRef<Path>,
    coding: &MaskCoding,
    limits: &Limits,
) -> Result<LabelMask, ImageError> {
    read_mask(&read_file(path, limits)?, coding, limits)
}

/// Reads a mask from a file's bytes: PNG, BMP, TIFF, GIF or PNM of indices, or of grey of 1 to 16 bits, or of colours whose three parts are equal and
/// whose alpha is full. EXIF orientation is applied where the file has one. Lossy formats are refused, since they invent labels.
pub fn read_mask(
    bytes: &[u8],
    coding: &MaskCoding,
    limits: &Limits,
) -> Result<LabelMask, ImageError> {
    let format = format::sniff(bytes)?;
    if matches!(format, ImageFormat::Jpeg | ImageFormat::Webp) {
        return Err(ImageError::Unsupported {
            format,
            what: "a mask in a format that may lose values".into(),
        });
    }
    let (raster, orientation) = workspace::raster(bytes, format, limits, &mut Vec::new())?;
    let values = values(&raster, format)?;
    let labels = decode(&values, coding)?;
    let size = (raster.width, raster.height);
    let mut upright = Vec::new();
    let (width, height) = orientation.turn::<1>(&labels, size, &mut upright);
    Ok(LabelMask {
        width,
        height,
        labels: upright,
    })
}

/// The stored value of each pixel.
fn values(raster: &Raster, format: ImageFormat) -> Result<Vec<u16>, ImageError> {
    let stored: Vec<u16> = match &raster.samples {
        Samples::Bytes(samples) => samples.iter().map(|&value| value.into()).collect(),
        Samples::Words(samples) => samples.clone(),
    };
    let opaque = if raster.bits == 16 { u16::MAX } else { 255 };
    // Colours of a pixel that must be equal, and whether alpha follows them.
    let (colors, alpha) = match &raster.color {
        Color::Palette(palette) => {
            let grey = palette
                .iter()
                .all(|color| color[0] == color[1] && color[1] == color[2]);
            let level = |value: u16| match palette.get(usize::from(value)) {
                Some(color) if grey && format == ImageFormat::Bmp => color[0].into(),
                _ => value,
            };
            return Ok(stored
                .chunks_exact(raster.stride)
                .map(|pixel| level(pixel[0]))
                .collect());
        }
        Color::Grey => (1, false),
        Color::GreyAlpha => (1, true),
        Color::Rgb => (3, false),
        Color::Rgba => (3, true),
        Color::Cmyk => {
            return Err(ImageError::Unsupported {
                format,
                what: "a mask in inks".into(),
            });
        }
    };
    let plain = |pixel: &[u16]| {
        pixel[..colors].iter().all(|&value| value == pixel[0])
            && (!alpha || pixel[colors] == opaque)
    };
    let pixels = || stored.chunks_exact(raster.stride);
    if let Some(first) = pixels().position(|pixel| !plain(pixel)) {
        return Err(ImageError::MaskColor {
            x: first as u32 % raster.width,
            y: first as u32 / raster.width,
            count: pixels().filter(|pixel| !plain(pixel)).count() as u64,
        });
    }
    Ok(pixels().map(|pixel| pixel[0]).collect())
}

fn decode(values: &[u16], coding: &MaskCoding) -> Result<Vec<u8>, ImageError> {
    let mut table = vec![None; 1 << 16];
    for (&value, &label) in &coding.labels {
        table[usize::from(value)] = Some(label);
    }
    let labels: Option<Vec<u8>> = values
        .iter()
        .map(|&value| table[usize::from(value)])
        .collect();
    labels.ok_or_else(|| {
        let unknown = values
            .iter()
            .find(|&&value| table[usize::from(value)].is_none());
        let value = *unknown.expect("a value without a label");
        ImageError::MaskValue {
            value,
            count: values.iter().filter(|&&found| found == value).count() as u64,
            expected: coding.in_words(),
        }
    })
}
