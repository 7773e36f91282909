//! Cameras: what each does to a picture, and the presets. Knows nothing of eyes.
//!
//! Several cameras with different shares in training and test are a dataset shift of known kind and size.

use crate::config::{ConfigError, name, within};
use serde::{Deserialize, Serialize};

/// The camera behind a picture. In a config file only `name` is needed: what is left out comes from the preset of that
/// name ([`Camera::PRESETS`]), or from preset `A` where there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Given")]
pub struct Camera {
    /// Recorded with each picture: letters, digits, `_` or `-`, 1 to 32 of them; each camera's own.
    pub name: String,
    /// Weight among the patients of the training and validation splits, 0 to 1000.
    pub train: f64,
    /// Weight among the patients of the test split, 0 to 1000.
    pub test: f64,
    /// Gain of red, green and blue, 0.5 to 1.5 each.
    pub tint: [f64; 3],
    /// Slope of the tone curve at middle grey, 0.5 to 1.5; 1 is neutral.
    pub contrast: f64,
    /// Pixels resolved along a side as a share of the picture's, 0.2 to 1.
    pub resolution: f64,
    /// Typical blur: standard deviation in thousandths of the field's radius, 0 to 20.
    pub blur: f64,
    /// Typical noise: standard deviation as a share of full scale, 0 to 0.1.
    pub noise: f64,
    /// Typical loss of light at the field's edge, 0 to 0.9.
    pub vignette: f64,
    /// Largest slope of the illumination across the field's radius, 0 to 0.5.
    pub unevenness: f64,
    /// Largest share of the field's radius cut off at the top and at the bottom, 0 to 0.3.
    pub cut: f64,
    /// Diameter of the field as a share of the picture's side, 0.7 to 1.15; above 1 the sides are cut off as well.
    pub fill: f64,
    /// Angle of view in degrees, 35 to 60: the wider, the smaller everything in it.
    pub field: f64,
    /// Strength of the bright haze that a hand-held lens throws on one side, 0 to 1.
    pub glare: f64,
}

/// A camera as a config file gives it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    train: Option<f64>,
    test: Option<f64>,
    tint: Option<[f64; 3]>,
    contrast: Option<f64>,
    resolution: Option<f64>,
    blur: Option<f64>,
    noise: Option<f64>,
    vignette: Option<f64>,
    unevenness: Option<f64>,
    cut: Option<f64>,
    fill: Option<f64>,
    field: Option<f64>,
    glare: Option<f64>,
}

impl From<Given> for Camera {
    fn from(given: Given) -> Self {
        let base = Camera::preset(&given.name).unwrap_or_else(|| Camera::a(1.0, 1.0));
        Camera {
            name: given.name,
            train: given.train.unwrap_or(base.train),
            test: given.test.unwrap_or(base.test),
            tint: given.tint.unwrap_or(base.tint),
            contrast: given.contrast.unwrap_or(base.contrast),
            resolution: given.resolution.unwrap_or(base.resolution),
            blur: given.blur.unwrap_or(base.blur),
            noise: given.noise.unwrap_or(base.noise),
            vignette: given.vignette.unwrap_or(base.vignette),
            unevenness: given.unevenness.unwrap_or(base.unevenness),
            cut: given.cut.unwrap_or(base.cut),
            fill: given.fill.unwrap_or(base.fill),
            field: given.field.unwrap_or(base.field),
            glare: given.glare.unwrap_or(base.glare),
        }
    }
}

