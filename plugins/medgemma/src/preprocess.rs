//! The image processor's file: `preprocessor_config.json`, or the `image_processor` inside transformers 5's `processor_config.json`.

use focus_plugin_sdk::{Geometry, PixelMode, PreprocessingCard, ResizeFilter};
use serde::Deserialize;
use serde_json::Value;

/// Both sides to `side`, aspect ignored, bilinear, means and deviations of a half.
pub fn square(side: u32) -> PreprocessingCard {
    PreprocessingCard {
        mode: PixelMode::Resized,
        width: side,
        height: side,
        geometry: Geometry::Squash,
        filter: ResizeFilter::Bilinear,
        mean: [0.5; 3],
        std: [0.5; 3],
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
    do_pan_and_scan: Option<bool>,
    size: Option<Size>,
    resample: Option<u32>,
    rescale_factor: Option<f64>,
    image_mean: Option<[f64; 3]>,
    image_std: Option<[f64; 3]>,
}

#[derive(Deserialize)]
struct Size {
    height: u32,
    width: u32,
}

fn yes() -> bool {
    true
}

/// What a processor's file says, and whether it asks for pan and scan, which is not done.
pub fn parse(text: &str, side: u32) -> Result<(PreprocessingCard, bool), String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let json = json.get("image_processor").unwrap_or(&json);
    let file: Processor = serde_json::from_value(json.clone()).map_err(|e| e.to_string())?;
    if !(file.do_resize && file.do_rescale && file.do_normalize) {
        return Err("expected a processor that resizes, rescales and normalises".into());
    }
    let factor = file.rescale_factor.unwrap_or(1.0 / 255.0);
    if (factor * 255.0 - 1.0).abs() > 1e-6 {
        return Err(format!("expected `rescale_factor` 1/255, found {factor}"));
    }
    let (width, height) = file
        .size
        .map_or((side, side), |size| (size.width, size.height));
    if (width, height) != (side, side) {
        return Err(format!(
            "expected pictures of {side} x {side}, found {width} x {height}"
        ));
    }
    let filter = match file.resample.unwrap_or(2) {
        1 => ResizeFilter::Lanczos,
        2 => ResizeFilter::Bilinear,
        3 => ResizeFilter::Bicubic,
        4 => ResizeFilter::Box,
        other => return Err(format!("`resample` {other} is not supported")),
    };
    let (mean, std) = (
        file.image_mean.unwrap_or([0.5; 3]),
        file.image_std.unwrap_or([0.5; 3]),
    );
    if std.iter().any(|value| !(value.is_finite() && *value > 0.0)) {
        return Err(format!("`image_std` {std:?} does not divide"));
    }
    let card = PreprocessingCard {
        filter,
        mean,
        std,
        ..square(side)
    };
    Ok((card, file.do_pan_and_scan.unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_what_is_left_out() {
        let (card, pan) = parse(
            r#"{"size": {"height": 56, "width": 56}, "resample": 3}"#,
            56,
        )
        .unwrap();
        assert_eq!(
            (card.filter, card.mean, pan),
            (ResizeFilter::Bicubic, [0.5; 3], false)
        );
        let nested = r#"{"image_processor": {"do_pan_and_scan": true}, "image_seq_length": 4}"#;
        assert_eq!(parse(nested, 56).unwrap(), (square(56), true));
    }

    #[test]
    fn senseless_files_are_refused() {
        for (text, said) in [
            ("[", "not JSON"),
            (r#"{"do_resize": false}"#, "resizes"),
            (r#"{"rescale_factor": 1.0}"#, "rescale_factor"),
            (r#"{"size": {"height": 50, "width": 56}}"#, "found 56 x 50"),
            (r#"{"resample": 9}"#, "`resample` 9"),
            (r#"{"image_std": [1.0, 0.0, 1.0]}"#, "image_std"),
        ] {
            let error = parse(text, 56).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
