//! What a mapping run gives: records, and an account of every row and file that gave none.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::descriptor::Descriptor;
use crate::table::Encoding;

/// A label's state. Unknown is never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Truth {
    Negative,
    Positive,
    Unknown,
}

impl Truth {
    /// `None` where unknown.
    pub fn known(self) -> Option<bool> {
        match self {
            Self::Negative => Some(false),
            Self::Positive => Some(true),
            Self::Unknown => None,
        }
    }
}

/// Whose definition of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Track {
    /// What the benchmark's paper and code compute.
    AsPublished,
    /// What a statistician would sign.
    Corrected,
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum $type { $($variant),+ }

        impl $type {
            /// The word used in files and reports.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The source's own split.
    Split { Train => "train", Validation => "validation", Test => "test" }
}
words! {
    /// Which eye.
    Eye { Right => "right", Left => "left" }
}
words! {
    /// Sex as recorded by the source.
    Sex { Female => "female", Male => "male" }
}
words! {
    /// The source's judgement of the photograph.
    Quality { Good => "good", Poor => "poor" }
}
words! {
    /// What the photograph is centred on.
    View { Macula => "macula", Disc => "disc" }
}
words! {
    /// A point of anatomy.
    LandmarkKind { Disc => "disc", Fovea => "fovea" }
}

words! {
    /// A structure of the optic nerve head.
    Structure { Disc => "disc", Cup => "cup" }
}

/// What identifies an image: dataset, source split and path together. A file name alone does not (IDRiD).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SampleId {
    /// Id of the dataset.
    pub dataset: String,
    /// The source's split.
    pub split: Option<Split>,
    /// Path below the data folder, `/` between components.
    pub path: String,
}

impl SampleId {
    /// An opaque id: 32 hexadecimal digits, a hash of the key. It may be shown to a model; the path may not, since file
    /// and folder names leak labels.
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("focus-host 2026-11 sample id");
        for part in [
            self.dataset.as_str(),
            self.split.map_or("", Split::as_str),
            self.path.as_str(),
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

impl fmt::Display for SampleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}",
            self.dataset,
            self.split.map_or("-", Split::as_str),
            self.path
        )
    }
}

/// A task's label in both tracks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLabel {
    /// Id of the task.
    pub task: String,
    /// The published definition.
    pub as_published: Truth,
    /// The corrected one.
    pub corrected: Truth,
}

/// Age at the time of the photograph.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Age {
    /// Years, 0 to 150.
    pub years: f64,
    /// The source says "this or more".
    pub at_least: bool,
}

/// Size of the picture in whose pixels coordinates are; the stored file may be smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Frame {
    pub width: u32,
    pub height: u32,
}

/// A point, in pixels of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Landmark {
    pub kind: LandmarkKind,
    pub x: f64,
    pub y: f64,
    pub frame: Frame,
}

/// A box, in pixels of its frame; `x1 < x2`, `y1 < y2`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct BoundingBox {
    pub what: String,
    pub x1: f64,
    pub y1: f64,
    pub x2: f64,
    pub y2: f64,
    pub frame: Frame,
}

/// A picture that marks a structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    /// What it marks.
    pub what: String,
    /// Path below the data folder.
    pub path: String,
    /// The pixel values that mark it. Several structures may share a picture.
    pub values: Vec<u8>,
    /// Those of the rest of the picture. Another value means another coding: refuse it.
    pub others: Vec<u8>,
}

/// A text file of an outline's points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contour {
    /// What it outlines.
    pub structure: Structure,
    /// Who drew it.
    pub annotator: String,
    /// Path below the data folder.
    pub path: String,
}

/// A named finding of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Finding {
    pub name: String,
    pub state: Truth,
}

/// One image with what its source says about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its key.
    pub sample: SampleId,
    /// Path of the table below the data folder, or the folder of a listing.
    pub table: String,
    /// Line of the table, from 1.
    pub line: u32,
    /// The source's patient key.
    pub patient: Option<String>,
    /// Which eye.
    pub eye: Option<Eye>,
    /// What it is centred on.
    pub view: Option<View>,
    /// Labels of the tasks that the mapper spoke of; a task without an entry is unknown.
    pub labels: Vec<TaskLabel>,
    /// ICDR grade 0 to 4.
    pub grade: Option<u8>,
    /// Macular edema: 0 none; above, the source's own levels.
    pub edema: Option<u8>,
    /// Age.
    pub age: Option<Age>,
    /// Sex.
    pub sex: Option<Sex>,
    /// Quality.
    pub quality: Option<Quality>,
    /// Vertical cup-to-disc ratio, 0 to 1.
    pub vcdr: Option<f64>,
    /// Camera of this photograph, where the source names it.
    pub camera: Option<String>,
    /// Findings.
    pub findings: Vec<Finding>,
    /// Points.
    pub landmarks: Vec<Landmark>,
    /// Boxes.
    pub boxes: Vec<BoundingBox>,
    /// Masks.
    pub masks: Vec<Mask>,
    /// Outlines.
    #[serde(default)]
    pub contours: Vec<Contour>,
}

