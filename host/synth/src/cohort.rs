//! Who the patients are: age, sex, population, camera, split, severity, cup; both eyes drawn around the patient's level.
//! Knows nothing of pixels.
//!
//! Behind grade, edema and cup stand normal scores, `sqrt(c) * patient + sqrt(1 - c) * eye` with `c` the correlation asked
//! for, turned into levels uniform in 0..1 and cut where the shares say. Where stratified, the patients' levels of
//! severity, cup and split follow the three-dimensional additive recurrence of the generalised golden ratio: any run of
//! patients then fills the cube evenly. Each fact has a stream of its own, so that changing one shifts no other.

use crate::config::Config;
use crate::group::{NoiseIn, NoiseKind, Target};
use crate::maths::{normal_cdf, normal_quantile};
use crate::random::Random;
use crate::truth::{Labels, Laterality, Quality, Sex, Split};

/// Vertical cup-to-disc ratio from which an eye counts as glaucomatous.
pub const GON_RATIO: f64 = 0.6;

// Stream tags; each kind of draw has its own.
const PATIENT: u64 = 1;
const EYE: u64 = 2;
const PHASE: u64 = 3;
const NAME: u64 = 6;

// 1 / g, 1 / g^2, 1 / g^3 for the root g of g^4 = g + 1.
const RECURRENCE: [f64; 3] = [
    0.819_172_513_396_164_5,
    0.671_043_606_703_789_2,
    0.549_700_477_901_970_3,
];

/// What is to be drawn.
#[derive(Debug, Clone)]
pub struct Case {
    pub seed: u64,
    pub index: u32,
    pub name: String,
    pub patient: u32,
    pub split: Split,
    pub eye: Laterality,
    pub age: u32,
    pub sex: Sex,
    pub quality: Quality,
    /// Place in the config's cameras.
    pub camera: usize,
    /// Place in the config's populations.
    pub population: usize,
    /// What is true.
    pub labels: Labels,
    /// What is recorded.
    pub recorded: Labels,
    pub cup_to_disc: f64,
    /// Where within its grade the severity lies, 0 to 1.
    pub within_grade: f64,
    /// 0 light fundus, 1 dark fundus.
    pub pigment: f64,
    /// How plainly the choroid's vessels show, 0 to 1.
    pub tessellation: f64,
    /// Width of the myopic crescent in disc radii; 0 where there is none.
    pub crescent: f64,
    pub drusen: bool,
    /// Contrast multiplier of lesions.
    pub lesion_effect: f64,
    /// Contrast multiplier of the cup.
    pub cup_effect: f64,
}

impl Case {
    /// A stream of this eye's own.
    pub fn stream(&self, tag: u64) -> Random {
        Random::stream(self.seed, &[EYE, u64::from(self.index), tag])
    }

    /// A stream that both eyes of the patient share, for what is mirrored.
    pub fn patient_stream(&self, tag: u64) -> Random {
        Random::stream(self.seed, &[PATIENT, u64::from(self.patient), tag])
    }
}

