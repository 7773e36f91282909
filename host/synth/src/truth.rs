//! What is known of a picture. Units are pixels of that picture, origin at its top left corner, x right, y down: the
//! centre of the first pixel is (0.5, 0.5), and a box that holds just that pixel is 0, 0, 1, 1.

use crate::anatomy::Anatomy;
use crate::cohort::Case;
use crate::config::Config;
use crate::mask::Mask;
use crate::optic::Optic;
use serde::{Deserialize, Serialize};

/// A picture with its truth.
#[derive(Debug, Clone)]
pub struct Eye {
    /// `size * size * 3` bytes, RGB, row-major.
    pub rgb: Vec<u8>,
    /// Masks that are not empty, in the order of [`crate::MASK_KINDS`].
    pub masks: Vec<Mask>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// To be fitted on.
    Train,
    /// To choose settings on.
    Validation,
    /// To be judged on.
    Test,
}

/// Labels of one eye, true or as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Labels {
    /// ICDR grade, 0 to 4.
    pub grade: u8,
    /// Level of edema: 2 where the centre of a hard exudate lies within a third of a disc diameter of the fovea, 1 where one
    /// lies within one disc diameter, else 0.
    pub edema: u8,
    /// Glaucomatous optic neuropathy: a vertical cup-to-disc ratio of at least 0.6.
    pub gon: bool,
}

macro_rules! words {
    ($type:ident, $($variant:ident => $word:literal),+) => {
        impl $type {
            /// The word used in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}
words!(Laterality, Right => "right", Left => "left");
words!(Sex, F => "F", M => "M");
words!(Quality, Good => "good", Poor => "poor");
words!(Split, Train => "train", Validation => "validation", Test => "test");
words!(LesionKind, Microaneurysm => "microaneurysm", Haemorrhage => "haemorrhage", HardExudate => "hard_exudate",
    SoftExudate => "soft_exudate", Neovascularisation => "neovascularisation", Drusen => "drusen", Speck => "speck");

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
    /// Left, top, right and bottom edge of the pixels in its mask.
    pub bounds: [u32; 4],
    /// How plainly it is drawn, 0 (invisible) to 1.
    pub contrast: f64,
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
    /// Name of the population.
    pub population: String,
    /// Name of the camera.
    pub camera: String,
    /// Photographic quality.
    pub quality: Quality,
    /// What is drawn.
    pub labels: Labels,
    /// What is recorded: the labels after noise.
    pub recorded: Labels,
    /// Vertical cup-to-disc ratio as drawn, 0 to 1.
    pub cup_to_disc: f64,
    /// The same measured in whole rows of the masks of cup and disc.
    pub measured_cup_to_disc: f64,
    /// Whether the disc's rim has a notch.
    pub rim_notch: bool,
    /// Whether a myopic crescent lies beside the disc.
    pub myopic_crescent: bool,
    /// Whether there are drusen.
    pub drusen: bool,
    /// Whether the veins are beaded.
    pub venous_beading: bool,
    /// Pigmentation of the fundus, 0 to 1.
    pub pigment: f64,
    /// Visibility of the choroid's vessels, 0 to 1.
    pub tessellation: f64,
    /// Disc centre, pixels.
    pub disc: (f64, f64),
    /// Half the disc's vertical diameter, pixels.
    pub disc_radius: f64,
    /// Half the disc's horizontal diameter, pixels.
    pub disc_half_width: f64,
    /// Centre of the fovea, pixels.
    pub fovea: (f64, f64),
    /// Centre of the circular field, pixels.
    pub field: (f64, f64),
    /// Radius of the circular field, pixels.
    pub field_radius: f64,
    /// All lesions, in drawing order.
    pub lesions: Vec<Lesion>,
    /// Kinds of the masks that are not empty.
    pub masks: Vec<&'static str>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

pub(crate) fn assemble(
    config: &Config,
    case: &Case,
    anatomy: &Anatomy,
    optic: &Optic,
    lesions: Vec<Lesion>,
    masks: &[Mask],
) -> Truth {
    // Inside, the centre of a pixel has whole coordinates.
    let outside = |(x, y): (f64, f64)| (x + 0.5, y + 0.5);
    let rows = |what| {
        let mask = masks.iter().find(|m| m.what == what);
        f64::from(mask.map_or(0, |m| m.rows(config.size)))
    };
    Truth {
        name: case.name.clone(),
        patient: case.patient,
        split: case.split,
        eye: case.eye,
        age: case.age,
        sex: case.sex,
        population: config.populations[case.population].name.clone(),
        camera: config.cameras[case.camera].name.clone(),
        quality: case.quality,
        labels: case.labels,
        recorded: case.recorded,
        cup_to_disc: case.cup_to_disc,
        measured_cup_to_disc: rows("optic_cup") / rows("optic_disc").max(1.0),
        rim_notch: optic.notched(),
        myopic_crescent: case.crescent > 0.0,
        drusen: case.drusen,
        venous_beading: crate::vessels::beaded(case),
        pigment: case.pigment,
        tessellation: case.tessellation,
        disc: outside(anatomy.disc),
        disc_radius: anatomy.disc_radius,
        disc_half_width: anatomy.disc_radius * anatomy.disc_aspect,
        fovea: outside(anatomy.fovea),
        field: outside(anatomy.field),
        field_radius: anatomy.radius,
        lesions,
        masks: masks.iter().map(|m| m.what).collect(),
        width: config.size,
        height: config.size,
    }
}
