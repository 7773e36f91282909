//! The append-only log of answers: opened, recovered, appended to, iterated. One process at a time; it does not sort.

use super::{
    batch::AnswerBatch,
    decode::{decode, dim_of, encode, schema_bytes},
    frame::{Found, Frame, encode_frame, encode_header, read_frame, read_header, read_payload},
    row::{AnswerRow, Outcome, answer_schema, check, to_batch},
};
use crate::{
    atomic::write_atomic,
    error::{Result, StoreError},
    limits::Limits,
};
use arrow_schema::SchemaRef;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// When appended answers are forced to disk. Every policy survives the death of the process, kill -9 included: a batch
/// is in the system's hands when `append` returns. The policies differ in what a power cut may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// `fdatasync` after each batch: a power cut takes nothing that `append` returned for. The default.
    EachBatch,
    /// `fdatasync` when this long has passed since the last one.
    Every(Duration),
    /// Only when the log is finished: a power cut may take what the system had not yet written.
    AtEnd,
}

/// How to open a log.
#[derive(Debug, Clone, Copy)]
pub struct AnswerLogOptions {
    /// When to force answers to disk.
    pub sync: SyncPolicy,
    /// Caps on reading.
    pub limits: Limits,
}

impl Default for AnswerLogOptions {
    fn default() -> Self {
        Self {
            sync: SyncPolicy::EachBatch,
            limits: Limits::default(),
        }
    }
}

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

/// The beginning of a frame that was being written when its process died. Its answers were never reported as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornTail {
    /// Where the log was cut.
    pub offset: u64,
    /// Bytes removed.
    pub bytes: u64,
}

