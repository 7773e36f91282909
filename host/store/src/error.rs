//! Everything that can go wrong in the store, with the file, the row and the rule. Advice is kept apart, in `hint`.

use std::{io, path::PathBuf};

/// Result of a store operation.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("Could not {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb ("read", "rename").
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("`{}` is in use by process {pid} on `{host}`", path.display())]
    Locked {
        /// The locked folder or file.
        path: PathBuf,
        /// The holder's process id as it wrote it, or `unknown`.
        pid: String,
        /// The holder's host name as it wrote it, or `unknown`.
        host: String,
    },
    /// The folder belongs to a run of another identity.
    #[error("`{}` belongs to another run: `{field}` differs: expected {expected}, found {found}", path.display())]
    IdentityDiffers {
        /// The run folder.
        path: PathBuf,
        /// First field that differs, as a path into `run.json` (`models[0].plugin.digest`).
        field: String,
        /// What the folder holds, as JSON, shortened.
        expected: String,
        /// What this run would have written, as JSON, shortened.
        found: String,
    },
    /// The folder exists and is no run folder.
    #[error("`{}` is not a run folder: {what}", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file's bytes are not what was written.
    #[error("`{}` is damaged: {what}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// A frame of an answer log is not what was written.
    #[error("`{}` is damaged: frame {frame} at byte {offset}: {what}", file.display())]
    DamagedFrame {
        /// The log.
        file: PathBuf,
        /// Number of the frame, from 0.
        frame: u64,
        /// Byte at which the frame begins.
        offset: u64,
        /// What does not fit.
        what: String,
    },
    /// The file holds another table.
    #[error("`{}` holds another table: expected schema `{expected}`, found `{found}`", file.display())]
    SchemaName {
        /// The file.
        file: PathBuf,
        /// Name wanted.
        expected: String,
        /// Name in the file, or `none`.
        found: String,
    },
    /// The file is of another version of the contract.
    #[error("`{}` has another schema version: expected {expected}, found {found}", file.display())]
    SchemaVersion {
        /// The file.
        file: PathBuf,
        /// Version this program reads.
        expected: u32,
        /// Version in the file.
        found: String,
    },
    /// A column of the contract is not there.
    #[error("`{}` lacks the column `{column}`", file.display())]
    MissingColumn {
        /// The file.
        file: PathBuf,
        /// Name of the column.
        column: String,
    },
    /// A column is of another type.
    #[error("`{}`, column `{column}` has another type: expected {expected}, found {found}", file.display())]
    ColumnType {
        /// The file.
        file: PathBuf,
        /// Name of the column.
        column: String,
        /// Type of the contract.
        expected: String,
        /// Type in the file.
        found: String,
    },
    /// A row breaks a rule of its table.
    #[error("`{}`, row {row}: {rule}, found {found}", file.display())]
    Rule {
        /// The file (read, or about to be written).
        file: PathBuf,
        /// Row from 0, in the order of the file (or of the rows given).
        row: u64,
        /// The rule, as a sentence without its full stop.
        rule: &'static str,
        /// What was there instead.
        found: String,
    },
    /// Something is larger than `Limits` allows.
    #[error("`{}` is too large: {what}: expected at most {limit}, found {found}", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// What was measured.
        what: &'static str,
        /// The cap.
        limit: u64,
        /// The size found or claimed.
        found: u64,
    },
    /// One sample was answered twice.
    #[error("`{}` answers sample {sample} twice", file.display())]
    DuplicateSample {
        /// The log.
        file: PathBuf,
        /// Index of the sample in the records.
        sample: u32,
    },
    /// An answer log or file is for embeddings of another width.
    #[error("`{}` holds embeddings of another width: expected {expected}, found {found}", file.display())]
    Width {
        /// The file.
        file: PathBuf,
        /// Width asked for.
        expected: usize,
        /// Width in the file.
        found: usize,
    },
    /// Writing into the log failed before and it could not be brought back to a whole frame.
    #[error("`{}` cannot take more answers: an earlier write failed and could not be undone", file.display())]
    LogClosed {
        /// The log.
        file: PathBuf,
    },
    /// Arrow or Parquet refused to encode.
    #[error("Could not encode `{}`: {what}", file.display())]
    Encode {
        /// The file to be.
        file: PathBuf,
        /// What the library said.
        what: String,
    },
}

