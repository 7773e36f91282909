//! Everything that can go wrong in this room, with the advice that goes with it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::text;

/// What callers branch on. Numbers are stable and only ever appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorKind {
    /// The request is wrong: no such mapper, no such option.
    Usage = 1,
    /// The data folder or a file in it is not what was expected.
    Data = 2,
    /// The mapper is broken or misbehaves.
    Mapper = 3,
    /// The mapper does not know how to read the data.
    Refused = 4,
    /// The operating system refused.
    Io = 5,
    /// The caller's own consumer of records failed.
    Sink = 6,
}

/// A mapper, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapperName {
    /// Id of an embedded mapper or the path of a file.
    pub name: String,
    /// The version it claims, once it said so.
    pub version: Option<String>,
}

impl fmt::Display for MapperName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapper `{}`", self.name)?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        Ok(())
    }
}

/// A row, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Path below the data folder.
    pub file: String,
    /// Line, from 1.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", text::quote(&self.file, 300))?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        Ok(())
    }
}

/// What a mapper did wrong. Guest text in it is capped and escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum MapperFault {
    #[error("is no WASM component: {0}")]
    NotAComponent(String),
    #[error("is too large: {bytes} bytes, expected at most {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("wants imports, expected none: {0}")]
    Imports(String),
    #[error("does not export the mapper contract `focus:mapper@0.2.0`: {0}")]
    Contract(String),
    #[error("used up its fuel in {during}: expected at most {limit} units a call")]
    Fuel { during: String, limit: u64 },
    #[error("ran out of time in {during}: expected at most {limit:?} a call")]
    Time { during: String, limit: Duration },
    #[error("asked for too much memory in {during}: {wanted} bytes, expected at most {limit}")]
    Memory {
        during: String,
        wanted: usize,
        limit: usize,
    },
    #[error("asked for too large a table in {during}: {wanted} elements, expected at most {limit}")]
    TableElements {
        during: String,
        wanted: usize,
        limit: usize,
    },
    #[error("returned too much from {during}: expected at most {limit} bytes")]
    Returned { during: String, limit: usize },
    #[error("stopped in {during}: {text}")]
    Trap { during: String, text: String },
    #[error("is dead: an earlier call ended it")]
    Dead,
    #[error("describes itself badly: {0}")]
    Descriptor(String),
    #[error("answered {place} twice")]
    RowTwice { place: Place },
    #[error("gave no answer for {lost} of {rows} rows; the first is {place}")]
    RowsLost { lost: u64, rows: u64, place: Place },
    #[error("answered a row that it was never given: table {table}, row {row}")]
    UnknownRow { table: u32, row: u32 },
    #[error("returned a bad sample for {place}: {what}")]
    Sample { place: Place, what: String },
    #[error("returned a bad outcome for {place}: {what}")]
    Outcome { place: Place, what: String },
}

