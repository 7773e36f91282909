//! What a model's card and a run ask of the pixels, and the stable key of it. Knows no files.

use std::fmt::Write as _;

use focus_resize::Filter;
use serde::{Deserialize, Serialize};

use crate::FieldSteps;

/// Version of everything that decides pixels here: decoders, orientation, compositing, geometry, resampling. Raised when any byte could change.
///
/// 1: libjpeg-turbo 3.1, png 0.18, alpha on black, Pillow 13's resampling and order of passes.
pub const PIXEL_VERSION: u32 = 1;

/// Version of the floating-point preparation; part of the key of such specs only.
///
/// 1: values / 255 in f32, rows first, sums in f64 rounded to f32 after each pass.
pub const FLOAT_VERSION: u32 = 1;

/// Version of what the field-of-view steps find and do; part of the key of specs with steps only.
pub const FIELD_VERSION: u32 = 1;

/// Version of the choice of scales in [`Decode::Fast`]; part of the key of such specs only.
pub const FAST_VERSION: u32 = 1;

/// From the photograph's shape to the model's. Mirrors the plugin contract's enum of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Geometry {
    /// Both sides to the final size, aspect ignored.
    Squash,
    /// Short side to `edge`, long side in proportion and truncated to an integer (torchvision, Hugging Face), then a centre crop of the final size,
    /// padded with black where the final size is larger.
    ShortestEdgeCrop {
        /// Short side after resizing, in pixels.
        edge: u32,
    },
    /// The whole picture within the final size, black bars on the rest; sides and bars rounded as Pillow's `ImageOps.pad`.
    Fit,
    /// Long side to the final size, short side in proportion and truncated to an integer, in the upper left corner; black on the rest. FLAIR's rule, with
    /// its division in f64: where the final side is no power of two, the long side too may come out a pixel short.
    FitCorner,
}

/// Number type of prepared pixels. Mirrors the plugin contract's enum of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PixelType {
    /// A byte a channel, rounded and clamped after each pass as Pillow does.
    #[default]
    U8,
    /// `f32` in units of value / 255, resized without rounding to bytes and without clamping, as torchvision resizes tensors.
    F32,
}

impl PixelType {
    /// Bytes of a pixel of three channels.
    pub fn pixel_bytes(self) -> usize {
        match self {
            Self::U8 => 3,
            Self::F32 => 12,
        }
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_u8(&self) -> bool {
        *self == Self::U8
    }
}

/// Resampling filter. Mirrors the plugin contract's enum of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResizeFilter {
    /// Support 0.5.
    Box,
    /// Support 1.
    Bilinear,
    /// Support 2, a = -0.5.
    Bicubic,
    /// Support 3.
    Lanczos,
}

impl From<ResizeFilter> for Filter {
    fn from(filter: ResizeFilter) -> Self {
        match filter {
            ResizeFilter::Box => Self::Box,
            ResizeFilter::Bilinear => Self::Bilinear,
            ResizeFilter::Bicubic => Self::Bicubic,
            ResizeFilter::Lanczos => Self::Lanczos,
        }
    }
}

/// How exactly JPEG is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decode {
    /// In full: the pixels are Pillow's.
    #[default]
    Exact,
    /// JPEG at a reduced scale of its transform (an eighth, a quarter or half of the stored size), no smaller than twice the size that it is then resized
    /// to, in both directions; in full where none of these will do. Pixels differ a little from the exact ones. Other formats are decoded in full.
    Fast,
}

impl Decode {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// The pixels that a card asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareSpec {
    /// Final width in pixels, at least 1.
    pub width: u32,
    /// Final height in pixels, at least 1.
    pub height: u32,
    /// From the photograph's shape to the final one.
    pub geometry: Geometry,
    /// Resampling filter.
    pub filter: ResizeFilter,
    /// Field-of-view steps before the geometry; none by default.
    #[serde(default, skip_serializing_if = "FieldSteps::is_empty")]
    pub steps: FieldSteps,
    /// How exactly JPEG is decoded.
    #[serde(default, skip_serializing_if = "Decode::is_exact")]
    pub decode: Decode,
    /// Number type of the pixels.
    #[serde(default, skip_serializing_if = "PixelType::is_u8")]
    pub pixels: PixelType,
}

impl PrepareSpec {
    /// What a card asks for: bytes, no field-of-view steps, decoded exactly.
    pub fn new(width: u32, height: u32, geometry: Geometry, filter: ResizeFilter) -> Self {
        Self {
            width,
            height,
            geometry,
            filter,
            steps: FieldSteps::NONE,
            decode: Decode::Exact,
            pixels: PixelType::U8,
        }
    }

    /// The same with field-of-view steps.
    #[must_use]
    pub fn with_steps(self, steps: FieldSteps) -> Self {
        Self { steps, ..self }
    }

