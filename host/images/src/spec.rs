//! What a model's card asks of the pixels, and the stable key of it. Knows no files.

use std::fmt::Write as _;

use focus_resize::Filter;
use serde::{Deserialize, Serialize};

/// Version of everything that decides pixels here: decoders, orientation, compositing, geometry, resampling. Raised when any byte could change.
///
/// 1: libjpeg-turbo 3.1, png 0.18, alpha on black, Pillow 13's resampling and order of passes.
pub const PIXEL_VERSION: u32 = 1;

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
}

impl PrepareSpec {
    /// In words; equal for equal pixels, and stable between versions that make equal pixels.
    pub fn canonical(&self) -> String {
        let mut text = format!(
            "focus-pixels {PIXEL_VERSION}; rgb8 {}x{}; ",
            self.width, self.height
        );
        match self.geometry {
            Geometry::Squash => text.push_str("squash"),
            Geometry::ShortestEdgeCrop { edge } => {
                let _ = write!(text, "shortest-edge-crop {edge}");
            }
            Geometry::Fit => text.push_str("fit"),
        }
        let _ = write!(text, "; {}", Filter::from(self.filter).name());
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
        let base = PrepareSpec {
            width: 224,
            height: 224,
            geometry: Geometry::Squash,
            filter: ResizeFilter::Bilinear,
        };
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
        ];
        let keys: std::collections::HashSet<String> =
            variants.iter().map(PrepareSpec::key).collect();
        assert_eq!(keys.len(), variants.len());
        assert!(keys.iter().all(|key| key.len() == 64));
    }

    #[test]
    fn specs_are_spelled_as_in_the_plugin_contract() {
        let spec = PrepareSpec {
            width: 224,
            height: 224,
            geometry: Geometry::ShortestEdgeCrop { edge: 256 },
            filter: ResizeFilter::Bicubic,
        };
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            json,
            r#"{"width":224,"height":224,"geometry":{"kind":"shortest_edge_crop","edge":256},"filter":"bicubic"}"#
        );
        assert_eq!(serde_json::from_str::<PrepareSpec>(&json).unwrap(), spec);
    }
}
