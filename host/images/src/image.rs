//! Pixels, the notes on how they were decoded, and the name of a file's content. Decodes nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FieldNotes, ImageFormat, PixelType};

/// An 8-bit RGB image: rows top to bottom, three bytes a pixel, no padding.
#[derive(Clone, PartialEq, Eq)]
pub struct RgbImage {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub pixels: Vec<u8>,
}

impl RgbImage {
    /// The three channels at column `x` and row `y`.
    ///
    /// # Panics
    ///
    /// When the pixel lies outside the image.
    pub fn pixel(&self, x: u32, y: u32) -> [u8; 3] {
        assert!(
            x < self.width && y < self.height,
            "pixel {x}, {y} of an image of {} x {}",
            self.width,
            self.height
        );
        let at = (y as usize * self.width as usize + x as usize) * 3;
        [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
    }
}

impl fmt::Debug for RgbImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RgbImage({} x {})", self.width, self.height)
    }
}

/// A picture as a model's card asks for it: rows top to bottom, three channels interleaved, no padding.
#[derive(Clone, PartialEq, Eq)]
pub struct PreparedImage {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// Number type of the channels.
    pub kind: PixelType,
    /// `width * height` times the bytes of a pixel; `f32` values are little-endian.
    pub pixels: Vec<u8>,
}

impl PreparedImage {
    /// The picture as bytes; `None` where its channels are something else.
    pub fn into_rgb(self) -> Option<RgbImage> {
        (self.kind == PixelType::U8).then_some(RgbImage {
            width: self.width,
            height: self.height,
            pixels: self.pixels,
        })
    }

    /// Every value in units of value / 255, whatever the number type.
    pub fn floats(&self) -> Vec<f32> {
        match self.kind {
            PixelType::U8 => self.pixels.iter().map(|&v| f32::from(v) / 255.0).collect(),
            PixelType::F32 => self
                .pixels
                .chunks_exact(4)
                .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect(),
        }
    }
}

impl fmt::Debug for PreparedImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "PreparedImage({:?}, {} x {})",
            self.kind, self.width, self.height
        )
    }
}

/// How the file stored its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceMode {
    /// One channel; expanded to three equal ones.
    Grey,
    /// One channel and alpha.
    GreyAlpha,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue and alpha.
    Rgba,
    /// Indices into a palette.
    Palette,
    /// Luma and two colour differences (usual in JPEG).
    Ycbcr,
    /// Four inks: cyan, magenta, yellow, black.
    Cmyk,
    /// The same as luma, two colour differences and black (JPEG).
    Ycck,
}

/// What was done between the file and the pixels; goes into the run's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodeNotes {
    /// The file's format, by content.
    pub format: ImageFormat,
    /// Width as stored, before orientation.
    pub stored_width: u32,
    /// Height as stored, before orientation.
    pub stored_height: u32,
    /// EXIF orientation that was applied, 1 to 8; 1 is upright, and also the value where the file says nothing usable.
    pub orientation: u8,
    /// How the file stored its colours.
    pub mode: SourceMode,
    /// Bits for each stored sample: 1, 2, 4, 8 or 16. Colours of 16 bits keep their upper byte; 16-bit grey becomes `value / 257`, rounded.
    pub bits: u8,
    /// Whether the file had an alpha channel or transparent colours, composited on black.
    pub alpha_composited: bool,
    /// How many pixels were not fully opaque.
    pub translucent_pixels: u64,
    /// Eighths of the stored size that a JPEG was decoded at under [`crate::Decode::Fast`], 1 to 7; absent where it was decoded in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eighths: Option<u8>,
    /// What the field-of-view steps found and did; absent where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldNotes>,
    /// Odd things that did not change how the picture was read, such as an EXIF block that cannot be parsed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Name of a file's content: BLAKE3 of its bytes, shown in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Of a file's bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let hash = blake3::Hash::from_hex(&text).map_err(serde::de::Error::custom)?;
        Ok(Self(*hash.as_bytes()))
    }
}