/// The case behind picture `index`.
pub fn case(config: &Config, index: u32) -> Case {
    let seed = config.seed;
    let patient = index / 2;
    let own = |tag: u64| Random::stream(seed, &[PATIENT, u64::from(patient), tag]);
    let side = |tag: u64| Random::stream(seed, &[EYE, u64::from(index), tag]);
    let level = |dimension: usize| level(config, patient, dimension);

    let (severity, cup) = (level(0), level(1));
    let split = split(config, level(2));
    let sex = if own(101).chance(config.female) {
        Sex::F
    } else {
        Sex::M
    };
    let age = (config.age_mean
        + config.age_sd * own(102).normal()
        + 0.5 * config.age_slope * (severity + cup - 1.0))
        .clamp(18.0, 95.0) as u32;
    let weights = config.cameras.iter().map(|camera| match split {
        Split::Test => camera.test,
        Split::Train | Split::Validation => camera.train,
    });
    let camera = weighted(weights, own(103).unit());
    let population = weighted(config.populations.iter().map(|p| p.share), own(104).unit());
    let group = &config.populations[population];
    let mut tone = own(105);
    let pigment = (group.pigment + 0.09 * tone.normal()).clamp(0.0, 1.0);
    let myopic = own(106).chance(group.myopia);
    let tessellation =
        (group.tessellation + 0.12 * tone.normal() + if myopic { 0.35 } else { 0.0 })
            .clamp(0.0, 1.0);
    let crescent = if myopic {
        (own(107).range(0.30, 0.75) + 0.04 * side(107).normal()).clamp(0.2, 0.9)
    } else {
        0.0
    };
    let drusen = own(108).chance(config.drusen * if age >= 50 { 1.0 } else { 0.1 });

    let rho = config.eye_correlation;
    let (grade, within_grade) = graded(config, paired(severity, side(110).unit(), rho));
    let edema_level = paired(own(111).unit(), side(111).unit(), rho);
    let edema = if edema_level >= config.edema[usize::from(grade)] {
        0
    } else if side(112).chance(config.central) {
        2
    } else {
        1
    };
    let cup_to_disc = cup_ratio(paired(cup, side(113).unit(), rho), config.gon);
    let labels = Labels {
        grade,
        edema,
        gon: cup_to_disc >= GON_RATIO,
    };
    let quality = if side(114).chance(config.poor_quality) {
        Quality::Poor
    } else {
        Quality::Good
    };
    let factor = |target: Target| {
        config
            .effects
            .iter()
            .filter(|e| e.on == target || e.on == Target::Both)
            .filter(|e| e.applies(sex, age, &group.name, &config.cameras[camera].name))
            .fold(config.effect, |product, e| product * e.factor)
    };

    Case {
        seed,
        index,
        name: format!(
            "{:016x}",
            Random::stream(seed, &[NAME, u64::from(index)]).bits()
        ),
        patient,
        split,
        eye: if index.is_multiple_of(2) {
            Laterality::Right
        } else {
            Laterality::Left
        },
        age,
        sex,
        quality,
        camera,
        population,
        labels,
        recorded: recorded(config, split, labels, side(115)),
        cup_to_disc,
        within_grade,
        pigment,
        tessellation,
        crescent,
        drusen,
        lesion_effect: factor(Target::Lesions),
        cup_effect: factor(Target::Cup),
    }
}

// A level of the patient, uniform in 0..1.
fn level(config: &Config, patient: u32, dimension: usize) -> f64 {
    let tag = dimension as u64;
    if !config.stratified {
        return Random::stream(config.seed, &[PATIENT, u64::from(patient), 120 + tag]).unit();
    }
    let phase = Random::stream(config.seed, &[PHASE, tag]).unit();
    let x = phase + f64::from(patient) * RECURRENCE[dimension];
    x - x as u64 as f64
}

// Uniform again, correlated with that of the other eye through the patient's level.
fn paired(patient: f64, eye: f64, correlation: f64) -> f64 {
    let z = correlation.sqrt() * normal_quantile(patient)
        + (1.0 - correlation).sqrt() * normal_quantile(eye);
    normal_cdf(z)
}

fn split(config: &Config, level: f64) -> Split {
    if level < config.test {
        Split::Test
    } else if level < config.test + config.validation {
        Split::Validation
    } else {
        Split::Train
    }
}

// The grade at a level of severity, and where within its share the level lies.
fn graded(config: &Config, level: f64) -> (u8, f64) {
    let mut low = 0.0;
    let mut last = (0, 0.0);
    for (grade, share) in config.grades.iter().enumerate().filter(|(_, s)| **s > 0.0) {
        if level < low + share {
            return (grade as u8, ((level - low) / share).clamp(0.0, 1.0));
        }
        low += share;
        last = (grade as u8, 1.0);
    }
    // Rounding at the very top of the scale.
    last
}