/// What is wrong with a table's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TableFault {
    #[error("is empty, expected a header")]
    Empty,
    #[error("is too large: {bytes} bytes, expected at most {limit}")]
    FileTooLarge { bytes: u64, limit: u64 },
    #[error("holds a record of over {limit} bytes: a quote that is never closed looks so")]
    RecordTooLong { limit: usize },
    #[error("holds a cell of {bytes} bytes in column {column}, expected at most {limit}")]
    CellTooLong {
        column: usize,
        bytes: usize,
        limit: usize,
    },
    #[error("has over {limit} columns")]
    TooManyColumns { limit: usize },
    #[error("has over {limit} rows")]
    TooManyRows { limit: u32 },
    #[error("opens a quote that is never closed")]
    OpenQuote,
    #[error("lacks {missing}, expected among the columns; found {seen}")]
    MissingColumns { missing: String, seen: String },
    #[error("has columns that the mapper does not know: {unknown}; it knows {known}")]
    UnknownColumns { unknown: String, known: String },
    #[error("has the column {name} twice, at {first} and {second}")]
    DoubledColumn {
        name: String,
        first: usize,
        second: usize,
    },
    #[error("spells the column {name} in two ways at once: {spellings}")]
    TwoSpellings { name: String, spellings: String },
    #[error("has {found} cells, expected {expected} as in the header")]
    Ragged { found: usize, expected: usize },
    #[error("is not valid {encoding} at byte {offset}, as its byte order mark claims")]
    Malformed { encoding: &'static str, offset: u64 },
    #[error(
        "holds a zero byte at byte {offset}: UTF-16 without a byte order mark, or no text at all"
    )]
    ZeroByte { offset: u64 },
    #[error("changed while it was read")]
    Changed,
    #[error("unpacks to more than {limit} bytes")]
    Unpacked { limit: u64 },
    #[error("is no XLSX workbook that can be read: {0}")]
    Workbook(String),
    #[error("has no sheet{}; found {seen}", wanted.as_deref().map(|w| format!(" `{w}`")).unwrap_or_default())]
    NoSheet {
        wanted: Option<String>,
        seen: String,
    },
    #[error("holds an error in column {column}, expected a value, found `{found}`")]
    CellError { column: usize, found: String },
    #[error("is not valid {encoding} at byte {offset}")]
    Encoding { encoding: &'static str, offset: u64 },
    #[error("is not the JSON expected, an array or an object of objects: {0}")]
    Json(String),
    #[error("has the member {0} twice in one object")]
    DoubledMember(String),
    #[error("holds an object or an array in {0}, expected a value")]
    Nested(String),
    #[error("has no value in the key column {0}")]
    BlankKey(String),
}

/// Any failure of this room.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DatasetError {
    #[error("No mapper `{name}`, expected one of {known} or the path of a `.wasm` file")]
    UnknownMapper { name: String, known: String },
    #[error("{mapper} has no option `{option}`, expected one of {known}")]
    UnknownOption {
        mapper: Box<MapperName>,
        option: String,
        known: String,
    },
    #[error("{mapper} does not allow `{value}` for option `{option}`, expected one of {allowed}")]
    OptionValue {
        mapper: Box<MapperName>,
        option: String,
        value: String,
        allowed: String,
    },
    #[error("Cannot read `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("Cannot start the WASM engine: {0}")]
    Engine(String),
    #[error("{mapper} {fault}")]
    Mapper {
        mapper: Box<MapperName>,
        fault: MapperFault,
    },
    #[error("{mapper} cannot read {place}{}: expected {rule}, found {found}", column.as_deref().map(|c| format!(", column `{c}`")).unwrap_or_default())]
    Refused {
        mapper: Box<MapperName>,
        place: Box<Place>,
        column: Option<String>,
        rule: String,
        found: String,
    },
    #[error("{mapper} refuses its options: expected {rule}, found {found}")]
    RefusedOptions {
        mapper: Box<MapperName>,
        rule: String,
        found: String,
    },
    #[error("No data folder `{}`", path.display())]
    NoFolder { path: PathBuf },
    #[error("`{}` is not a folder of {title}: looked for {wanted}; found {found}", path.display())]
    Layout {
        path: PathBuf,
        title: String,
        wanted: Box<str>,
        found: Box<str>,
        better: Option<PathBuf>,
    },
    #[error("`{pattern}` fits more than one file: {matches}")]
    Ambiguous { pattern: String, matches: String },
    #[error("`{path}` leads out of the data folder")]
    Escape { path: String },
    #[error("{place} {fault}")]
    Table { place: Place, fault: TableFault },
    #[error(
        "Cannot join `{table}` onto `{onto}`: {rows} rows of it share their key with another, which would double rows; the first is at line {line}"
    )]
    JoinKeyTwice {
        table: String,
        onto: String,
        rows: u64,
        line: u64,
    },
    #[error(
        "Joining `{table}` would give {rows} rows of `{onto}` a partner that another row has; the first is at line {line}"
    )]
    JoinDoubles {
        table: String,
        onto: String,
        rows: u64,
        line: u64,
    },
    #[error(
        "Joining `{table}` would lose {lost} of {rows} rows of `{onto}`, which have no partner; the first is at line {line}"
    )]
    JoinLosesPrimary {
        table: String,
        onto: String,
        lost: u64,
        rows: u64,
        line: u64,
    },
    #[error(
        "Joining `{table}` would lose {lost} of its {rows} rows, which no row of `{onto}` asks for; the first is at line {line}"
    )]
    JoinLosesSecondary {
        table: String,
        onto: String,
        lost: u64,
        rows: u64,
        line: u64,
    },
    #[error("The tables to join onto `{table}` are too large: over {limit} bytes")]
    JoinTooLarge { table: String, limit: usize },
    #[error("`{folder}` holds too many files: over {limit}")]
    TooManyImages { folder: String, limit: usize },
    #[error("{second} names `{image}`, which {first} has already")]
    ImageTwice {
        image: String,
        first: Place,
        second: Place,
    },
    #[error("{place} names `{name}`, which fits {matches}")]
    AmbiguousImage {
        place: Place,
        name: String,
        matches: String,
    },
    #[error("None of the {rows} rows of {title} gave a record: {dropped} dropped, {missing} without an image{}", example.as_deref().map(|e| format!(" (the first: `{e}`)")).unwrap_or_default())]
    NothingMapped {
        title: String,
        rows: u64,
        dropped: u64,
        missing: u64,
        example: Option<String>,
    },
    #[error("The consumer of records failed: {0}")]
    Sink(Box<dyn std::error::Error + Send + Sync>),
}

