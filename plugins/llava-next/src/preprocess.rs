//! The processor's files: `preprocessor_config.json` (hub, transformers 4), or `image_processor` inside `processor_config.json`
//! (transformers 5). Knows no pixels.

use crate::config::sizes;
use crate::grid::Size;
use focus_plugin_sdk::{Geometry, PixelMode, PreprocessingCard, ResizeFilter};
use focus_resize::Filter;
use serde::Deserialize;
use serde_json::Value;

/// OpenAI's statistics.
pub const CLIP_MEAN: [f64; 3] = [0.48145466, 0.4578275, 0.40821073];
/// As above.
pub const CLIP_STD: [f64; 3] = [0.26862954, 0.26130258, 0.27577711];

/// How a picture becomes tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// Side of a tile in pixels.
    pub side: u32,
    /// Resolutions to choose from, multiples of `side`; at least one.
    pub pinpoints: Vec<Size>,
    /// Filter.
    pub filter: Filter,
    /// Subtracted, in units of value / 255.
    pub mean: [f64; 3],
    /// Divided by.
    pub std: [f64; 3],
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default = "yes")]
    do_resize: bool,
    #[serde(default = "yes")]
    do_rescale: bool,
    #[serde(default = "yes")]
    do_normalize: bool,
    size: Value,
    crop_size: Option<Value>,
    image_grid_pinpoints: Value,
    resample: Option<u32>,
    rescale_factor: Option<f64>,
    image_mean: Option<[f64; 3]>,
    image_std: Option<[f64; 3]>,
}

fn yes() -> bool {
    true
}

impl Processor {
    /// CLIP's statistics and filter.
    pub fn clip(side: u32, pinpoints: Vec<Size>) -> Self {
        Self {
            side,
            pinpoints,
            filter: Filter::Bicubic,
            mean: CLIP_MEAN,
            std: CLIP_STD,
        }
    }

    /// Read either file. The message says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
        let json = json.get("image_processor").unwrap_or(&json);
        let file: Stored = serde_json::from_value(json.clone()).map_err(|e| e.to_string())?;
        if !(file.do_resize && file.do_rescale) {
            return Err("expected a processor that resizes and rescales".into());
        }
        let factor = file.rescale_factor.unwrap_or(1.0 / 255.0);
        if (factor * 255.0 - 1.0).abs() > 1e-6 {
            return Err(format!("expected `rescale_factor` 1/255, found {factor}"));
        }
        let filter = match file.resample.unwrap_or(3) {
            1 => Filter::Lanczos,
            2 => Filter::Bilinear,
            3 => Filter::Bicubic,
            4 => Filter::Box,
            other => return Err(format!("`resample` {other} is not supported")),
        };
        let side = side("size", &file.size)?;
        // Tiles are cut with the side of the crop and resized to `size`: with one number nothing is resized twice.
        if let Some(crop) = &file.crop_size {
            let crop = self::side("crop_size", crop)?;
            if crop != side {
                return Err(format!(
                    "expected `crop_size` equal to `size`, found {crop} and {side}"
                ));
            }
        }
        let processor = Self {
            side,
            pinpoints: sizes("image_grid_pinpoints", &file.image_grid_pinpoints)?,
            filter,
            mean: file
                .image_mean
                .filter(|_| file.do_normalize)
                .unwrap_or(if file.do_normalize {
                    CLIP_MEAN
                } else {
                    [0.0; 3]
                }),
            std: file
                .image_std
                .filter(|_| file.do_normalize)
                .unwrap_or(if file.do_normalize {
                    CLIP_STD
                } else {
                    [1.0; 3]
                }),
        };
        processor.check()?;
        Ok(processor)
    }

    fn check(&self) -> Result<(), String> {
        let odd = self.pinpoints.iter().find(|size| {
            !(size.height.is_multiple_of(self.side) && size.width.is_multiple_of(self.side))
        });
        if let Some(size) = odd {
            return Err(format!(
                "expected `image_grid_pinpoints` in multiples of {}, found {size}",
                self.side
            ));
        }
        if self.std.iter().any(|&std| !(std.is_finite() && std > 0.0)) {
            return Err(format!(
                "expected `image_std` above 0, found {:?}",
                self.std
            ));
        }
        Ok(())
    }

    /// Most tiles of a picture, the base tile included.
    pub fn most_tiles(&self) -> u32 {
        let tiles = |size: &Size| size.height / self.side * (size.width / self.side);
        1 + self.pinpoints.iter().map(tiles).max().unwrap_or(0)
    }

    /// As the host sees it: the plugin takes full pictures and prepares them itself.
    pub fn card(&self) -> PreprocessingCard {
        PreprocessingCard {
            mode: PixelMode::Own,
            width: self.side,
            height: self.side,
            geometry: Geometry::Fit,
            filter: match self.filter {
                Filter::Box => ResizeFilter::Box,
                Filter::Bilinear => ResizeFilter::Bilinear,
                Filter::Lanczos => ResizeFilter::Lanczos,
                Filter::Bicubic => ResizeFilter::Bicubic,
            },
            mean: self.mean,
            std: self.std,
        }
    }
}

