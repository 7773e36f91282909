//! The image processor's file: `preprocessor_config.json`, or the `image_processor` inside transformers 5's `processor_config.json`; and
//! FLAIR's preparation, which no file describes.

use focus_plugin_sdk::{Geometry, PixelMode, PreprocessingCard, ResizeFilter};
use serde::Deserialize;
use serde_json::Value;

/// OpenAI's statistics.
pub const CLIP_MEAN: [f64; 3] = [0.48145466, 0.4578275, 0.40821073];
/// As above.
pub const CLIP_STD: [f64; 3] = [0.26862954, 0.26130258, 0.27577711];

/// Both sides to `side`, aspect ignored.
pub fn squash(side: u32, filter: ResizeFilter, mean: [f64; 3], std: [f64; 3]) -> PreprocessingCard {
    PreprocessingCard {
        mode: PixelMode::Resized,
        width: side,
        height: side,
        geometry: Geometry::Squash,
        filter,
        mean,
        std,
    }
}

/// OpenAI's: short side to `side`, bicubic, and the middle of it.
pub fn clip(side: u32) -> PreprocessingCard {
    PreprocessingCard {
        geometry: Geometry::ShortestEdgeCrop { edge: side },
        ..squash(side, ResizeFilter::Bicubic, CLIP_MEAN, CLIP_STD)
    }
}

/// FLAIR's: in floating point, the long side to the canvas, the rest of it zero. (Its code leaves out the division by 255 for a picture
/// that is black all over, which is the same.)
pub fn flair(side: u32) -> PreprocessingCard {
    PreprocessingCard {
        mode: PixelMode::Float,
        geometry: Geometry::FitCorner,
        ..squash(side, ResizeFilter::Bilinear, [0.0; 3], [1.0; 3])
    }
}

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
}

fn yes() -> bool {
    true
}

/// Read either file. A filter that is not named is bicubic, as for both CLIP's and SigLIP's processors.
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
    let filter = match file.resample.unwrap_or(3) {
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
        // Older files say `size: 224` and mean the short side where they crop.
        (Sides::Shortest(edge) | Sides::Number(edge), Some(crop)) => {
            let (width, height) = match crop {
                Sides::Both(width, height) => (width, height),
                Sides::Shortest(side) | Sides::Number(side) => (side, side),
            };
            (width, height, Geometry::ShortestEdgeCrop { edge })
        }
        (Sides::Number(side), None) => (side, side, Geometry::Squash),
        (size, crop) => return Err(format!("size {size:?} with crop {crop:?} is not supported")),
    };
    if width == 0 || height == 0 {
        return Err("a side is 0".into());
    }
    Ok(PreprocessingCard {
        mode: PixelMode::Resized,
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
    Number(u32),
}

impl Sides {
    /// `{"height", "width"}`, `{"shortest_edge"}`, or a bare number.
    fn read(value: &Value) -> Result<Self, String> {
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        let field = |name: &str| value.get(name).and_then(number);
        if let Some(side) = number(value) {
            return Ok(Self::Number(side));
        }
        match (field("width"), field("height"), field("shortest_edge")) {
            (Some(width), Some(height), None) => Ok(Self::Both(width, height)),
            (None, None, Some(edge)) => Ok(Self::Shortest(edge)),
            _ => Err(format!("size {value} is not supported")),
        }
    }
}