    /// The same, decoded as `decode` says.
    #[must_use]
    pub fn with_decode(self, decode: Decode) -> Self {
        Self { decode, ..self }
    }

    /// The same as `pixels`.
    #[must_use]
    pub fn with_pixels(self, pixels: PixelType) -> Self {
        Self { pixels, ..self }
    }

    /// In words; equal for equal pixels, and stable between versions that make equal pixels.
    pub fn canonical(&self) -> String {
        let mut text = format!("focus-pixels {PIXEL_VERSION}; ");
        match self.pixels {
            PixelType::U8 => text.push_str("rgb8"),
            PixelType::F32 => {
                let _ = write!(text, "rgbf32 {FLOAT_VERSION}");
            }
        }
        let _ = write!(text, " {}x{}; ", self.width, self.height);
        match self.geometry {
            Geometry::Squash => text.push_str("squash"),
            Geometry::ShortestEdgeCrop { edge } => {
                let _ = write!(text, "shortest-edge-crop {edge}");
            }
            Geometry::Fit => text.push_str("fit"),
            Geometry::FitCorner => text.push_str("fit-corner"),
        }
        let _ = write!(text, "; {}", Filter::from(self.filter).name());
        if !self.steps.is_empty() {
            let _ = write!(text, "; field {FIELD_VERSION} {}", self.steps);
        }
        if self.decode == Decode::Fast {
            let _ = write!(text, "; decode fast {FAST_VERSION}");
        }
        text
    }

    /// BLAKE3 of [`Self::canonical`] in hexadecimal: part of every cache key over pixels.
    pub fn key(&self) -> String {
        blake3::hash(self.canonical().as_bytes())
            .to_hex()
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_every_field_apart_and_stay_the_same() {
        let base = PrepareSpec::new(224, 224, Geometry::Squash, ResizeFilter::Bilinear);
        assert_eq!(
            base.canonical(),
            "focus-pixels 1; rgb8 224x224; squash; bilinear"
        );
        let variants = [
            base,
            PrepareSpec { width: 225, ..base },
            PrepareSpec {
                height: 225,
                ..base
            },
            PrepareSpec {
                geometry: Geometry::Fit,
                ..base
            },
            PrepareSpec {
                geometry: Geometry::ShortestEdgeCrop { edge: 224 },
                ..base
            },
            PrepareSpec {
                geometry: Geometry::ShortestEdgeCrop { edge: 256 },
                ..base
            },
            PrepareSpec {
                filter: ResizeFilter::Bicubic,
                ..base
            },
            PrepareSpec {
                geometry: Geometry::FitCorner,
                ..base
            },
            base.with_pixels(PixelType::F32),
            base.with_decode(Decode::Fast),
            base.with_steps("crop".parse().unwrap()),
            base.with_steps("crop,mask".parse().unwrap()),
            base.with_steps("crop,pad,mask".parse().unwrap()),
        ];
        let keys: std::collections::HashSet<String> =
            variants.iter().map(PrepareSpec::key).collect();
        assert_eq!(keys.len(), variants.len());
        assert!(keys.iter().all(|key| key.len() == 64));
        assert_eq!(
            base.with_steps("pad,crop".parse().unwrap())
                .with_decode(Decode::Fast)
                .canonical(),
            "focus-pixels 1; rgb8 224x224; squash; bilinear; field 1 crop,pad; decode fast 1"
        );
    }

    #[test]
    fn specs_are_spelled_as_in_the_plugin_contract() {
        let spec = PrepareSpec::new(
            224,
            224,
            Geometry::ShortestEdgeCrop { edge: 256 },
            ResizeFilter::Bicubic,
        );
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            json,
            r#"{"width":224,"height":224,"geometry":{"kind":"shortest_edge_crop","edge":256},"filter":"bicubic"}"#
        );
        assert_eq!(serde_json::from_str::<PrepareSpec>(&json).unwrap(), spec);
        let spec = spec
            .with_steps("mask,pad".parse().unwrap())
            .with_decode(Decode::Fast);
        let json = serde_json::to_string(&spec).unwrap();
        assert!(
            json.ends_with(r#""steps":["mask","pad"],"decode":"fast"}"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<PrepareSpec>(&json).unwrap(), spec);
        let spec = PrepareSpec::new(8, 8, Geometry::FitCorner, ResizeFilter::Box)
            .with_pixels(PixelType::F32);
        assert_eq!(
            spec.canonical(),
            "focus-pixels 1; rgbf32 1 8x8; fit-corner; box"
        );
        let json = serde_json::to_string(&spec).unwrap();
        assert!(
            json.ends_with(r#""filter":"box","pixels":"f32"}"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<PrepareSpec>(&json).unwrap(), spec);
    }
}
