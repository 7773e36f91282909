//! Who the patients are: age, sex, pigment, severity, cup; both eyes drawn around the patient's own level.
//! Knows nothing of pixels.
//!
//! Severity and cup are stratified: in each block of twenty patients every twentieth of the distribution occurs once, so
//! that small datasets hold both classes of every task. The split takes two patients of each block of five.

use crate::config::Config;
use crate::random::Random;
use crate::truth::{Laterality, Quality, Sex, Split};

/// Vertical cup-to-disc ratio from which an eye counts as glaucomatous.
pub const GON_RATIO: f64 = 0.6;

// Cumulative shares of the ICDR grades 0, 1, 2, 3 in the latent severity; the rest is grade 4.
const GRADE_STEPS: [f64; 4] = [0.43, 0.55, 0.77, 0.90];

// Stream tags; each kind of draw has its own.
const PATIENT: u64 = 1;
const EYE: u64 = 2;
const SEVERITY_BLOCK: u64 = 3;
const CUP_BLOCK: u64 = 4;
const SPLIT_BLOCK: u64 = 5;
const NAME: u64 = 6;

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
    pub grade: u8,
    pub edema: bool,
    pub cup_to_disc: f64,
    /// Where within its grade the severity lies, 0 to 1.
    pub within_grade: f64,
    /// 0 light fundus, 1 dark fundus.
    pub pigment: f64,
    /// Contrast multiplier of lesions and cup.
    pub effect: f64,
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
    let eye = if index.is_multiple_of(2) {
        Laterality::Right
    } else {
        Laterality::Left
    };
    let mut own = Random::stream(seed, &[PATIENT, u64::from(patient), 0]);
    let mut side = Random::stream(seed, &[EYE, u64::from(index), 0]);

    let sex = if own.chance(0.5) { Sex::F } else { Sex::M };
    let pigment = own.unit();
    let severity = stratum(seed, SEVERITY_BLOCK, patient, own.unit());
    let cup = stratum(seed, CUP_BLOCK, patient, own.unit());
    let age = (48.0 + 12.0 * own.normal() + 10.0 * (severity - 0.5) + 8.0 * (cup - 0.5))
        .clamp(18.0, 90.0) as u32;

    let latent = reflect(severity + 0.07 * side.normal());
    let grade = GRADE_STEPS.iter().filter(|&&step| latent >= step).count() as u8;
    let low = if grade == 0 {
        0.0
    } else {
        GRADE_STEPS[usize::from(grade) - 1]
    };
    let high = GRADE_STEPS.get(usize::from(grade)).copied().unwrap_or(1.0);
    let edema = side.chance([0.0, 0.03, 0.35, 0.5, 0.45][usize::from(grade)]);
    let cup_to_disc = (cup_ratio(cup) + 0.025 * side.normal()).clamp(0.15, 0.92);
    let quality = if side.chance(config.poor_quality) {
        Quality::Poor
    } else {
        Quality::Good
    };

    Case {
        seed,
        index,
        name: format!(
            "{:016x}",
            Random::stream(seed, &[NAME, u64::from(index)]).bits()
        ),
        patient,
        split: split(seed, patient),
        eye,
        age,
        sex,
        quality,
        grade,
        edema,
        cup_to_disc,
        within_grade: (latent - low) / (high - low),
        pigment,
        effect: config.effect,
    }
}

fn split(seed: u64, patient: u32) -> Split {
    let order = Random::stream(seed, &[SPLIT_BLOCK, u64::from(patient / 5)]).permutation(5);
    if order[(patient % 5) as usize] < 2 {
        Split::Test
    } else {
        Split::Train
    }
}

// A uniform level for the patient, one in each twentieth per block of twenty patients.
fn stratum(seed: u64, tag: u64, patient: u32, jitter: f64) -> f64 {
    let order = Random::stream(seed, &[tag, u64::from(patient / 20)]).permutation(20);
    (f64::from(order[(patient % 20) as usize]) + jitter) / 20.0
}

// Two thirds of ordinary cups around 0.42 and a third of large ones around 0.7; they meet near 0.6.
fn cup_ratio(level: f64) -> f64 {
    if level < 0.68 {
        0.26 + 0.34 * (level / 0.68)
    } else {
        0.58 + 0.27 * ((level - 0.68) / 0.32)
    }
}

fn reflect(x: f64) -> f64 {
    let x = x.abs();
    (if x > 1.0 { 2.0 - x } else { x }).clamp(0.0, 0.999_999)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(config: &Config) -> Vec<Case> {
        (0..config.images())
            .map(|index| case(config, index))
            .collect()
    }

    #[test]
    fn both_classes_are_well_populated_in_both_splits() {
        let cases = all(&Config::default());
        for split in [Split::Train, Split::Test] {
            let part: Vec<_> = cases.iter().filter(|c| c.split == split).collect();
            let share = |f: &dyn Fn(&Case) -> bool| {
                part.iter().filter(|c| f(c)).count() as f64 / part.len() as f64
            };
            assert_eq!(part.len(), if split == Split::Train { 144 } else { 96 });
            for (name, value) in [
                ("dr", share(&|c| c.grade > 0)),
                ("referable", share(&|c| c.grade > 1 || c.edema)),
                ("gon", share(&|c| c.cup_to_disc >= GON_RATIO)),
            ] {
                assert!((0.2..0.75).contains(&value), "{split:?} {name} {value}");
            }
            assert!((0..=4).all(|g| part.iter().filter(|c| c.grade == g).count() >= 4));
        }
    }

    #[test]
    fn eyes_of_a_patient_agree_in_person_and_correlate_in_disease() {
        let cases = all(&Config {
            patients: 400,
            ..Config::default()
        });
        let pairs: Vec<_> = cases.chunks_exact(2).collect();
        for pair in &pairs {
            assert_eq!(
                (pair[0].age, pair[0].sex, pair[0].split),
                (pair[1].age, pair[1].sex, pair[1].split)
            );
            assert_eq!(
                (pair[0].eye, pair[1].eye),
                (Laterality::Right, Laterality::Left)
            );
        }
        let n = pairs.len() as f64;
        let mean = |side: usize| pairs.iter().map(|p| f64::from(p[side].grade)).sum::<f64>() / n;
        let (a, b) = (mean(0), mean(1));
        let moment = |i: usize, j: usize, a: f64, b: f64| {
            pairs
                .iter()
                .map(|p| (f64::from(p[i].grade) - a) * (f64::from(p[j].grade) - b))
                .sum::<f64>()
                / n
        };
        let r = moment(0, 1, a, b) / (moment(0, 0, a, a) * moment(1, 1, b, b)).sqrt();
        assert!((0.6..0.98).contains(&r), "{r}");
        let unequal = pairs.iter().filter(|p| p[0].grade != p[1].grade).count();
        assert!(unequal > 20, "{unequal}");
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