impl Record {
    /// A task's label in a track; unknown where the mapper said nothing.
    pub fn label(&self, task: &str, track: Track) -> Truth {
        self.labels
            .iter()
            .find(|label| label.task == task)
            .map_or(Truth::Unknown, |label| match track {
                Track::AsPublished => label.as_published,
                Track::Corrected => label.corrected,
            })
    }

    /// Takes a vertical cup-to-disc ratio, and labels the tasks that the dataset leaves to it: for a caller that measures
    /// masks, as the mapping run does for contours.
    pub fn set_vcdr(&mut self, vcdr: f64, descriptor: &Descriptor) {
        self.vcdr = Some(vcdr);
        for task in &descriptor.tasks {
            let Some(threshold) = task.vcdr_at_least else {
                continue;
            };
            let state = |track| match (task.tracks.contains(&track), vcdr >= threshold) {
                (false, _) => Truth::Unknown,
                (true, true) => Truth::Positive,
                (true, false) => Truth::Negative,
            };
            self.labels.retain(|label| label.task != task.id);
            self.labels.push(TaskLabel {
                task: task.id.clone(),
                as_published: state(Track::AsPublished),
                corrected: state(Track::Corrected),
            });
        }
    }

    /// A point of this kind.
    pub fn landmark(&self, kind: LandmarkKind) -> Option<&Landmark> {
        self.landmarks.iter().find(|landmark| landmark.kind == kind)
    }
}

/// A row that the mapper left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Dropped {
    pub table: String,
    pub line: u32,
    pub reason: String,
    pub detail: Option<String>,
}

/// A row whose image is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The table.
    pub table: String,
    /// The line.
    pub line: u32,
    /// The folder looked in, below the data folder, and the name as the mapper gave it.
    pub image: String,
}

/// A mask or contour that a record cannot use. The record stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Unusable {
    pub table: String,
    pub line: u32,
    /// Path below the data folder, or the folder and the name that was looked for.
    pub file: String,
    pub reason: String,
}

/// What became of a join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct JoinReport {
    pub onto: String,
    /// Primary rows with a partner.
    pub matched: u64,
    /// Primary rows without one.
    pub without_partner: u64,
    /// Rows of this table that no primary row asked for.
    pub unused: u64,
}

/// A table as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableReport {
    /// The descriptor's id for it.
    pub id: String,
    /// Path below the data folder.
    pub path: String,
    /// Data rows, blank ones not counted.
    pub rows: u64,
    /// Rows with nothing in them, skipped.
    pub blank_rows: u64,
    /// BLAKE3 of the file, hexadecimal; of the list of names for a listing.
    pub digest: String,
    /// How its bytes were read; `None` for a listing or a workbook.
    pub encoding: Option<Encoding>,
    /// The separator of separated values.
    pub separator: Option<char>,
    /// Columns that the mapper did not ask for.
    pub ignored_columns: Vec<String>,
    /// What became of its join, where it has one.
    pub join: Option<JoinReport>,
}

/// A mapping run without its records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What the mapper says about itself and the dataset.
    pub descriptor: Descriptor,
    /// BLAKE3 of the mapper's file, hexadecimal.
    pub mapper_digest: String,
    /// Options in force, defaults included.
    pub options: Vec<(String, String)>,
    /// Number of records.
    pub mapped: u64,
    /// Rows read only for what they say about others.
    pub used_rows: u64,
    /// Rows left out, with the reason.
    pub dropped: Vec<Dropped>,
    /// Rows whose image is not there. They gave no record.
    pub missing: Vec<Missing>,
    /// Masks and contours that a record names and cannot use.
    #[serde(default)]
    pub unusable: Vec<Unusable>,
    /// Files of the image folders that no row named, below the data folder.
    pub unmatched: Vec<String>,
    /// Tables read.
    pub tables: Vec<TableReport>,
    /// Optional tables and folders that are not there.
    pub absent: Vec<String>,
    /// The data folder, symbolic links resolved. Not serialised: it belongs to this machine.
    #[serde(skip)]
    pub root: PathBuf,
}

impl Summary {
    /// Where a sample's file lies on this machine. Never to be shown to a model.
    pub fn file(&self, path: &str) -> PathBuf {
        self.root.join(Path::new(path))
    }
}

/// A mapping run. Reads as its [`Summary`] too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mapped {
    /// Everything but the records.
    #[serde(flatten)]
    pub summary: Summary,
    /// The records, in the order of the tables and their rows (of `finish` for those that a mapper held back).
    pub records: Vec<Record>,
}

impl Deref for Mapped {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(dataset: &str, split: Option<Split>, path: &str) -> SampleId {
        SampleId {
            dataset: dataset.into(),
            split,
            path: path.into(),
        }
    }

    #[test]
    fn opaque_ids_depend_on_every_part() {
        let base = id("a", Some(Split::Train), "x/1.jpg");
        assert_eq!(base.id().len(), 32);
        assert_eq!(base.id(), base.clone().id());
        for other in [
            id("b", Some(Split::Train), "x/1.jpg"),
            id("a", Some(Split::Test), "x/1.jpg"),
            id("a", None, "x/1.jpg"),
            id("a", Some(Split::Train), "x/2.jpg"),
            id("ax", Some(Split::Train), "/1.jpg"),
        ] {
            assert_ne!(base.id(), other.id(), "{other}");
        }
        assert!(!base.id().contains("jpg"));
    }
}