/// An open answer log.
#[derive(Debug)]
pub struct AnswerLog {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) dim: usize,
    pub(super) schema: SchemaRef,
    pub(super) frames: Vec<Frame>,
    first_rows: Vec<usize>,
    /// Sample, frame and row of each answer, in the order of the log.
    pub(super) index: Vec<(u32, u32, u32)>,
    done: BTreeSet<u32>,
    end: u64,
    pub(super) options: AnswerLogOptions,
    synced: std::time::Instant,
    closed: bool,
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
        if !path.exists() {
            // Whole or absent: a header cut short is never a kill's work, so it can be called damage.
            write_atomic(path, &encode_header(&schema_bytes(&schema)))?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(StoreError::io("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked {
                    path: path.into(),
                    pid: "unknown".into(),
                    host: "unknown".into(),
                });
            }
            Err(TryLockError::Error(e)) => return Err(StoreError::io("lock", path)(e)),
        }
        let (bytes, first) = read_header(path, &file)?;
        let found = dim_of(path, &bytes, &options.limits)?;
        if found != dim {
            return Err(StoreError::Width {
                file: path.into(),
                expected: dim,
                found,
            });
        }
        let (frames, index, done) = (Vec::new(), Vec::new(), BTreeSet::new());
        let synced = std::time::Instant::now();
        let path = path.to_owned();
        let first_rows = Vec::new();
        let end = first;
        let mut log = Self {
            path,
            file,
            dim,
            schema,
            frames,
            first_rows,
            index,
            done,
            end,
            options,
            synced,
            closed: false,
        };
        let mut summary = log.recover()?;
        summary.done.clone_from(&log.done);
        Ok((log, summary))
    }

    fn recover(&mut self) -> Result<AnswersSummary> {
        let size = self
            .file
            .metadata()
            .map_err(StoreError::io("read", &self.path))?
            .len();
        let limits = self.options.limits;
        if size > limits.file_bytes {
            return Err(StoreError::TooLarge {
                file: self.path.clone(),
                what: "bytes",
                limit: limits.file_bytes,
                found: size,
            });
        }
        let mut summary = AnswersSummary::default();
        loop {
            let number = self.frames.len() as u32;
            match read_frame(&self.path, &self.file, number, self.end, size, &limits)? {
                Found::End => return Ok(summary),
                Found::Frame(frame, payload) => {
                    let batch = self.checked(&frame, payload, self.index.len())?;
                    (0..batch.len()).for_each(|row| {
                        *summary.outcomes.entry(batch.outcome(row)).or_default() += 1;
                    });
                    self.note(frame, batch.samples())?;
                }
                Found::Torn => {
                    let torn = TornTail {
                        offset: self.end,
                        bytes: size - self.end,
                    };
                    tracing::warn!(
                        log = %self.path.display(), torn.offset, torn.bytes,
                        "the last batch of answers was being written when its process ended; it is cut off and asked again"
                    );
                    self.file
                        .set_len(self.end)
                        .and_then(|()| self.file.sync_data())
                        .map_err(StoreError::io("cut", &self.path))?;
                    summary.torn = Some(torn);
                    return Ok(summary);
                }
            }
        }
    }

    // `first` is the number of the frame's first row in the log.
    fn checked(&self, frame: &Frame, payload: Vec<u8>, first: usize) -> Result<AnswerBatch> {
        let damaged = |what: String| StoreError::DamagedFrame {
            file: self.path.clone(),
            frame: frame.number.into(),
            offset: frame.offset,
            what,
        };
        let batch = decode(payload, &self.schema).map_err(damaged)?;
        if batch.num_rows() != frame.rows as usize {
            return Err(damaged(format!(
                "it should hold {} rows and holds {}",
                frame.rows,
                batch.num_rows()
            )));
        }
        AnswerBatch::checked(
            &self.path,
            first,
            batch,
            self.dim,
            self.options.limits.string_bytes,
        )
    }

    fn note(&mut self, frame: Frame, samples: &[u32]) -> Result<()> {
        if (self.index.len() + samples.len()) as u64 > self.options.limits.rows {
            let found = (self.index.len() + samples.len()) as u64;
            return Err(StoreError::TooLarge {
                file: self.path.clone(),
                what: "rows",
                limit: self.options.limits.rows,
                found,
            });
        }
        self.first_rows.push(self.index.len());
        for (row, sample) in samples.iter().enumerate() {
            if !self.done.insert(*sample) {
                return Err(StoreError::DuplicateSample {
                    file: self.path.clone(),
                    sample: *sample,
                });
            }
            self.index.push((*sample, frame.number, row as u32));
        }
        self.frames.push(frame);
        self.end = frame.end();
        Ok(())
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Values of an embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Samples that are answered.
    pub fn done(&self) -> &BTreeSet<u32> {
        &self.done
    }

    /// Append a batch. When this returns, the answers survive the death of the process (and, with `SyncPolicy::EachBatch`,
    /// of the machine). On an error none of them is in the log.
    pub fn append(&mut self, rows: &[AnswerRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if self.closed {
            return Err(StoreError::LogClosed {
                file: self.path.clone(),
            });
        }
        let mut samples = BTreeSet::new();
        for (i, row) in rows.iter().enumerate() {
            let rule = |rule, found: String| StoreError::rule(&self.path, i, rule, found);
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
            if longest.is_some_and(|l| l > self.options.limits.string_bytes) {
                return Err(rule(
                    "a text must be no longer than `Limits::string_bytes`",
                    format!("{longest:?} bytes"),
                ));
            }
            if self.done.contains(&row.sample) || !samples.insert(row.sample) {
                return Err(StoreError::DuplicateSample {
                    file: self.path.clone(),
                    sample: row.sample,
                });
            }
        }
        let payload =
            encode(&to_batch(&self.schema, self.dim, rows)).map_err(|e| StoreError::Encode {
                file: self.path.clone(),
                what: e.to_string(),
            })?;
        if payload.len() as u64 > u64::from(self.options.limits.frame_bytes) {
            let (limit, found) = (self.options.limits.frame_bytes.into(), payload.len() as u64);
            return Err(StoreError::TooLarge {
                file: self.path.clone(),
                what: "bytes of a batch",
                limit,
                found,
            });
        }
        let (bytes, frame) = encode_frame(
            self.frames.len() as u32,
            self.end,
            rows.len() as u32,
            &payload,
        )
        .expect("a payload within the cap fits");
        if let Err(e) = self.write(&bytes) {
            // Half a frame before a later one would read as damage.
            self.closed = self.file.set_len(self.end).is_err();
            return Err(StoreError::io("append to", &self.path)(e));
        }
        let samples: Vec<u32> = rows.iter().map(|r| r.sample).collect();
        self.note(frame, &samples)
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        let due = match self.options.sync {
            SyncPolicy::EachBatch => true,
            SyncPolicy::Every(time) => self.synced.elapsed() >= time,
            SyncPolicy::AtEnd => false,
        };
        if due {
            self.file.sync_data()?;
            self.synced = std::time::Instant::now();
        }
        Ok(())
    }

    /// Force everything appended to disk.
    pub fn sync(&mut self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(StoreError::io("flush", &self.path))
    }

    /// The batches as they were appended, one in memory at a time, checked again.
    pub fn batches(&self) -> AnswerBatches<'_> {
        AnswerBatches { log: self, next: 0 }
    }

    pub(super) fn batch(&self, number: usize) -> Result<AnswerBatch> {
        let frame = &self.frames[number];
        self.checked(
            frame,
            read_payload(&self.path, &self.file, frame)?,
            self.first_rows[number],
        )
    }
}

impl Drop for AnswerLog {
    fn drop(&mut self) {
        // As in `RunLock`: closing alone leaves the lock to a process that is just being started.
        let _ = self.file.unlock();
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
        (number < self.log.frames.len()).then(|| self.log.batch(number))
    }
}

#[cfg(test)]
mod tests;
