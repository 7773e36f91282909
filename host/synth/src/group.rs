//! Populations, effects that differ between groups, and label noise: what is asked of them. Knows nothing of drawing.

use crate::config::{ConfigError, fail, name, within};
use crate::truth::Sex;
use serde::{Deserialize, Serialize};

/// A population of patients, told apart by the fundus's pigmentation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// Recorded with each picture: letters, digits, `_` or `-`, 1 to 32 of them; each population's own.
    pub name: String,
    /// Weight among patients, 0 to 1000.
    pub share: f64,
    /// Mean pigmentation of the fundus, 0 (light, orange) to 1 (dark, brown).
    pub pigment: f64,
    /// Mean visibility of the choroid's vessels, 0 (none) to 1 (tessellated), 0.2 where left out.
    #[serde(default = "fifth")]
    pub tessellation: f64,
    /// Share of patients with myopia: a crescent beside the disc and a tessellated fundus; 0 to 1, 0.12 where left out.
    #[serde(default = "eighth")]
    pub myopia: f64,
}

fn fifth() -> f64 {
    0.2
}

fn eighth() -> f64 {
    0.12
}

impl Population {
    /// Three populations: `light`, `medium` and `dark`.
    pub fn defaults() -> Vec<Self> {
        [
            ("light", 0.4, 0.12, 0.30),
            ("medium", 0.35, 0.5, 0.2),
            ("dark", 0.25, 0.88, 0.12),
        ]
        .map(|(name, share, pigment, tessellation)| Self {
            name: name.to_owned(),
            share,
            pigment,
            tessellation,
            myopia: 0.12,
        })
        .to_vec()
    }

    pub(crate) fn check(&self, at: &str) -> Result<(), ConfigError> {
        name(&format!("{at}.name"), &self.name)?;
        within(&format!("{at}.share"), self.share, 0.0, 1000.0)?;
        within(&format!("{at}.pigment"), self.pigment, 0.0, 1.0)?;
        within(&format!("{at}.tessellation"), self.tessellation, 0.0, 1.0)?;
        within(&format!("{at}.myopia"), self.myopia, 0.0, 1.0)
    }
}

/// What an effect acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Lesions of retinopathy alone.
    Lesions,
    /// The cup alone.
    Cup,
    /// Both.
    #[default]
    Both,
}

/// Disease that shows more or less in one group: a planted subgroup gap. The conditions given must all hold; of several
/// effects that apply to an eye the factors are multiplied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEffect {
    /// Patients of this sex.
    pub sex: Option<Sex>,
    /// Patients of this age or older.
    pub age_from: Option<u32>,
    /// Patients younger than this.
    pub age_below: Option<u32>,
    /// Patients of this population.
    pub population: Option<String>,
    /// Pictures of this camera.
    pub camera: Option<String>,
    /// What is multiplied.
    #[serde(default)]
    pub on: Target,
    /// The factor on the contrast, 0 to 4.
    pub factor: f64,
}

impl Default for GroupEffect {
    /// Everybody, factor 1.
    fn default() -> Self {
        Self {
            sex: None,
            age_from: None,
            age_below: None,
            population: None,
            camera: None,
            on: Target::Both,
            factor: 1.0,
        }
    }
}

impl GroupEffect {
    /// Whether the effect applies to a patient.
    pub fn applies(&self, sex: Sex, age: u32, population: &str, camera: &str) -> bool {
        self.sex.is_none_or(|s| s == sex)
            && self.age_from.is_none_or(|from| age >= from)
            && self.age_below.is_none_or(|below| age < below)
            && self.population.as_deref().is_none_or(|p| p == population)
            && self.camera.as_deref().is_none_or(|c| c == camera)
    }
}

/// How recorded labels go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseKind {
    /// Any other grade, each as likely; edema and GON the other way round.
    Uniform,
    /// The grade above or below, each as likely where there are two; edema and GON the other way round.
    #[default]
    Adjacent,
    /// Disease overlooked: the grade below, no edema, no GON. What is healthy stays so.
    Missed,
}

/// Which splits' recorded labels go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseIn {
    /// Training and validation; the test split stays exact.
    Train,
    /// All.
    #[default]
    All,
}

/// Noise of the recorded labels. The truth is always written beside them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LabelNoise {
    /// The chance that a label goes wrong, for grade, edema and GON of each eye independently, 0 to 1.
    pub rate: f64,
    /// How.
    pub kind: NoiseKind,
    /// Where.
    pub splits: NoiseIn,
}

pub(crate) fn check_effect(
    effect: &GroupEffect,
    at: &str,
    populations: &[Population],
    cameras: &[crate::camera::Camera],
) -> Result<(), ConfigError> {
    within(&format!("{at}.factor"), effect.factor, 0.0, 4.0)?;
    let known = |field: &str, given: Option<&String>, names: Vec<&str>| match given {
        Some(given) if !names.contains(&given.as_str()) => fail(
            format!("{at}.{field}"),
            format!("one of `{}`", names.join("`, `")),
            format!("`{given}`"),
        ),
        _ => Ok(()),
    };
    known(
        "population",
        effect.population.as_ref(),
        populations.iter().map(|p| p.name.as_str()).collect(),
    )?;
    known(
        "camera",
        effect.camera.as_ref(),
        cameras.iter().map(|c| c.name.as_str()).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_conditions_of_an_effect_must_hold() {
        let effect = GroupEffect {
            sex: Some(Sex::F),
            age_from: Some(60),
            age_below: Some(70),
            camera: Some("A".to_owned()),
            factor: 0.5,
            ..GroupEffect::default()
        };
        assert!(effect.applies(Sex::F, 60, "dark", "A"));
        assert!(!effect.applies(Sex::M, 60, "dark", "A"));
        assert!(!effect.applies(Sex::F, 59, "dark", "A"));
        assert!(!effect.applies(Sex::F, 70, "dark", "A"));
        assert!(!effect.applies(Sex::F, 60, "dark", "B"));
        assert!(GroupEffect::default().applies(Sex::M, 1, "x", "y"));
    }
}