impl StoreError {
    /// What to do about it, when there is something to do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Locked { pid, .. } if pid == "unknown" => "wait for the other process to end, or stop it".into(),
            Self::Locked { pid, .. } => format!(
                "wait for process {pid} to end, or stop it; the lock goes with its process, so deleting the file is never needed"
            ),
            Self::IdentityDiffers { field, .. } => {
                format!("give another run folder, or the same `{field}` as before; embeddings already computed stay in the cache")
            }
            Self::NotARun { .. } => "give a folder that is empty or does not exist yet".into(),
            Self::DamagedFrame { file, .. } => format!(
                "bytes before this frame are whole; move `{}` away and run again: embeddings that reached the cache cost no model time",
                file.display()
            ),
            Self::Damaged { file, .. } if file.ends_with("run.json") => {
                "what the run was can no longer be told: run again into another folder; embeddings that reached the cache cost no model time".into()
            }
            Self::Damaged { file, .. } => {
                format!("move `{}` away and run again: what it held is computed anew", file.display())
            }
            Self::SchemaVersion { .. } => {
                "read it with the version of focus-host that wrote it (see `run.json`), or compute it anew".into()
            }
            Self::SchemaName { .. } | Self::MissingColumn { .. } | Self::ColumnType { .. } => {
                "docs/formats.md lists the columns of each table".into()
            }
            Self::TooLarge { .. } => "a file of this size was not written by focus-host; `Limits` holds the caps".into(),
            Self::Width { .. } => "the model's output has changed; give another run folder".into(),
            Self::LogClosed { .. } => "free some disk space and run the same command again; whole batches are kept".into(),
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

    pub(crate) fn damaged(file: impl Into<PathBuf>, what: impl ToString) -> Self {
        Self::Damaged {
            file: file.into(),
            what: shorten(&what.to_string(), 300),
        }
    }

    pub(crate) fn encode(
        file: impl Into<PathBuf>,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let file = file.into();
        move |e| Self::Encode {
            file,
            what: e.to_string(),
        }
    }

    pub(crate) fn rule(
        file: impl Into<PathBuf>,
        row: usize,
        rule: &'static str,
        found: impl ToString,
    ) -> Self {
        Self::Rule {
            file: file.into(),
            row: row as u64,
            rule,
            found: shorten(&found.to_string(), 120),
        }
    }

    /// The bytes are wrong, as against the system having refused: a cache may drop the file and go on.
    pub(crate) fn is_damage(&self) -> bool {
        !matches!(
            self,
            Self::Io { .. } | Self::Locked { .. } | Self::Encode { .. }
        )
    }
}

/// At most `cap` characters of `text`.
pub(crate) fn shorten(text: &str, cap: usize) -> String {
    match text.char_indices().nth(cap) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_state_expected_and_found_and_hints_stand_apart() {
        let e = StoreError::IdentityDiffers {
            path: "runs/a".into(),
            field: "device_kind".into(),
            expected: "\"cpu\"".into(),
            found: "\"cuda\"".into(),
        };
        assert_eq!(
            e.to_string(),
            "`runs/a` belongs to another run: `device_kind` differs: expected \"cpu\", found \"cuda\""
        );
        assert!(e.hint().expect("has advice").contains("`device_kind`"));
        let e = StoreError::rule("p.parquet", 7, "`score` must lie in [0, 1]", 1.5);
        assert_eq!(
            e.to_string(),
            "`p.parquet`, row 7: `score` must lie in [0, 1], found 1.5"
        );
        assert!(e.hint().is_none());
    }

    #[test]
    fn shortening_respects_character_borders() {
        assert_eq!(shorten("éèà", 2), "éè...");
        assert_eq!(shorten("éè", 2), "éè");
    }
}
