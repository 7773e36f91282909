//! The append-only, checksummed log of Arrow batches under every answer of a model: opened, recovered, appended to, read again.
//! One process at a time. It knows frames and columns, not what a row means.

mod frame;
mod message;

pub(crate) use frame::Frame;
#[cfg(test)]
pub(crate) use frame::{encode_frame, encode_header};
#[cfg(test)]
pub(crate) use message::encode;
pub(crate) use message::schema_bytes;

use crate::{
    atomic::write_atomic,
    error::{Result, StoreError},
    limits::Limits,
};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use frame::Found;
use std::{
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

/// The beginning of a frame that was being written when its process died. Its answers were never reported as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornTail {
    /// Where the log was cut.
    pub offset: u64,
    /// Bytes removed.
    pub bytes: u64,
}

/// An open log of batches of one schema.
#[derive(Debug)]
pub(crate) struct FrameLog {
    path: PathBuf,
    file: File,
    schema: SchemaRef,
    frames: Vec<Frame>,
    end: u64,
    options: AnswerLogOptions,
    synced: std::time::Instant,
    closed: bool,
}

impl FrameLog {
    /// Open the log at `path`, or start one. `header` looks at the schema of one that was there. Nothing is read yet: `recover` is next.
    pub fn open(
        path: &Path,
        schema: &SchemaRef,
        options: AnswerLogOptions,
        header: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<Self> {
        if !path.exists() {
            // Whole or absent: a header cut short is never a kill's work, so it can be called damage.
            write_atomic(path, &frame::encode_header(&schema_bytes(schema)))?;
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
        let (bytes, end) = frame::read_header(path, &file)?;
        header(&bytes)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            schema: SchemaRef::clone(schema),
            frames: Vec::new(),
            end,
            options,
            synced: std::time::Instant::now(),
            closed: false,
        })
    }

    /// Read and check every whole frame in order, and cut off a torn tail with a warning. `take` gets each frame's number and batch.
    pub fn recover(
        &mut self,
        take: &mut dyn FnMut(u32, RecordBatch) -> Result<()>,
    ) -> Result<Option<TornTail>> {
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
        loop {
            let number = self.frames.len() as u32;
            match frame::read_frame(&self.path, &self.file, number, self.end, size, &limits)? {
                Found::End => return Ok(None),
                Found::Frame(frame, payload) => {
                    take(number, self.checked(&frame, payload)?)?;
                    self.push(frame);
                }
                Found::Torn => return self.cut(size).map(Some),
            }
        }
    }

    fn cut(&mut self, size: u64) -> Result<TornTail> {
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
        Ok(torn)
    }

    fn checked(&self, frame: &Frame, payload: Vec<u8>) -> Result<RecordBatch> {
        let damaged = |what: String| StoreError::DamagedFrame {
            file: self.path.clone(),
            frame: frame.number.into(),
            offset: frame.offset,
            what,
        };
        let batch = message::decode(payload, &self.schema).map_err(damaged)?;
        if batch.num_rows() != frame.rows as usize {
            return Err(damaged(format!(
                "it should hold {} rows and holds {}",
                frame.rows,
                batch.num_rows()
            )));
        }
        Ok(batch)
    }

    fn push(&mut self, frame: Frame) {
        self.frames.push(frame);
        self.end = frame.end();
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Caps on reading.
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// An error for a log that an earlier failed write has left unfit.
    pub fn writable(&self) -> Result<()> {
        if self.closed {
            return Err(StoreError::LogClosed {
                file: self.path.clone(),
            });
        }
        Ok(())
    }

    /// Append a batch as a frame; gives its number. On an error it is not in the log.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<u32> {
        self.writable()?;
        let payload = message::encode(batch).map_err(|e| StoreError::Encode {
            file: self.path.clone(),
            what: e.to_string(),
        })?;
        let limit = self.options.limits.frame_bytes;
        if payload.len() as u64 > u64::from(limit) {
            return Err(StoreError::TooLarge {
                file: self.path.clone(),
                what: "bytes of a batch",
                limit: limit.into(),
                found: payload.len() as u64,
            });
        }
        let number = self.frames.len() as u32;
        let (bytes, frame) =
            frame::encode_frame(number, self.end, batch.num_rows() as u32, &payload)
                .expect("a payload within the cap fits");
        if let Err(e) = self.write(&bytes) {
            // Half a frame before a later one would read as damage.
            self.closed = self.file.set_len(self.end).is_err();
            return Err(StoreError::io("append to", &self.path)(e));
        }
        self.push(frame);
        Ok(number)
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

    /// A frame's batch, read and checked again.
    pub fn batch(&self, number: usize) -> Result<RecordBatch> {
        let frame = &self.frames[number];
        let payload = frame::read_payload(&self.path, &self.file, frame)?;
        self.checked(frame, payload)
    }
}

impl Drop for FrameLog {
    fn drop(&mut self) {
        // As in `RunLock`: closing alone leaves the lock to a process that is just being started.
        let _ = self.file.unlock();
    }
}
