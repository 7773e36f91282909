//! What is asked of the generator. Knows nothing of how it is drawn.

use serde::{Deserialize, Serialize};

/// Everything that decides a dataset's bytes, together with [`crate::GENERATOR_VERSION`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of patients, 1 to 1,000,000; each has two eyes.
    pub patients: u32,
    /// Side of the square pictures in pixels, 64 to 2,048.
    pub size: u32,
    /// Share of pictures of poor quality (blurred, dark), 0 to 1.
    pub poor_quality: f64,
    /// Multiplies the contrast of lesions and of the cup; 1 is the default difficulty, 0.25 to 4.
    pub effect: f64,
}

impl Default for Config {
    /// The embedded default: 120 patients, 240 pictures of 320 x 320 pixels.
    fn default() -> Self {
        Self {
            seed: 20_240_601,
            patients: 120,
            size: 320,
            poor_quality: 0.12,
            effect: 1.0,
        }
    }
}

/// A config outside its documented ranges.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("Synthetic `{field}` is out of range: expected {expected}, found {found}")]
pub struct ConfigError {
    /// The field's name.
    pub field: &'static str,
    /// The permitted range.
    pub expected: &'static str,
    /// The value given.
    pub found: String,
}

impl Config {
    /// Number of pictures: two for each patient.
    pub fn images(&self) -> u32 {
        self.patients.saturating_mul(2)
    }

    /// Checks every field against its documented range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |field, expected, found: String| {
            Err(ConfigError {
                field,
                expected,
                found,
            })
        };
        if !(1..=1_000_000).contains(&self.patients) {
            return fail("patients", "1 to 1000000", self.patients.to_string());
        }
        if !(64..=2048).contains(&self.size) {
            return fail("size", "64 to 2048", self.size.to_string());
        }
        if !(0.0..=1.0).contains(&self.poor_quality) {
            return fail("poor_quality", "0 to 1", self.poor_quality.to_string());
        }
        if !(0.25..=4.0).contains(&self.effect) {
            return fail("effect", "0.25 to 4", self.effect.to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked_and_named() {
        assert_eq!(Config::default().check(), Ok(()));
        for (config, field) in [
            (
                Config {
                    patients: 0,
                    ..Config::default()
                },
                "patients",
            ),
            (
                Config {
                    size: 63,
                    ..Config::default()
                },
                "size",
            ),
            (
                Config {
                    poor_quality: f64::NAN,
                    ..Config::default()
                },
                "poor_quality",
            ),
            (
                Config {
                    effect: 5.0,
                    ..Config::default()
                },
                "effect",
            ),
        ] {
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
}