/// `{"shortest_edge"}`, `{"height", "width"}` of one number, or a bare number.
fn side(name: &str, value: &Value) -> Result<u32, String> {
    let field = |key: &str| value.get(key).and_then(Value::as_u64);
    let side = match (
        value.as_u64(),
        field("shortest_edge"),
        field("height"),
        field("width"),
    ) {
        (Some(side), ..) | (None, Some(side), None, None) => Some(side),
        (None, None, Some(height), Some(width)) if height == width => Some(height),
        _ => None,
    };
    side.and_then(|side| u32::try_from(side).ok())
        .filter(|side| (1..=1 << 14).contains(side))
        .ok_or_else(|| format!("`{name}` {value} is not supported: expected one side"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file() -> Value {
        json!({"size": {"shortest_edge": 56}, "crop_size": {"height": 56, "width": 56}, "resample": 3,
            "image_grid_pinpoints": [[56, 112], [112, 56]], "image_mean": CLIP_MEAN, "image_std": CLIP_STD, "rescale_factor": 0.003_921_568_627_450_98})
    }

    #[test]
    fn both_spellings_are_read() {
        let wanted = Processor::clip(56, vec![Size::new(56, 112), Size::new(112, 56)]);
        assert_eq!(Processor::parse(&file().to_string()), Ok(wanted.clone()));
        let newer = json!({"image_processor": file(), "patch_size": 14, "image_token": "<image>"});
        assert_eq!(Processor::parse(&newer.to_string()), Ok(wanted.clone()));
        assert_eq!(wanted.most_tiles(), 3);
    }

    #[test]
    fn what_cannot_be_kept_to_is_refused() {
        for (field, value, said) in [
            (
                "crop_size",
                json!({"height": 28, "width": 28}),
                "found 28 and 56",
            ),
            (
                "crop_size",
                json!({"height": 28, "width": 56}),
                "`crop_size`",
            ),
            ("size", json!(0), "`size` 0"),
            (
                "image_grid_pinpoints",
                json!([[56, 100]]),
                "multiples of 56, found 56x100",
            ),
            ("image_grid_pinpoints", json!([]), "`image_grid_pinpoints`"),
            (
                "image_grid_pinpoints",
                json!([[56]]),
                "`image_grid_pinpoints`",
            ),
            ("resample", json!(5), "`resample` 5"),
            ("rescale_factor", json!(1.0), "1/255"),
            ("do_resize", json!(false), "resizes"),
            ("image_std", json!([0.0, 1.0, 1.0]), "above 0"),
        ] {
            let mut file = file();
            file[field] = value;
            let error = Processor::parse(&file.to_string()).unwrap_err();
            assert!(error.contains(said), "{field}: {error}");
        }
        assert!(Processor::parse("<html>").unwrap_err().contains("not JSON"));
    }
}
