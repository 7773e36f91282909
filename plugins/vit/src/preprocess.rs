//! The image processor's file: `preprocessor_config.json`, or the `image_processor` inside transformers 5's `processor_config.json`.

use focus_plugin_sdk::{Geometry, PixelMode, PreprocessingCard, ResizeFilter};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Processor {
    #[serde(default = "yes")]
    do_resize: bool,
    #[serde(default = "yes")]
    do_rescale: bool,
    #[serde(default = "yes")]
    do_normalize: bool,
    do_center_crop: Option<bool>,
    size: Value,
    crop_size: Option<Value>,
    resample: Option<u32>,
    rescale_factor: Option<f64>,
    image_mean: Option<[f64; 3]>,
    image_std: Option<[f64; 3]>,
    image_processor_type: Option<String>,
    feature_extractor_type: Option<String>,
}

fn yes() -> bool {
    true
}

/// Read either file. DINOv3's processor rescales before it resizes, so its pixels are floats.
pub fn parse(text: &str) -> Result<PreprocessingCard, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let json = json.get("image_processor").unwrap_or(&json);
    let file: Processor = serde_json::from_value(json.clone()).map_err(|e| e.to_string())?;
    if !(file.do_resize && file.do_rescale) {
        return Err("expected a processor that resizes and rescales".into());
    }
    let factor = file.rescale_factor.unwrap_or(1.0 / 255.0);
    if (factor * 255.0 - 1.0).abs() > 1e-6 {
        return Err(format!("expected `rescale_factor` 1/255, found {factor}"));
    }
    let kind = file
        .image_processor_type
        .or(file.feature_extractor_type)
        .unwrap_or_default();
    let filter = match file.resample.unwrap_or(2) {
        1 => ResizeFilter::Lanczos,
        2 => ResizeFilter::Bilinear,
        3 => ResizeFilter::Bicubic,
        4 => ResizeFilter::Box,
        other => return Err(format!("`resample` {other} is not supported")),
    };
    let size = Sides::read(&file.size)?;
    let crop = file
        .do_center_crop
        .unwrap_or(file.crop_size.is_some())
        .then_some(file.crop_size.as_ref())
        .flatten()
        .map(Sides::read)
        .transpose()?;
    let (width, height, geometry) = match (size, crop) {
        (Sides::Both(width, height), None) => (width, height, Geometry::Squash),
        (Sides::Shortest(edge), Some(Sides::Both(width, height))) => {
            (width, height, Geometry::ShortestEdgeCrop { edge })
        }
        (Sides::Shortest(edge), Some(Sides::Shortest(side))) => {
            (side, side, Geometry::ShortestEdgeCrop { edge })
        }
        (size, crop) => return Err(format!("size {size:?} with crop {crop:?} is not supported")),
    };
    if width == 0 || height == 0 {
        return Err("a side is 0".into());
    }
    Ok(PreprocessingCard {
        mode: if kind.starts_with("DINOv3") {
            PixelMode::Float
        } else {
            PixelMode::Resized
        },
        width,
        height,
        geometry,
        filter,
        mean: file
            .image_mean
            .filter(|_| file.do_normalize)
            .unwrap_or([0.0; 3]),
        std: file
            .image_std
            .filter(|_| file.do_normalize)
            .unwrap_or([1.0; 3]),
    })
}

#[derive(Debug)]
enum Sides {
    Both(u32, u32),
    Shortest(u32),
}

impl Sides {
    /// `{"height", "width"}`, `{"shortest_edge"}`, or a bare number, which older files have for squares.
    fn read(value: &Value) -> Result<Self, String> {
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        let field = |name: &str| value.get(name).and_then(number);
        if let Some(side) = number(value) {
            return Ok(Self::Both(side, side));
        }
        match (field("width"), field("height"), field("shortest_edge")) {
            (Some(width), Some(height), None) => Ok(Self::Both(width, height)),
            (None, None, Some(edge)) => Ok(Self::Shortest(edge)),
            _ => Err(format!("size {value} is not supported")),
        }
    }
}
