//! What is asked of the generator. Knows nothing of how it is drawn.

use crate::camera::Camera;
use crate::group::{GroupEffect, LabelNoise, Population, check_effect};
use serde::{Deserialize, Serialize};

/// Everything that decides a dataset's bytes, together with [`crate::GENERATOR_VERSION`]. Fields that a file leaves out
/// have the default's values; unknown ones are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of patients, 1 to 1,000,000; each has two eyes.
    pub patients: u32,
    /// Side of the square pictures in pixels, 64 to 2,048.
    pub size: u32,
    /// Write masks beside the pictures.
    pub masks: bool,
    /// Spread severity, cup and split evenly over the patients in their order, so that small datasets have the shares asked
    /// for. Without it patients are independent draws, which is what a simulation of intervals needs.
    pub stratified: bool,
    /// Share of patients in the test split, 0 to 1.
    pub test: f64,
    /// Share of patients in the validation split, 0 to 1; with `test` at most 1. The rest is the training split.
    pub validation: f64,
    /// Shares of the ICDR grades 0 to 4 among eyes; their sum is 1.
    pub grades: [f64; 5],
    /// Chance of edema at each grade, 0 to 1; 0 at grade 0, since hard exudates are signs of retinopathy.
    pub edema: [f64; 5],
    /// Share of eyes with edema in which it reaches the centre (level 2), 0 to 1.
    pub central: f64,
    /// Share of eyes with glaucomatous optic neuropathy, 0 to 1.
    pub gon: f64,
    /// Correlation between a patient's eyes of the normal scores behind grade, edema and cup, 0 to 1.
    pub eye_correlation: f64,
    /// Mean age of a patient in the middle of severity and cup, 20 to 90.
    pub age_mean: f64,
    /// Standard deviation of age around that, 0 to 30.
    pub age_sd: f64,
    /// Years by which the most severe patients are older than the least severe, -40 to 40.
    pub age_slope: f64,
    /// Share of female patients, 0 to 1.
    pub female: f64,
    /// Share of patients of 50 or older with drusen, 0 to 1; a tenth of it below.
    pub drusen: f64,
    /// Share of pictures of poor quality (blurred, dark, hazy), 0 to 1.
    pub poor_quality: f64,
    /// Multiplies the contrast of lesions and of the cup; 1 is the default difficulty, 0 hides them; 0 to 4.
    pub effect: f64,
    /// Populations, 1 to 16.
    pub populations: Vec<Population>,
    /// Cameras, 1 to 16.
    pub cameras: Vec<Camera>,
    /// Effects that differ between groups, at most 16.
    pub effects: Vec<GroupEffect>,
    /// Noise of the recorded labels.
    pub label_noise: LabelNoise,
}

impl Default for Config {
    /// The embedded default: 120 patients, 240 pictures of 320 x 320 pixels from two cameras.
    fn default() -> Self {
        Self {
            seed: 20_240_601,
            patients: 120,
            size: 320,
            masks: true,
            stratified: true,
            test: 0.4,
            validation: 0.0,
            grades: [0.43, 0.12, 0.22, 0.13, 0.10],
            edema: [0.0, 0.03, 0.35, 0.5, 0.45],
            central: 0.4,
            gon: 0.3,
            eye_correlation: 0.85,
            age_mean: 52.0,
            age_sd: 12.0,
            age_slope: 10.0,
            female: 0.5,
            drusen: 0.3,
            poor_quality: 0.12,
            effect: 1.0,
            populations: Population::defaults(),
            cameras: vec![
                Camera::a(0.7, 0.7),
                Camera {
                    train: 0.3,
                    test: 0.3,
                    ..Camera::preset("B").expect("B is a preset")
                },
            ],
            effects: Vec::new(),
            label_noise: LabelNoise::default(),
        }
    }
}

/// A config outside its documented ranges.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("Synthetic `{field}` is out of range: expected {expected}, found {found}")]
pub struct ConfigError {
    /// The field, with its place in a list: `cameras[1].blur`.
    pub field: String,
    /// What is permitted.
    pub expected: String,
    /// The value given.
    pub found: String,
}

