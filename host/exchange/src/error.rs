//! What may go wrong between the store and the world outside, with expected and found, and advice apart. It must not
//! know which command failed.

use focus_store::StoreError;
use std::{fmt, io, path::PathBuf};

/// Result of this crate.
pub type Result<T, E = ExchangeError> = std::result::Result<T, E>;

/// How many rows or conflicts an error lists; the rest is counted.
pub(crate) const LISTED: usize = 20;

/// A row that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The file, as found below the folder that was given.
    pub file: String,
    /// Line on which the row starts, from 1 (the header is line 1).
    pub line: u64,
    /// The rule, as a sentence without its full stop.
    pub rule: &'static str,
    /// What was there instead.
    pub found: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}`, line {}: {}, found {}",
            self.file, self.line, self.rule, self.found
        )
    }
}

/// Two files that give one image two labels for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Dataset id.
    pub dataset: String,
    /// Task id.
    pub task: String,
    /// Id of the image.
    pub id: String,
    /// File, line and label of the first.
    pub first: (String, u64, bool),
    /// File, line and label of the second.
    pub second: (String, u64, bool),
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |(file, line, label): &(String, u64, bool)| {
            format!("{} (`{file}`, line {line})", u8::from(*label))
        };
        write!(
            f,
            "{} {} `{}`: {} and {}",
            self.dataset,
            self.task,
            self.id,
            place(&self.first),
            place(&self.second)
        )
    }
}

/// What may go wrong.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The operating system refused.
    #[error("Could not {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried (`read`).
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A folder without one result file.
    #[error("No result files in `{}`: expected CSV files named as the published code names them, found none", folder.display())]
    NoFiles {
        /// The folder.
        folder: PathBuf,
    },
    /// File names that have no reading, or more than one.
    #[error("{}", names_message(.names))]
    FileNames {
        /// Name and its readings, for each.
        names: Vec<(String, Vec<String>)>,
    },
    /// A file that is not the text it should be.
    #[error("`{file}` cannot be read: {what}")]
    Text {
        /// The file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// A header without the columns that are needed, or with some twice.
    #[error("`{file}` has other columns: expected {expected}, found {found}")]
    Columns {
        /// The file.
        file: String,
        /// What is needed.
        expected: String,
        /// The header, or the part of it that is wrong.
        found: String,
    },
    /// Rows that break rules, over all files.
    #[error("{}", rows_message(.shown, *.total))]
    BadRows {
        /// The first of them.
        shown: Vec<BadRow>,
        /// How many there are.
        total: u64,
    },
    /// Labels that differ between files.
    #[error("{}", conflicts_message(.shown, *.total))]
    LabelsDisagree {
        /// The first of them.
        shown: Vec<Conflict>,
        /// How many there are.
        total: u64,
    },
    /// Two files for one cell.
    #[error(
        "One cell must come from one file: expected one for `{cell}`, found `{first}` and `{second}`"
    )]
    SameCell {
        /// The cell.
        cell: String,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// An id that may mean several images.
    #[error("`{file}`, line {line}: `{id}` of {dataset} must name one image, found {}", .candidates.join(", "))]
    AmbiguousId {
        /// The file.
        file: String,
        /// The line.
        line: u64,
        /// Dataset id.
        dataset: String,
        /// The id as written.
        id: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// An option that cannot be met.
    #[error("{what}: expected {expected}, found {found}")]
    Option {
        /// Which.
        what: String,
        /// What is allowed.
        expected: String,
        /// What was given.
        found: String,
    },
    /// The output is there already.
    #[error("`{}` must not exist or be an empty folder, found something in it", path.display())]
    OutputExists {
        /// The folder.
        path: PathBuf,
    },
}

fn list(items: &[impl fmt::Display], total: u64) -> String {
    let mut text: String = items.iter().map(|item| format!("\n  {item}")).collect();
    if total > items.len() as u64 {
        text.push_str(&format!("\n  and {} more", total - items.len() as u64));
    }
    text
}

fn rows_message(shown: &[BadRow], total: u64) -> String {
    format!(
        "Rows break rules: expected none, found {total}{}",
        list(shown, total)
    )
}

fn conflicts_message(shown: &[Conflict], total: u64) -> String {
    format!(
        "Labels differ between files: expected one label for each image and task, found {total} with two{}",
        list(shown, total)
    )
}

fn names_message(names: &[(String, Vec<String>)]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|(name, readings)| match readings.as_slice() {
            [] => format!("`{name}`: no reading"),
            _ => format!("`{name}`: {}", readings.join("; or ")),
        })
        .collect();
    format!(
        "File names must have one reading: found {} without{}",
        names.len(),
        list(&shown, names.len() as u64)
    )
}

impl ExchangeError {
    /// What to do about it, when there is something to do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Store(error) => return error.hint(),
            Self::NoFiles { .. } => {
                "give the folder that the published code wrote with `--output_dir`".into()
            }
            Self::FileNames { names } if names.iter().any(|(_, readings)| readings.len() > 1) => {
                "give an alias for the model, so that one reading is known".into()
            }
            Self::FileNames { .. } => {
                "move files that are no result files out of the folder, or pass over them with `--on-bad-row drop`; docs/exchange.md lists the names".into()
            }
            Self::BadRows { shown, .. } if shown.iter().any(|row| row.rule == crate::import::ONCE) => {
                "the published code doubles IDRiD's rows; `--on-bad-row drop` keeps one of rows that are the same and none of rows that differ, and counts both".into()
            }
            Self::BadRows { .. } => {
                "mend the rows, or leave them out with `--on-bad-row drop`, which counts them".into()
            }
            Self::LabelsDisagree { .. } => {
                "these files were made from different label tables, or ids of different images are the same; import them apart".into()
            }
            Self::SameCell { .. } => "keep one of the two in the folder".into(),
            Self::AmbiguousId { .. } => "write ids that name one image, such as the path below the data folder".into(),
            Self::OutputExists { .. } => "give a folder that does not exist yet".into(),
            Self::Columns { .. } => "docs/exchange.md lists the columns".into(),
            _ => return None,
        })
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// At most `cap` characters of `text`, for messages.
pub(crate) fn shorten(text: &str, cap: usize) -> String {
    match text.char_indices().nth(cap) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Bad rows of a whole import: the first are kept, all are counted.
#[derive(Debug, Default)]
pub(crate) struct BadRows {
    pub shown: Vec<BadRow>,
    pub total: u64,
}

impl BadRows {
    pub fn push(&mut self, row: BadRow) {
        self.total += 1;
        if self.shown.len() < LISTED {
            self.shown.push(row);
        }
    }

    pub fn extend(&mut self, rows: impl IntoIterator<Item = BadRow>) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}
