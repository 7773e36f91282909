//! What is to be simulated: datasets, cells, and the true performance of each reader; and the presets. It must not know
//! how scores are drawn.

use super::random::Stream;
use crate::error::{ExchangeError, Result};
use focus_store::CellKey;
use serde::Serialize;

/// An attribute that splits images into two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Attribute {
    /// Older or younger than the median of the dataset's patients.
    Age,
    /// Female or male.
    Sex,
    /// Good or poor photograph.
    Quality,
}

impl Attribute {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Age, Self::Sex, Self::Quality];

    /// Its name in subsets (`age`).
    pub fn as_str(self) -> &'static str {
        ["age", "sex", "quality"][self as usize]
    }

    /// The two groups, the one that effects apply to first. Signed gaps are first minus second.
    pub fn groups(self) -> [&'static str; 2] {
        [["older", "younger"], ["female", "male"], ["good", "poor"]][self as usize]
    }
}

/// How the first group of an attribute differs from the second, in standard deviations of the latent score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    /// Which attribute.
    pub attribute: Attribute,
    /// Added to every score of the group: moves TPR and FPR together.
    pub shift: f64,
    /// Added to the distance between positives and negatives: moves AUROC.
    pub separation: f64,
}

/// How scores relate to true probabilities: logit(score) = intercept + slope logit(probability).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// 1 is calibrated; above 1, overconfident. Positive.
    pub slope: f64,
    /// 0 is calibrated.
    pub intercept: f64,
}

impl Calibration {
    /// Scores are probabilities.
    pub const PERFECT: Self = Self {
        slope: 1.0,
        intercept: 0.0,
    };
}

/// One task of a simulated dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SimTask {
    /// Task id.
    pub task: String,
    /// Images that are positive.
    pub positives: usize,
    /// Tasks of one disease share what makes an image positive: the positives of the rarer are positives of the other.
    pub disease: String,
}

/// One simulated test set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SimDataset {
    /// Dataset id.
    pub id: String,
    /// Images.
    pub images: usize,
    /// Patients, each with one or two of the images; none: the dataset has no patient key.
    pub patients: Option<usize>,
    /// Age and sex are known.
    pub demographics: bool,
    /// Quality is known.
    pub quality: bool,
    /// Its tasks.
    pub tasks: Vec<SimTask>,
}

/// A reader on one task of one dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimCell {
    /// Which cell.
    pub cell: CellKey,
    /// True AUROC over the whole test set, within (0.5, 1).
    pub auroc: f64,
    /// Calibration.
    pub calibration: Calibration,
    /// Group differences.
    pub effects: Vec<Effect>,
    /// The other arm (an earlier cell) whose scores these follow.
    pub base: Option<usize>,
}

/// A model that takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimModel {
    /// Model id.
    pub id: String,
    /// Method ids, one cell each.
    pub methods: Vec<String>,
    /// Training datasets of its adapters: one further arm each, `<id>+lora-<dataset>-<task>`, by prompting.
    pub adapters: Vec<String>,
}

/// Everything that decides what is drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimPlan {
    /// Seed.
    pub seed: u64,
    /// Test sets.
    pub datasets: Vec<SimDataset>,
    /// Readers.
    pub cells: Vec<SimCell>,
    /// Correlation of the two images of a patient, within a class. In [0, 1).
    pub patient_correlation: f64,
    /// Share of a score's variance that all readers have in common (hard images). In [0, 1).
    pub shared_difficulty: f64,
    /// Correlation between the own parts of an arm and its base. In [0, 1).
    pub arm_correlation: f64,
}

/// Plans that are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Sizes of the published grid, readers that differ.
    Published,
    /// The same sizes, no difference anywhere: one AUROC, no group effects, no change by adapters.
    Null,
    /// Two small test sets, readers that differ.
    Small,
}

fn task(task: &str, positives: usize) -> SimTask {
    SimTask {
        task: task.into(),
        positives,
        disease: if task == "glaucoma" {
            "glaucoma"
        } else {
            "retinopathy"
        }
        .into(),
    }
}

fn dataset(
    id: &str,
    images: usize,
    patients: Option<usize>,
    positives: &[(&str, usize)],
) -> SimDataset {
    SimDataset {
        id: id.into(),
        images,
        patients,
        demographics: patients.is_some(),
        quality: false,
        tasks: positives.iter().map(|(name, n)| task(name, *n)).collect(),
    }
}