// Bell-shaped around 0.4 below the threshold; from it upwards, the rarer the larger.
fn cup_ratio(level: f64, gon: f64) -> f64 {
    let healthy = 1.0 - gon;
    if level < healthy {
        let t = level / healthy - 0.5;
        0.22 + 0.37 * (0.5 + t * (0.55 + 1.8 * t * t))
    } else {
        let t = ((level - healthy) / gon.max(1e-12)).clamp(0.0, 1.0);
        GON_RATIO + 0.29 * t * (0.6 + 0.4 * t)
    }
}

fn weighted(weights: impl Iterator<Item = f64> + Clone, at: f64) -> usize {
    let mut rest = at * weights.clone().sum::<f64>();
    let mut last = 0;
    for (i, weight) in weights.enumerate().filter(|(_, w)| *w > 0.0) {
        if rest < weight {
            return i;
        }
        rest -= weight;
        last = i;
    }
    last
}

fn recorded(config: &Config, split: Split, truth: Labels, mut random: Random) -> Labels {
    let noise = config.label_noise;
    // Drawn whatever the rate, so that a higher rate spoils the same labels and more.
    let wrong = [random.unit(), random.unit(), random.unit()].map(|u| u < noise.rate);
    let pick = random.unit();
    if noise.splits == NoiseIn::Train && split == Split::Test {
        return truth;
    }
    let grade = match (wrong[0], noise.kind) {
        (false, _) => truth.grade,
        (true, NoiseKind::Uniform) => (truth.grade + 1 + (pick * 4.0) as u8) % 5,
        (true, NoiseKind::Adjacent) => match truth.grade {
            0 => 1,
            4 => 3,
            grade if pick < 0.5 => grade - 1,
            grade => grade + 1,
        },
        (true, NoiseKind::Missed) => truth.grade.saturating_sub(1),
    };
    let missed = noise.kind == NoiseKind::Missed;
    Labels {
        grade,
        edema: match (wrong[1], truth.edema) {
            (true, 0) => u8::from(!missed),
            (true, _) => 0,
            (false, level) => level,
        },
        gon: if wrong[2] {
            !truth.gon && !missed
        } else {
            truth.gon
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::Camera;
    use crate::group::{GroupEffect, LabelNoise};

    fn all(config: &Config) -> Vec<Case> {
        config.check().unwrap();
        (0..config.images())
            .map(|index| case(config, index))
            .collect()
    }

    fn share(cases: &[Case], f: impl Fn(&Case) -> bool) -> f64 {
        cases.iter().filter(|c| f(c)).count() as f64 / cases.len() as f64
    }

    // Both eyes of a patient at once are one draw at most correlated: bounds for patients, not for eyes.
    fn assert_share(cases: &[Case], expected: f64, f: impl Fn(&Case) -> bool, what: &str) {
        let found = share(cases, f);
        let bound = 4.0 * (expected * (1.0 - expected) / (cases.len() as f64 / 2.0)).sqrt();
        assert!(
            (found - expected).abs() <= bound,
            "{what}: {found}, not {expected}"
        );
    }

    #[test]
    fn both_classes_are_well_populated_in_both_splits() {
        let cases = all(&Config::default());
        for split in [Split::Train, Split::Test] {
            let part: Vec<_> = cases.iter().filter(|c| c.split == split).cloned().collect();
            let wanted = if split == Split::Train { 144 } else { 96 };
            assert!((part.len() as i32 - wanted).abs() <= 4, "{}", part.len());
            for (name, value) in [
                ("dr", share(&part, |c| c.labels.grade > 0)),
                (
                    "referable",
                    share(&part, |c| c.labels.grade > 1 || c.labels.edema > 0),
                ),
                ("gon", share(&part, |c| c.labels.gon)),
            ] {
                assert!((0.2..0.75).contains(&value), "{split:?} {name} {value}");
            }
            assert!((0..=4).all(|g| part.iter().filter(|c| c.labels.grade == g).count() >= 4));
        }
    }

    #[test]
    fn shares_are_what_was_asked_for() {
        for stratified in [false, true] {
            let config = Config {
                patients: 3000,
                stratified,
                grades: [0.6, 0.05, 0.2, 0.0, 0.15],
                edema: [0.0, 0.5, 0.3, 0.0, 0.8],
                gon: 0.12,
                female: 0.3,
                drusen: 0.5,
                poor_quality: 0.25,
                test: 0.3,
                validation: 0.2,
                ..Config::default()
            };
            let cases = all(&config);
            for (grade, expected) in config.grades.iter().enumerate() {
                assert_share(
                    &cases,
                    *expected,
                    |c| usize::from(c.labels.grade) == grade,
                    "grade",
                );
                let part: Vec<_> = cases
                    .iter()
                    .filter(|c| usize::from(c.labels.grade) == grade)
                    .cloned()
                    .collect();
                if !part.is_empty() {
                    assert_share(&part, config.edema[grade], |c| c.labels.edema > 0, "edema");
                }
            }
            let edema: Vec<_> = cases
                .iter()
                .filter(|c| c.labels.edema > 0)
                .cloned()
                .collect();
            assert_share(&edema, 0.4, |c| c.labels.edema == 2, "central");
            assert_share(&cases, 0.12, |c| c.labels.gon, "gon");
            assert_share(&cases, 0.3, |c| c.sex == Sex::F, "female");
            assert_share(&cases, 0.25, |c| c.quality == Quality::Poor, "poor");
            assert_share(&cases, 0.3, |c| c.split == Split::Test, "test");
            assert_share(&cases, 0.2, |c| c.split == Split::Validation, "validation");
            assert_share(&cases, 0.35, |c| c.population == 1, "population");
            let old: Vec<_> = cases.iter().filter(|c| c.age >= 50).cloned().collect();
            assert_share(&old, 0.5, |c| c.drusen, "drusen");
            assert!(
                cases
                    .iter()
                    .all(|c| c.labels.gon == (c.cup_to_disc >= GON_RATIO))
            );
        }
        let extreme = all(&Config {
            grades: [0.0, 0.0, 0.0, 1.0, 0.0],
            gon: 1.0,
            patients: 50,
            ..Config::default()
        });
        assert!(extreme.iter().all(|c| c.labels.grade == 3 && c.labels.gon));
        let none = all(&Config {
            grades: [1.0, 0.0, 0.0, 0.0, 0.0],
            gon: 0.0,
            ..Config::default()
        });
        assert!(none.iter().all(|c| c.labels == Labels::default()));
    }

    #[test]
    fn eyes_of_a_patient_agree_in_person_and_correlate_as_asked() {
        for correlation in [0.0, 0.5, 0.9, 1.0] {
            let config = Config {
                patients: 4000,
                eye_correlation: correlation,
                gon: 0.5,
                stratified: false,
                ..Config::default()
            };
            let cases = all(&config);
            let (mut both, mut right, mut left) = (0.0, 0.0, 0.0);
            for pair in cases.chunks_exact(2) {
                let person = |c: &Case| (c.age, c.sex, c.split, c.camera, c.population, c.drusen);
                assert_eq!(person(&pair[0]), person(&pair[1]));
                assert_eq!(
                    (pair[0].eye, pair[1].eye),
                    (Laterality::Right, Laterality::Left)
                );
                both += f64::from(pair[0].labels.gon && pair[1].labels.gon);
                right += f64::from(pair[0].labels.gon);
                left += f64::from(pair[1].labels.gon);
            }
            let n = cases.len() as f64 / 2.0;
            // At prevalence one half, P(both) = 1/4 + asin(correlation) / (2 pi) (Sheppard).
            let expected = 0.25 + correlation.asin() / std::f64::consts::TAU;
            assert!(
                (both / n - expected).abs() < 0.03,
                "{correlation} {}",
                both / n
            );
            assert!((right / n - 0.5).abs() < 0.04 && (left / n - 0.5).abs() < 0.04);
        }
    }

    #[test]
    fn noise_is_of_the_rate_and_kind_asked_for_and_the_truth_stays() {
        let clean = Config {
            patients: 2500,
            ..Config::default()
        };
        let truth: Vec<_> = all(&clean).iter().map(|c| c.labels).collect();
        assert!(all(&clean).iter().all(|c| c.labels == c.recorded));
        for kind in [NoiseKind::Uniform, NoiseKind::Adjacent, NoiseKind::Missed] {
            for splits in [NoiseIn::All, NoiseIn::Train] {
                let config = Config {
                    label_noise: LabelNoise {
                        rate: 0.2,
                        kind,
                        splits,
                    },
                    ..clean.clone()
                };
                let cases = all(&config);
                assert!(cases.iter().zip(&truth).all(|(c, t)| c.labels == *t));
                let dirty: Vec<_> = cases
                    .iter()
                    .filter(|c| splits == NoiseIn::All || c.split == Split::Train)
                    .cloned()
                    .collect();
                if splits == NoiseIn::Train {
                    let test = |c: &&Case| c.split == Split::Test;
                    assert!(cases.iter().filter(test).all(|c| c.labels == c.recorded));
                }
                let sick: Vec<_> = dirty
                    .iter()
                    .filter(|c| c.labels.grade > 0 && c.labels.edema > 0 && c.labels.gon)
                    .cloned()
                    .collect();
                assert_share(&sick, 0.2, |c| c.recorded.grade != c.labels.grade, "grade");
                assert_share(&sick, 0.2, |c| c.recorded.edema == 0, "edema");
                assert_share(&sick, 0.2, |c| !c.recorded.gon, "gon");
                for c in &dirty {
                    let step = i32::from(c.recorded.grade) - i32::from(c.labels.grade);
                    assert!(c.recorded.grade <= 4);
                    match kind {
                        NoiseKind::Uniform => {}
                        NoiseKind::Adjacent => assert!(step.abs() <= 1),
                        NoiseKind::Missed => {
                            assert!((-1..=0).contains(&step));
                            assert!(c.recorded.gon <= c.labels.gon);
                            assert!(c.recorded.edema <= c.labels.edema);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn cameras_follow_the_split_and_effects_their_group() {
        let config = Config {
            patients: 1000,
            cameras: vec![
                Camera {
                    test: 0.0,
                    ..Camera::preset("A").unwrap()
                },
                Camera {
                    train: 3.0,
                    test: 1.0,
                    ..Camera::preset("M").unwrap()
                },
            ],
            effects: vec![
                GroupEffect {
                    sex: Some(Sex::F),
                    factor: 0.5,
                    ..GroupEffect::default()
                },
                GroupEffect {
                    age_from: Some(60),
                    on: Target::Lesions,
                    factor: 0.4,
                    ..GroupEffect::default()
                },
            ],
            effect: 2.0,
            ..Config::default()
        };
        let cases = all(&config);
        let train: Vec<_> = cases
            .iter()
            .filter(|c| c.split == Split::Train)
            .cloned()
            .collect();
        assert_share(&train, 0.75, |c| c.camera == 1, "camera");
        assert!(
            cases
                .iter()
                .all(|c| c.split == Split::Train || c.camera == 1)
        );
        for c in &cases {
            let female = if c.sex == Sex::F { 1.0 } else { 2.0 };
            assert_eq!(c.cup_effect, female);
            assert_eq!(
                c.lesion_effect,
                female * if c.age >= 60 { 0.4 } else { 1.0 }
            );
        }
    }

    #[test]
    fn names_are_distinct() {
        let cases = all(&Config {
            patients: 2000,
            ..Config::default()
        });
        let names: std::collections::BTreeSet<_> = cases.iter().map(|c| &c.name).collect();
        assert_eq!(names.len(), cases.len());
    }
}