impl Camera {
    /// Names of the presets. `A`: a desktop camera of 45 degrees, top and bottom cut off. `B`: a brighter, cooler desktop
    /// camera of 50 degrees with the whole circle. `C`: a darker, redder desktop camera whose circle fills the picture.
    /// `M`: a mobile camera, narrow, soft, noisy, with glare.
    pub const PRESETS: [&'static str; 4] = ["A", "B", "C", "M"];

    /// The preset of this name, with weight 1 in both splits.
    pub fn preset(name: &str) -> Option<Self> {
        let base = Self::a(1.0, 1.0);
        match name {
            "A" => Some(base),
            "B" => Some(Self {
                name: "B".to_owned(),
                tint: [0.93, 1.06, 1.16],
                contrast: 1.08,
                blur: 2.6,
                noise: 0.012,
                vignette: 0.28,
                unevenness: 0.08,
                cut: 0.0,
                fill: 0.95,
                field: 50.0,
                ..base
            }),
            "C" => Some(Self {
                name: "C".to_owned(),
                tint: [0.98, 0.86, 0.76],
                contrast: 1.08,
                resolution: 0.7,
                blur: 3.0,
                noise: 0.018,
                vignette: 0.5,
                unevenness: 0.16,
                cut: 0.22,
                fill: 1.08,
                ..base
            }),
            "M" => Some(Self {
                name: "M".to_owned(),
                tint: [1.0, 0.95, 0.80],
                contrast: 0.92,
                resolution: 0.5,
                blur: 5.0,
                noise: 0.022,
                vignette: 0.6,
                unevenness: 0.25,
                cut: 0.0,
                fill: 0.86,
                field: 40.0,
                glare: 0.6,
                ..base
            }),
            _ => None,
        }
    }

    /// Preset `A` with these weights.
    pub(crate) fn a(train: f64, test: f64) -> Self {
        Self {
            name: "A".to_owned(),
            train,
            test,
            tint: [1.0, 1.0, 1.0],
            contrast: 1.0,
            resolution: 1.0,
            blur: 2.2,
            noise: 0.010,
            vignette: 0.36,
            unevenness: 0.13,
            cut: 0.10,
            fill: 0.97,
            field: 45.0,
            glare: 0.0,
        }
    }

    pub(crate) fn check(&self, at: &str) -> Result<(), ConfigError> {
        name(&format!("{at}.name"), &self.name)?;
        for (field, value, low, high) in [
            ("train", self.train, 0.0, 1000.0),
            ("test", self.test, 0.0, 1000.0),
            ("tint", self.tint[0], 0.5, 1.5),
            ("tint", self.tint[1], 0.5, 1.5),
            ("tint", self.tint[2], 0.5, 1.5),
            ("contrast", self.contrast, 0.5, 1.5),
            ("resolution", self.resolution, 0.2, 1.0),
            ("blur", self.blur, 0.0, 20.0),
            ("noise", self.noise, 0.0, 0.1),
            ("vignette", self.vignette, 0.0, 0.9),
            ("unevenness", self.unevenness, 0.0, 0.5),
            ("cut", self.cut, 0.0, 0.3),
            ("fill", self.fill, 0.7, 1.15),
            ("field", self.field, 35.0, 60.0),
            ("glare", self.glare, 0.0, 1.0),
        ] {
            within(&format!("{at}.{field}"), value, low, high)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_in_range_and_fill_what_a_file_leaves_out() {
        for preset in Camera::PRESETS {
            let camera = Camera::preset(preset).unwrap();
            assert_eq!((camera.name.as_str(), camera.check("c")), (preset, Ok(())));
            let named: Camera =
                serde_json::from_str(&format!("{{\"name\":\"{preset}\",\"test\":3}}")).unwrap();
            assert_eq!(
                named,
                Camera {
                    test: 3.0,
                    ..camera
                }
            );
        }
        let own: Camera = serde_json::from_str("{\"name\":\"clinic\",\"noise\":0.05}").unwrap();
        let base = Camera::preset("A").unwrap();
        assert_eq!(
            own,
            Camera {
                name: "clinic".to_owned(),
                noise: 0.05,
                ..base
            }
        );
        assert!(serde_json::from_str::<Camera>("{\"name\":\"A\",\"nois\":0.05}").is_err());
    }
}