// The same with the quality of each photograph.
fn graded(set: SimDataset) -> SimDataset {
    SimDataset {
        quality: true,
        ..set
    }
}

/// The published test sets. Sizes, patients and positives are those of spec/datasets.md; positives of BRSET and mBRSET
/// are not published and are set to round shares (40, 30 and 20 %; 30, 22 and 16 %); where only a total is known
/// (PAPILA, Messidor-2, JSIEC) the test set has its share.
fn published_sets() -> Vec<SimDataset> {
    let (dr, referable, glaucoma) = ("binary_dr", "referable_dr", "glaucoma");
    vec![
        graded(dataset(
            "brset",
            768,
            Some(403),
            &[(dr, 307), (referable, 230), (glaucoma, 154)],
        )),
        graded(dataset(
            "mbrset",
            772,
            Some(386),
            &[(dr, 232), (referable, 170), (glaucoma, 124)],
        )),
        dataset("papila", 195, Some(158), &[(glaucoma, 62)]),
        dataset("rfmid", 640, None, &[(dr, 124), (referable, 2)]),
        dataset("rfmid_2", 170, None, &[(dr, 14), (referable, 2)]),
        dataset("idrid", 103, None, &[(dr, 69), (referable, 64)]),
        dataset("messidor_2", 698, None, &[(dr, 291), (referable, 186)]),
        dataset("refuge", 400, None, &[(glaucoma, 40)]),
        dataset("g1020", 408, None, &[(glaucoma, 118)]),
        dataset("jsiec1000", 400, None, &[(dr, 60), (referable, 53)]),
    ]
}

fn small_sets() -> Vec<SimDataset> {
    vec![
        graded(dataset(
            "brset",
            120,
            Some(70),
            &[("binary_dr", 50), ("glaucoma", 40)],
        )),
        dataset("refuge", 60, None, &[("glaucoma", 20)]),
    ]
}

impl Preset {
    /// The plan for `models`: every model and method on every task of every dataset, then the adapters.
    pub fn plan(self, models: &[SimModel], seed: u64) -> SimPlan {
        let datasets = match self {
            Self::Small => small_sets(),
            Self::Published | Self::Null => published_sets(),
        };
        let mut plan = SimPlan {
            seed,
            datasets,
            cells: Vec::new(),
            patient_correlation: 0.4,
            shared_difficulty: 0.3,
            arm_correlation: 0.8,
        };
        let sets = plan.datasets.clone();
        for set in &sets {
            for task in &set.tasks {
                for model in models {
                    for method in &model.methods {
                        let cell = CellKey::new(&set.id, &task.task, method, &model.id);
                        let cell = self.reader(set, task, cell, seed);
                        plan.cells.push(cell);
                    }
                    let base = plan.cells.iter().rposition(|c| {
                        c.cell.model == model.id
                            && c.cell.method == "prompting"
                            && c.cell.dataset == set.id
                            && c.cell.task == task.task
                    });
                    for trained in base.iter().flat_map(|_| &model.adapters) {
                        let arm = format!("{}+lora-{trained}-{}", model.id, task.task);
                        let cell = CellKey::new(&set.id, &task.task, "prompting", &arm);
                        let base = base.expect("an adapter is only drawn with its base");
                        let mut reader = plan.cells[base].clone();
                        if self != Self::Null {
                            let gain = if *trained == set.id { 0.06 } else { 0.01 };
                            reader.auroc = (reader.auroc + gain).min(0.97);
                            reader.calibration = Calibration {
                                slope: 1.2,
                                ..reader.calibration
                            };
                        }
                        plan.cells.push(SimCell {
                            cell,
                            base: Some(base),
                            ..reader
                        });
                    }
                }
            }
        }
        plan
    }

