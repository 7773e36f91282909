//! What is known of a picture. Units are pixels of that picture, origin at its top left corner, x right, y down.

use crate::anatomy::Anatomy;
use crate::cohort::Case;
use crate::config::Config;
use serde::Serialize;

/// A picture with its truth.
#[derive(Debug, Clone)]
pub struct Eye {
    /// `size * size * 3` bytes, RGB, row-major.
    pub rgb: Vec<u8>,
    /// What is true of it.
    pub truth: Truth,
}

/// Which eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Laterality {
    /// Right eye: the disc lies right of the fovea in the photograph.
    Right,
    /// Left eye: the disc lies left of the fovea.
    Left,
}

/// Sex as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Sex {
    /// Female.
    F,
    /// Male.
    M,
}

/// Photographic quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// Sharp and lit.
    Good,
    /// Blurred and dark.
    Poor,
}

/// Which part of the dataset; the same for both eyes of a patient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Three patients in five.
    Train,
    /// Two patients in five.
    Test,
}

macro_rules! words {
    ($type:ident, $($variant:ident => $word:literal),+) => {
        impl $type {
            /// The word used in `labels.csv`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}
words!(Laterality, Right => "right", Left => "left");
words!(Sex, F => "F", M => "M");
words!(Quality, Good => "good", Poor => "poor");
words!(Split, Train => "train", Test => "test");

/// What a lesion is. `Drusen` and `Speck` are no signs of diabetic retinopathy; they are there to be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LesionKind {
    /// Small round red dot.
    Microaneurysm,
    /// Dark red blot, or flame along the nerve fibres.
    Haemorrhage,
    /// Small sharp yellow deposit.
    HardExudate,
    /// Cotton-wool spot: pale patch with a soft edge.
    SoftExudate,
    /// Tuft of fine new vessels.
    Neovascularisation,
    /// Pale dot under the macula of an older eye.
    Drusen,
    /// Dust or pigment.
    Speck,
}

/// One lesion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lesion {
    /// What it is.
    pub kind: LesionKind,
    /// Centre, pixels.
    pub x: f64,
    /// Centre, pixels.
    pub y: f64,
    /// Half the longest extent, pixels.
    pub radius: f64,
}

/// Everything known of a picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Truth {
    /// Opaque name, 16 hexadecimal digits; says nothing of the label, the split or the patient.
    pub name: String,
    /// Patient number from 0.
    pub patient: u32,
    /// Part of the dataset.
    pub split: Split,
    /// Which eye.
    pub eye: Laterality,
    /// Age in years.
    pub age: u32,
    /// Sex.
    pub sex: Sex,
    /// Photographic quality.
    pub quality: Quality,
    /// ICDR grade, 0 to 4.
    pub grade: u8,
    /// Hard exudates within one disc diameter of the fovea.
    pub edema: bool,
    /// Vertical cup-to-disc ratio of at least 0.6.
    pub gon: bool,
    /// Vertical cup-to-disc ratio, 0 to 1.
    pub cup_to_disc: f64,
    /// Disc centre, pixels.
    pub disc: (f64, f64),
    /// Half the disc's vertical diameter, pixels.
    pub disc_radius: f64,
    /// Centre of the fovea, pixels.
    pub fovea: (f64, f64),
    /// Centre of the circular field, pixels.
    pub field: (f64, f64),
    /// Radius of the circular field, pixels.
    pub field_radius: f64,
    /// All lesions, in drawing order.
    pub lesions: Vec<Lesion>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

pub(crate) fn assemble(
    config: &Config,
    case: &Case,
    anatomy: &Anatomy,
    marks: &[crate::lesions::Mark],
) -> Truth {
    Truth {
        name: case.name.clone(),
        patient: case.patient,
        split: case.split,
        eye: case.eye,
        age: case.age,
        sex: case.sex,
        quality: case.quality,
        grade: case.grade,
        edema: case.edema,
        gon: case.cup_to_disc >= crate::cohort::GON_RATIO,
        cup_to_disc: case.cup_to_disc,
        disc: anatomy.disc,
        disc_radius: anatomy.disc_radius,
        fovea: anatomy.fovea,
        field: anatomy.field,
        field_radius: anatomy.radius,
        lesions: marks
            .iter()
            .map(|mark| Lesion {
                kind: mark.kind,
                x: mark.x,
                y: mark.y,
                radius: mark.extent(),
            })
            .collect(),
        width: config.size,
        height: config.size,
    }
}
