//! The append-only log of answers: opened, recovered, appended to, iterated. One process at a time; it does not sort.

use super::{
    batch::AnswerBatch,
    row::{AnswerRow, Outcome, answer_schema, check, to_batch},
    width::dim_of,
};
use crate::{
    error::{Result, StoreError},
    log::{AnswerLogOptions, FrameLog, TornTail},
};
use arrow_schema::SchemaRef;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// What a log held when it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswersSummary {
    /// Samples that are answered, whatever the outcome.
    pub done: BTreeSet<u32>,
    /// How many answers had each outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// What was cut off, if the last write had not ended.
    pub torn: Option<TornTail>,
}

/// An open answer log.
#[derive(Debug)]
pub struct AnswerLog {
    pub(super) log: FrameLog,
    pub(super) dim: usize,
    pub(super) schema: SchemaRef,
    answered: Answered,
}

/// Which samples are answered, and where.
#[derive(Debug, Default)]
struct Answered {
    first_rows: Vec<usize>,
    /// Sample, frame and row of each answer, in the order of the log.
    index: Vec<(u32, u32, u32)>,
    done: BTreeSet<u32>,
}

impl Answered {
    fn note(&mut self, file: &Path, limit: u64, frame: u32, samples: &[u32]) -> Result<()> {
        let found = (self.index.len() + samples.len()) as u64;
        if found > limit {
            return Err(StoreError::TooLarge {
                file: file.into(),
                what: "rows",
                limit,
                found,
            });
        }
        self.first_rows.push(self.index.len());
        for (row, sample) in samples.iter().enumerate() {
            if !self.done.insert(*sample) {
                return Err(StoreError::DuplicateSample {
                    file: file.into(),
                    sample: *sample,
                });
            }
            self.index.push((*sample, frame, row as u32));
        }
        Ok(())
    }
}

impl AnswerLog {
    /// Open the log at `path`, or start one for embeddings of `dim` values, with default options.
    pub fn open_or_create(path: &Path, dim: usize) -> Result<(Self, AnswersSummary)> {
        Self::open_with(path, dim, AnswerLogOptions::default())
    }

    /// Open the log at `path`, or start one for embeddings of `dim` values. Every whole frame is read and checked; a torn
    /// tail is cut off with a warning.
    pub fn open_with(
        path: &Path,
        dim: usize,
        options: AnswerLogOptions,
    ) -> Result<(Self, AnswersSummary)> {
        if dim == 0 || dim > options.limits.dim {
            let (limit, found) = (options.limits.dim as u64, dim as u64);
            return Err(StoreError::TooLarge {
                file: path.into(),
                what: "values of an embedding",
                limit,
                found,
            });
        }
        let schema = answer_schema(dim);
        let mut log = FrameLog::open(path, &schema, options, |bytes| {
            let found = dim_of(path, bytes, &options.limits)?;
            if found != dim {
                return Err(StoreError::Width {
                    file: path.into(),
                    expected: dim,
                    found,
                });
            }
            Ok(())
        })?;
        let mut answered = Answered::default();
        let mut summary = AnswersSummary::default();
        let limits = options.limits;
        summary.torn = log.recover(&mut |frame, batch| {
            let first = answered.index.len();
            let batch = AnswerBatch::checked(path, first, batch, dim, limits.string_bytes)?;
            (0..batch.len()).for_each(|row| {
                *summary.outcomes.entry(batch.outcome(row)).or_default() += 1;
            });
            answered.note(path, limits.rows, frame, batch.samples())
        })?;
        summary.done.clone_from(&answered.done);
        let log = Self {
            log,
            dim,
            schema,
            answered,
        };
        Ok((log, summary))
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        self.log.path()
    }

    /// Values of an embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Samples that are answered.
    pub fn done(&self) -> &BTreeSet<u32> {
        &self.answered.done
    }

    /// Sample, frame and row of each answer, in the order of the log.
    pub(super) fn index(&self) -> &[(u32, u32, u32)] {
        &self.answered.index
    }

    /// Append a batch. When this returns, the answers survive the death of the process (and, with `SyncPolicy::EachBatch`,
    /// of the machine). On an error none of them is in the log.
    pub fn append(&mut self, rows: &[AnswerRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.log.writable()?;
        let mut samples = BTreeSet::new();
        for (i, row) in rows.iter().enumerate() {
            let rule = |rule, found: String| StoreError::rule(self.path(), i, rule, found);
            check(
                row.outcome,
                row.reason.as_deref(),
                row.embedding.as_deref(),
                self.dim,
            )
            .map_err(|(text, found)| rule(text, found))?;
            let longest = [Some(&row.id), row.reason.as_ref(), row.message.as_ref()]
                .into_iter()
                .flatten()
                .map(String::len)
                .max();
            if longest.is_some_and(|l| l > self.log.limits().string_bytes) {
                return Err(rule(
                    "a text must be no longer than `Limits::string_bytes`",
                    format!("{longest:?} bytes"),
                ));
            }
            if self.done().contains(&row.sample) || !samples.insert(row.sample) {
                return Err(StoreError::DuplicateSample {
                    file: self.path().into(),
                    sample: row.sample,
                });
            }
        }
        let frame = self.log.append(&to_batch(&self.schema, self.dim, rows))?;
        let samples: Vec<u32> = rows.iter().map(|r| r.sample).collect();
        let limit = self.log.limits().rows;
        self.answered.note(self.log.path(), limit, frame, &samples)
    }

    /// Force everything appended to disk.
    pub fn sync(&mut self) -> Result<()> {
        self.log.sync()
    }

    /// The batches as they were appended, one in memory at a time, checked again.
    pub fn batches(&self) -> AnswerBatches<'_> {
        AnswerBatches { log: self, next: 0 }
    }

    pub(super) fn batch(&self, number: usize) -> Result<AnswerBatch> {
        AnswerBatch::checked(
            self.path(),
            self.answered.first_rows[number],
            self.log.batch(number)?,
            self.dim,
            self.log.limits().string_bytes,
        )
    }
}

/// Iterator over a log's batches.
#[derive(Debug)]
pub struct AnswerBatches<'a> {
    log: &'a AnswerLog,
    next: usize,
}

impl Iterator for AnswerBatches<'_> {
    type Item = Result<AnswerBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next;
        self.next += 1;
        (number < self.log.log.frames()).then(|| self.log.batch(number))
    }
}

#[cfg(test)]
mod tests;