    fn reader(self, set: &SimDataset, task: &SimTask, cell: CellKey, seed: u64) -> SimCell {
        // Balanced class weights, as the published probes have: a score of a half where the odds are the prior's.
        let odds = task.positives as f64 / (set.images - task.positives) as f64;
        let balanced = Calibration {
            slope: 1.0,
            intercept: -super::maths::ln(odds),
        };
        if self == Self::Null {
            return SimCell {
                cell,
                auroc: 0.75,
                calibration: balanced,
                effects: Vec::new(),
                base: None,
            };
        }
        let mut stream = Stream::new(seed, &["reader", &cell.file_stem()]);
        let mut within = |low: f64, high: f64| low + (high - low) * stream.uniform();
        let auroc = within(0.6, 0.93);
        let mut effects = Vec::new();
        if set.demographics {
            effects.push(Effect {
                attribute: Attribute::Age,
                shift: within(-0.4, 0.4),
                separation: within(-0.3, 0.1),
            });
            effects.push(Effect {
                attribute: Attribute::Sex,
                shift: within(-0.2, 0.2),
                separation: within(-0.1, 0.1),
            });
        }
        if set.quality {
            effects.push(Effect {
                attribute: Attribute::Quality,
                shift: within(-0.2, 0.2),
                separation: within(0.0, 0.4),
            });
        }
        let calibration = match cell.method.as_str() {
            "zero_shot" => Calibration {
                slope: 0.6,
                intercept: 0.3,
            },
            "prompting" => Calibration {
                slope: 1.6,
                ..balanced
            },
            _ => balanced,
        };
        SimCell {
            cell,
            auroc,
            calibration,
            effects,
            base: None,
        }
    }
}

impl SimPlan {
    /// The dataset and the task of `cell`.
    pub(super) fn place(&self, cell: &SimCell) -> Result<(&SimDataset, &SimTask)> {
        let set = self.datasets.iter().find(|set| set.id == cell.cell.dataset);
        let found =
            set.and_then(|set| Some((set, set.tasks.iter().find(|t| t.task == cell.cell.task)?)));
        found.ok_or_else(|| unfit(&cell.cell, "a dataset and task of the plan", "none"))
    }

    /// Check that the plan can be drawn.
    pub fn check(&self) -> Result<()> {
        for set in &self.datasets {
            let of = |what: &str| format!("Simulated dataset `{}`, {what}", set.id);
            if let Some(patients) = set
                .patients
                .filter(|p| !(*p <= set.images && set.images <= 2 * p))
            {
                return Err(ExchangeError::Option {
                    what: of("patients"),
                    expected: format!("as many as give each one or two of {} images", set.images),
                    found: patients.to_string(),
                });
            }
            for task in &set.tasks {
                if task.positives == 0 || task.positives >= set.images {
                    return Err(ExchangeError::Option {
                        what: of("positives"),
                        expected: format!("within 1 and {}", set.images.saturating_sub(1)),
                        found: task.positives.to_string(),
                    });
                }
            }
        }
        for share in [
            self.patient_correlation,
            self.shared_difficulty,
            self.arm_correlation,
        ] {
            if !(0.0..1.0).contains(&share) {
                return Err(ExchangeError::Option {
                    what: "A correlation".into(),
                    expected: "within [0, 1)".into(),
                    found: share.to_string(),
                });
            }
        }
        for (i, cell) in self.cells.iter().enumerate() {
            let (set, _) = self.place(cell)?;
            if !(cell.auroc > 0.5 && cell.auroc < 1.0) {
                return Err(unfit(
                    &cell.cell,
                    "a true AUROC within (0.5, 1)",
                    &cell.auroc.to_string(),
                ));
            }
            if !(cell.calibration.slope > 0.0
                && cell.calibration.slope.is_finite()
                && cell.calibration.intercept.is_finite())
            {
                return Err(unfit(
                    &cell.cell,
                    "a positive slope and a finite intercept",
                    &format!("{:?}", cell.calibration),
                ));
            }
            for effect in &cell.effects {
                let known = if effect.attribute == Attribute::Quality {
                    set.quality
                } else {
                    set.demographics
                };
                if !known || !effect.shift.is_finite() || !effect.separation.is_finite() {
                    return Err(unfit(
                        &cell.cell,
                        "finite effects of attributes that the dataset has",
                        &format!("{effect:?}"),
                    ));
                }
            }
            let same = |base: &SimCell| {
                base.cell.dataset == cell.cell.dataset && base.cell.task == cell.cell.task
            };
            if let Some(base) = cell
                .base
                .filter(|b| *b >= i || !same(&self.cells[*b]) || self.cells[*b].base.is_some())
            {
                return Err(unfit(
                    &cell.cell,
                    "an earlier cell of the same images, itself without a base, as its base",
                    &format!("cell {base}"),
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn unfit(cell: &CellKey, expected: &str, found: &str) -> ExchangeError {
    ExchangeError::Option {
        what: format!("Simulated cell `{cell}`"),
        expected: expected.into(),
        found: found.into(),
    }
}
