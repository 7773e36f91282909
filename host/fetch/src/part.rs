//! The file that is not whole yet, `NAME.part`, and the note beside it, `NAME.part.json`, that says of which version it is.

use crate::{
    address,
    cancel::Cancel,
    checksum::Hasher,
    error::{FetchError, Result},
    folder::{Folder, NOTE, PART},
    http::Answer,
    job::FileJob,
};
use rustix::{fs::FlockOperation, io::Errno};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
};

const NOTE_VERSION: u32 = 1;
const LARGEST_NOTE: u64 = 1 << 16;

/// Tells two versions of a file apart, for certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Validator {
    /// A strong entity tag, quotes included.
    Etag(String),
    /// A modification time at least a second older than the answer (RFC 9110, 8.8.2.2).
    Modified(String),
}

impl Validator {
    /// Of an answer; `None` if it gives no strong one.
    pub(crate) fn of(answer: &Answer) -> Option<Self> {
        if let Some(tag) = answer.header("etag") {
            let strong = tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"');
            if strong {
                return Some(Self::Etag(tag.into()));
            }
        }
        let text = answer.header("last-modified")?;
        let modified = httpdate::parse_http_date(text).ok()?;
        let sent = httpdate::parse_http_date(answer.header("date")?).ok()?;
        (sent.duration_since(modified).ok()?.as_secs() >= 1).then(|| Self::Modified(text.into()))
    }

    /// For `If-Range`.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Etag(text) | Self::Modified(text) => text,
        }
    }
}

/// Of what the partial file is a part.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    version: u32,
    address: String,
    checksums: Vec<String>,
    validator: Option<Validator>,
    total: Option<u64>,
}

/// The partial file, locked against other processes.
pub(crate) struct Part<'a> {
    folder: &'a Folder,
    name: &'a str,
    job: &'a FileJob,
    file: File,
    len: u64,
    hasher: Hasher,
    validator: Option<Validator>,
    total: Option<u64>,
}

impl<'a> Part<'a> {
    /// Open or make it. What is there is kept if the note says that it belongs to this job and can be checked.
    pub(crate) fn open(
        folder: &'a Folder,
        name: &'a str,
        job: &'a FileJob,
        cancel: &Cancel,
    ) -> Result<Self> {
        let file = lock(folder, name)?;
        let mut part = Self {
            folder,
            name,
            job,
            file,
            len: 0,
            hasher: Hasher::new(&job.checksums),
            validator: None,
            total: None,
        };
        match part.note()? {
            Some(note) => {
                part.validator = note.validator;
                part.total = note.total;
                part.take_in(cancel)?;
            }
            None => part.clear()?,
        }
        Ok(part)
    }

    /// The note, if it fits this job and makes the bytes usable.
    fn note(&self) -> Result<Option<Note>> {
        let Some(file) = self.folder.read(&format!("{}{NOTE}", self.name))? else {
            return Ok(None);
        };
        let mut text = Vec::new();
        file.take(LARGEST_NOTE)
            .read_to_end(&mut text)
            .map_err(FetchError::io("read", self.folder.at(self.name)))?;
        // A note cut short by a crash is as good as none.
        let note = serde_json::from_slice::<Note>(&text).ok().filter(|n| {
            n.version == NOTE_VERSION
                && n.address == address::shown(&self.job.url)
                && n.checksums == self.checksums()
                && (n.validator.is_some() || !n.checksums.is_empty())
        });
        Ok(note)
    }

    fn checksums(&self) -> Vec<String> {
        self.job.checksums.iter().map(ToString::to_string).collect()
    }

    /// Hash what is there and stand at its end.
    fn take_in(&mut self, cancel: &Cancel) -> Result<()> {
        let failed = || FetchError::io("read", self.folder.at(self.name));
        let mut buffer = vec![0; 1 << 18];
        loop {
            cancel.check()?;
            match self.file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    self.hasher.update(&buffer[..n]);
                    self.len += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed()(e)),
            }
        }
    }

    /// Bytes there are.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of the whole file, as the server said when the part was begun.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Version of which it is a part.
    pub(crate) fn validator(&self) -> Option<&Validator> {
        self.validator.as_ref()
    }

    /// Throw away what is there. Returns how much it was.
    pub(crate) fn restart(&mut self) -> Result<u64> {
        let discarded = self.len;
        self.clear()?;
        Ok(discarded)
    }

    fn clear(&mut self) -> Result<()> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(FetchError::io("write", self.folder.at(self.name)))?;
        self.len = 0;
        self.hasher = Hasher::new(&self.job.checksums);
        self.validator = None;
        self.total = None;
        self.folder.remove(&format!("{}{NOTE}", self.name))
    }

    /// Note of which version the coming bytes are. Before the first of them is written, so that no byte lies there unexplained.
    pub(crate) fn begin(&mut self, validator: Option<Validator>, total: Option<u64>) -> Result<()> {
        let note = Note {
            version: NOTE_VERSION,
            address: address::shown(&self.job.url),
            checksums: self.checksums(),
            validator,
            total,
        };
        let text = serde_json::to_vec(&note).expect("a note is plain data");
        self.folder
            .replace(&format!("{}{NOTE}", self.name), &text)?;
        self.validator = note.validator;
        self.total = total;
        Ok(())
    }

    /// Write bytes at the end.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Checksum that does not fit, if any.
    pub(crate) fn mismatch(&self) -> Option<FetchError> {
        let (wanted, found) = self.hasher.clone().mismatch(&self.job.checksums)?;
        Some(FetchError::ChecksumDiffers {
            name: self.job.name.clone(),
            algorithm: wanted.algorithm(),
            expected: wanted.hex().into(),
            found,
        })
    }

    /// Give the verified file its name. It is on disk when this returns.
    pub(crate) fn finish(self) -> Result<()> {
        let part = format!("{}{PART}", self.name);
        self.file
            .sync_all()
            .map_err(FetchError::io("flush", self.folder.at(&part)))?;
        self.folder.rename(&part, self.name)?;
        self.folder.remove(&format!("{}{NOTE}", self.name))
    }
}

/// Open `NAME.part` for this process alone.
pub(crate) fn lock(folder: &Folder, name: &str) -> Result<File> {
    let part = format!("{name}{PART}");
    loop {
        let file = folder.write(&part)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Between opening and locking, another process may have renamed it to its final name.
            Ok(()) if folder.is_at(&file, &part) => return Ok(file),
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(FetchError::InUse {
                    path: folder.at(&part),
                });
            }
            Err(e) => return Err(FetchError::io("lock", folder.at(&part))(e.into())),
        }
    }
}