impl DatasetError {
    /// What callers branch on.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownMapper { .. } | Self::UnknownOption { .. } | Self::OptionValue { .. } => {
                ErrorKind::Usage
            }
            Self::Io { .. } | Self::Engine(_) => ErrorKind::Io,
            Self::Mapper { .. } => ErrorKind::Mapper,
            Self::Refused { .. } | Self::RefusedOptions { .. } => ErrorKind::Refused,
            Self::Sink(_) => ErrorKind::Sink,
            _ => ErrorKind::Data,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Layout { better: Some(path), .. } => format!("Try `--data {}`", path.display()),
            Self::Layout { .. } => {
                "Give the folder that holds these, as downloaded and unpacked; the dataset's own page says what belongs \
                 where"
                    .into()
            }
            Self::NoFolder { .. } => "`--data` takes the folder that the dataset was unpacked into".into(),
            Self::UnknownMapper { .. } => "`focus-host dataset list` shows the mappers".into(),
            Self::Refused { .. } => {
                "The file may be of another version than the mapper knows, or was edited; nothing is guessed".into()
            }
            Self::Escape { .. } | Self::Table { fault: TableFault::Changed, .. } => {
                "Copy the data into one folder, or give the real folder as the data folder".into()
            }
            Self::Table { fault: TableFault::MissingColumns { .. } | TableFault::UnknownColumns { .. }, .. } => {
                "This version of the label file is not known to the mapper; `dataset list` says which it reads".into()
            }
            Self::Table { fault: TableFault::ZeroByte { .. }, .. } => "Save the file as UTF-8".into(),
            Self::ImageTwice { .. } => "One image with two rows would count twice, or with two labels: remove one".into(),
            Self::AmbiguousImage { .. } | Self::Ambiguous { .. } => "Remove the copy that does not belong".into(),
            Self::NothingMapped { missing, .. } if *missing > 0 => {
                "Are the photographs unpacked beside the tables?".into()
            }
            Self::Mapper { fault: MapperFault::NotAComponent(_) | MapperFault::Contract(_), .. } => {
                "Build mappers with `scripts/build-mappers`; examples/mapper is a template".into()
            }
            Self::Mapper { fault: MapperFault::Imports(_), .. } => {
                "A mapper may use no clock, file, network or randomness; build it for wasm32-unknown-unknown".into()
            }
            _ => return None,
        };
        Some(hint)
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    pub(crate) fn table(file: &str, line: Option<u64>, fault: TableFault) -> Self {
        Self::Table {
            place: Place {
                file: file.into(),
                line,
            },
            fault,
        }
    }
}