pub(crate) fn fail(
    field: impl Into<String>,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Result<(), ConfigError> {
    Err(ConfigError {
        field: field.into(),
        expected: expected.into(),
        found: found.into(),
    })
}

pub(crate) fn within(field: &str, value: f64, low: f64, high: f64) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        fail(field, format!("{low} to {high}"), value.to_string())
    }
}

// Names go into tables unquoted.
pub(crate) fn name(field: &str, name: &str) -> Result<(), ConfigError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=32).contains(&name.len()) && name.chars().all(plain) {
        Ok(())
    } else {
        fail(
            field,
            "1 to 32 letters, digits, `_` or `-`",
            format!("`{}`", name.escape_debug()),
        )
    }
}

impl Config {
    /// Number of pictures: two for each patient.
    pub fn images(&self) -> u32 {
        self.patients.saturating_mul(2)
    }

    /// Checks every field against its documented range.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (field, value, low, high) in [
            ("patients", f64::from(self.patients), 1.0, 1e6),
            ("size", f64::from(self.size), 64.0, 2048.0),
            ("test", self.test, 0.0, 1.0),
            ("validation", self.validation, 0.0, 1.0),
            ("central", self.central, 0.0, 1.0),
            ("gon", self.gon, 0.0, 1.0),
            ("eye_correlation", self.eye_correlation, 0.0, 1.0),
            ("age_mean", self.age_mean, 20.0, 90.0),
            ("age_sd", self.age_sd, 0.0, 30.0),
            ("age_slope", self.age_slope, -40.0, 40.0),
            ("female", self.female, 0.0, 1.0),
            ("drusen", self.drusen, 0.0, 1.0),
            ("poor_quality", self.poor_quality, 0.0, 1.0),
            ("effect", self.effect, 0.0, 4.0),
            ("label_noise.rate", self.label_noise.rate, 0.0, 1.0),
        ] {
            within(field, value, low, high)?;
        }
        if self.test + self.validation > 1.0 + 1e-9 {
            return fail(
                "validation",
                "with `test` a sum of at most 1",
                (self.test + self.validation).to_string(),
            );
        }
        for (grade, share) in self.grades.iter().enumerate() {
            within(&format!("grades[{grade}]"), *share, 0.0, 1.0)?;
        }
        let sum: f64 = self.grades.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return fail("grades", "five shares with the sum 1", sum.to_string());
        }
        for (grade, chance) in self.edema.iter().enumerate() {
            let highest = if grade == 0 { 0.0 } else { 1.0 };
            within(&format!("edema[{grade}]"), *chance, 0.0, highest)?;
        }
        self.check_lists()
    }

    fn check_lists(&self) -> Result<(), ConfigError> {
        for (field, length, low) in [
            ("populations", self.populations.len(), 1),
            ("cameras", self.cameras.len(), 1),
            ("effects", self.effects.len(), 0),
        ] {
            if !(low..=16).contains(&length) {
                return fail(field, format!("{low} to 16 entries"), length.to_string());
            }
        }
        for (i, population) in self.populations.iter().enumerate() {
            population.check(&format!("populations[{i}]"))?;
        }
        for (i, camera) in self.cameras.iter().enumerate() {
            camera.check(&format!("cameras[{i}]"))?;
        }
        for (i, effect) in self.effects.iter().enumerate() {
            check_effect(
                effect,
                &format!("effects[{i}]"),
                &self.populations,
                &self.cameras,
            )?;
        }
        let names = |field: &str, names: Vec<&str>| match (1..names.len())
            .find(|&i| names[..i].contains(&names[i]))
        {
            Some(i) => fail(
                format!("{field}[{i}].name"),
                "a name of its own",
                format!("`{}` twice", names[i]),
            ),
            None => Ok(()),
        };
        names(
            "populations",
            self.populations.iter().map(|p| p.name.as_str()).collect(),
        )?;
        names(
            "cameras",
            self.cameras.iter().map(|c| c.name.as_str()).collect(),
        )?;
        let weights: [(&str, f64); 3] = [
            (
                "populations: weights",
                self.populations.iter().map(|p| p.share).sum(),
            ),
            (
                "cameras: weights `train`",
                self.cameras.iter().map(|c| c.train).sum(),
            ),
            (
                "cameras: weights `test`",
                self.cameras.iter().map(|c| c.test).sum(),
            ),
        ];
        match weights.iter().find(|(_, sum)| *sum <= 0.0) {
            Some((field, sum)) => fail(*field, "a sum above 0", sum.to_string()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked_and_named() {
        type Spoil = fn(&mut Config);
        assert_eq!(Config::default().check(), Ok(()));
        let cases: Vec<(&str, Spoil)> = vec![
            ("patients", |c| c.patients = 0),
            ("size", |c| c.size = 63),
            ("test", |c| c.test = 1.1),
            ("validation", |c| c.validation = 0.7),
            ("grades", |c| c.grades[0] = 0.5),
            ("grades[1]", |c| c.grades[1] = -0.1),
            ("edema[0]", |c| c.edema[0] = 0.1),
            ("edema[4]", |c| c.edema[4] = f64::NAN),
            ("central", |c| c.central = 2.0),
            ("gon", |c| c.gon = -0.1),
            ("eye_correlation", |c| c.eye_correlation = 1.5),
            ("age_mean", |c| c.age_mean = 10.0),
            ("age_sd", |c| c.age_sd = 31.0),
            ("age_slope", |c| c.age_slope = f64::INFINITY),
            ("female", |c| c.female = 1.5),
            ("drusen", |c| c.drusen = 1.5),
            ("poor_quality", |c| c.poor_quality = f64::NAN),
            ("effect", |c| c.effect = 5.0),
            ("label_noise.rate", |c| c.label_noise.rate = 1.2),
            ("populations", |c| c.populations.clear()),
            ("populations[1].pigment", |c| c.populations[1].pigment = 2.0),
            ("populations[2].name", |c| {
                c.populations[2].name = "light".into();
            }),
            ("populations: weights", |c| {
                c.populations.iter_mut().for_each(|p| p.share = 0.0);
            }),
            ("cameras", |c| c.cameras.clear()),
            ("cameras[1].blur", |c| c.cameras[1].blur = -1.0),
            ("cameras[1].name", |c| c.cameras[1].name = "a,b".into()),
            ("cameras: weights `test`", |c| {
                c.cameras.iter_mut().for_each(|p| p.test = 0.0);
            }),
            ("effects[0].factor", |c| {
                c.effects.push(GroupEffect {
                    factor: 9.0,
                    ..GroupEffect::default()
                });
            }),
            ("effects[0].camera", |c| {
                c.effects.push(GroupEffect {
                    camera: Some("Z".into()),
                    factor: 1.0,
                    ..GroupEffect::default()
                });
            }),
        ];
        for (field, spoil) in cases {
            let mut config = Config::default();
            spoil(&mut config);
            assert_eq!(config.check().unwrap_err().field, field);
        }
        let message = Config {
            size: 4096,
            ..Config::default()
        }
        .check()
        .unwrap_err()
        .to_string();
        assert_eq!(
            message,
            "Synthetic `size` is out of range: expected 64 to 2048, found 4096"
        );
    }

    #[test]
    fn a_file_says_only_what_differs() {
        let config: Config = toml::from_str(
            "patients = 30\n[label_noise]\nrate = 0.2\nkind = \"missed\"\n\
             [[cameras]]\nname = \"A\"\ntest = 0\n[[cameras]]\nname = \"M\"\ntrain = 0\n\
             [[effects]]\nsex = \"F\"\nfactor = 0.4\non = \"lesions\"\n",
        )
        .unwrap();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(
            (config.patients, config.size, config.label_noise.rate),
            (30, 320, 0.2)
        );
        assert_eq!(config.cameras[1].fill, 0.86);
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
        assert!(toml::from_str::<Config>("patient = 3").is_err());
        // An effect without its factor says nothing.
        assert!(toml::from_str::<Config>("[[effects]]\nsex = \"F\"\n").is_err());
    }
}
