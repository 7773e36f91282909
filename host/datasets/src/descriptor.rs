//! What a mapper says about itself, as the host keeps it. Converted from the contract's types in `contract`, so that the
//! rest of the host does not change when a version of the contract does.

use serde::{Deserialize, Serialize};

use crate::record::Track;

/// How a researcher gets the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Anyone may download it.
    Open,
    /// An account and a click on terms.
    Registration,
    /// Training and a signed agreement.
    Credentialed,
    /// On request to the authors.
    Request,
}

/// Kind of camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// Table-top.
    Desktop,
    /// Hand-held.
    Mobile,
    /// Not known, or drawn.
    Unknown,
}

/// The camera behind the dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its kind.
    pub kind: DeviceKind,
    /// Maker and model.
    pub camera: Option<String>,
}

/// A fact beside the labels that a dataset can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Field {
    Patient,
    Eye,
    Age,
    Sex,
    Quality,
    Grade,
    Edema,
    View,
    Vcdr,
    Findings,
    Landmarks,
    Boxes,
    Masks,
    Contours,
    Device,
}

/// A task that the dataset offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// `binary_dr`, `referable_dr`, `glaucoma`, or another one.
    pub id: String,
    /// Tracks in which it is offered; in the others each label is unknown.
    pub tracks: Vec<Track>,
    /// When a row is positive, in one line.
    pub rule: String,
    /// The host labels the task: positive where the vertical cup-to-disc ratio is this or more.
    #[serde(default)]
    pub vcdr_at_least: Option<f64>,
}

/// A choice the user may make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub title: String,
    /// What is allowed, the default first; empty allows any text, with an empty default.
    pub values: Vec<String>,
}

/// A column wanted of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The header's text.
    pub name: String,
    /// Other spellings.
    pub aliases: Vec<String>,
    /// Its absence is an error.
    pub required: bool,
}

/// A sheet of a workbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sheet {
    /// Alternative relative paths (`*`, `?`).
    pub paths: Vec<String>,
    /// The sheet's name; the first without one.
    pub name: Option<String>,
    /// Rows of the header.
    pub header_rows: u32,
}

/// Where a table's rows come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableSource {
    /// A file at the first of these relative paths (`*`, `?`) that matches.
    Csv(Vec<String>),
    /// A sheet of a workbook.
    Xlsx(Sheet),
    /// JSON objects in a file at the first of these paths that matches.
    Json(Vec<String>),
    /// The files of an image folder, one row each.
    Listing(String),
}

impl TableSource {
    /// Paths of the file that the rows come from; none for a listing.
    pub fn paths(&self) -> Option<&[String]> {
        match self {
            Self::Csv(paths) | Self::Json(paths) => Some(paths),
            Self::Xlsx(sheet) => Some(&sheet.paths),
            Self::Listing(_) => None,
        }
    }
}

/// A table's columns added to the rows of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Id of the primary table.
    pub onto: String,
    /// Pairs (column here, column there).
    pub keys: Vec<(String, String)>,
    /// Several primary rows may share one row of this table.
    pub many_to_one: bool,
    /// A primary row without a partner is an error.
    pub every_primary: bool,
    /// A row of this table without a partner is an error.
    pub every_secondary: bool,
}

/// A table wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its id.
    pub id: String,
    /// Where its rows come from.
    pub source: TableSource,
    /// Its absence is an error.
    pub required: bool,
    /// A column that is not listed is an error.
    pub closed: bool,
    /// Columns wanted.
    pub columns: Vec<Column>,
    /// Present where its rows only add to those of another.
    pub join: Option<Join>,
}

/// How a mapper names the files of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageKey {
    /// With the extension.
    Name,
    /// Without it.
    Stem,
    /// With it, case ignored.
    NameAnyCase,
    /// Without it, case ignored.
    StemAnyCase,
}

/// An image folder wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    /// Its id.
    pub id: String,
    /// Alternative relative paths (`*`, `?`).
    pub paths: Vec<String>,
    /// Its absence is an error.
    pub required: bool,
    /// Sub-folders count.
    pub recursive: bool,
    /// Extensions without the dot, case ignored.
    pub extensions: Vec<String>,
    /// How its files are named.
    pub key: ImageKey,
}

/// What a mapper says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Id of the dataset, part of each sample's key.
    pub id: String,
    /// Name for people.
    pub title: String,
    /// The mapper's version.
    pub version: String,
    /// Licence of the data.
    pub licence: String,
    /// How to get it.
    pub access: Access,
    /// Where to get it.
    pub route: String,
    /// What to cite.
    pub citation: String,
    /// Country of the photographs.
    pub country: Option<String>,
    /// Camera.
    pub device: Device,
    /// Drawn by a program: every report says so.
    pub synthetic: bool,
    /// Tasks offered.
    pub tasks: Vec<Task>,
    /// Facts offered beside the labels.
    pub fields: Vec<Field>,
    /// Options.
    pub options: Vec<OptionSpec>,
    /// Tables wanted.
    pub tables: Vec<Table>,
    /// Image folders wanted.
    pub folders: Vec<Folder>,
}

impl Descriptor {
    /// The task of this id, where the dataset offers it.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// Whether the dataset can give a field.
    pub fn gives(&self, field: Field) -> bool {
        self.fields.contains(&field)
    }
}
