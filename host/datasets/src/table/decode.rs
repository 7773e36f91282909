//! The bytes of a table's file as text, in bounded memory. Two passes: the first hashes the file and finds out how its
//! bytes are to be read, the second decodes. Line ends become `\n`, so that whoever reads on counts lines alike.
//!
//! How: a UTF-8 or UTF-16 byte order mark decides. Without one, a file that is valid UTF-8 throughout is UTF-8, any other
//! is Windows-1252 (what a Western spreadsheet writes; a superset of printable Latin-1). A zero byte is refused.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use encoding_rs::{Decoder, DecoderResult, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use serde::{Deserialize, Serialize};

use crate::error::{DatasetError, TableFault};
use crate::limits::Limits;

const CHUNK: usize = 64 << 10;

/// How the bytes of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8 without a byte order mark.
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-8 with one.
    #[serde(rename = "utf-8-bom")]
    Utf8Bom,
    /// UTF-16, little end first, with a byte order mark.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    /// UTF-16, big end first, with a byte order mark.
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// Windows-1252: no byte order mark, not valid UTF-8.
    #[serde(rename = "windows-1252")]
    Windows1252,
}

impl Encoding {
    fn codec(self) -> &'static encoding_rs::Encoding {
        match self {
            Self::Utf8 | Self::Utf8Bom => UTF_8,
            Self::Utf16Le => UTF_16LE,
            Self::Utf16Be => UTF_16BE,
            Self::Windows1252 => WINDOWS_1252,
        }
    }

    fn mark(self) -> usize {
        match self {
            Self::Utf8Bom => 3,
            Self::Utf16Le | Self::Utf16Be => 2,
            Self::Utf8 | Self::Windows1252 => 0,
        }
    }
}

/// What the first pass found.
pub(super) struct Scan {
    pub(super) encoding: Encoding,
    pub(super) digest: blake3::Hash,
}

/// The first pass.
pub(super) fn scan(path: &Path, label: &str, limits: &Limits) -> Result<Scan, DatasetError> {
    let mut file = File::open(path).map_err(|e| DatasetError::io(path, e))?;
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK];
    let mut offset = 0u64;
    let mut marked = None;
    let mut zero = None;
    let mut utf8 = Utf8Check::default();
    loop {
        let read = read_full(&mut file, &mut chunk).map_err(|e| DatasetError::io(path, e))?;
        let bytes = &chunk[..read];
        if bytes.is_empty() {
            break;
        }
        if offset == 0 {
            marked = match bytes {
                [0xef, 0xbb, 0xbf, ..] => Some(Encoding::Utf8Bom),
                [0xff, 0xfe, ..] => Some(Encoding::Utf16Le),
                [0xfe, 0xff, ..] => Some(Encoding::Utf16Be),
                _ => None,
            };
        }
        hasher.update(bytes);
        zero = zero.or_else(|| {
            bytes
                .iter()
                .position(|b| *b == 0)
                .map(|at| offset + at as u64)
        });
        utf8.push(bytes);
        offset += read as u64;
        if offset > limits.file_bytes {
            let fault = TableFault::FileTooLarge {
                bytes: offset,
                limit: limits.file_bytes,
            };
            return Err(DatasetError::table(label, None, fault));
        }
    }
    let encoding = marked.unwrap_or(if utf8.valid() {
        Encoding::Utf8
    } else {
        Encoding::Windows1252
    });
    match (encoding, zero) {
        (Encoding::Utf16Le | Encoding::Utf16Be, _) | (_, None) => Ok(Scan {
            encoding,
            digest: hasher.finalize(),
        }),
        (_, Some(offset)) => Err(DatasetError::table(
            label,
            None,
            TableFault::ZeroByte { offset },
        )),
    }
}

/// Whether a stream of chunks is valid UTF-8.
#[derive(Default)]
struct Utf8Check {
    carry: Vec<u8>,
    broken: bool,
}

impl Utf8Check {
    fn push(&mut self, bytes: &[u8]) {
        if self.broken {
            return;
        }
        let joined;
        let bytes = if self.carry.is_empty() {
            bytes
        } else {
            joined = [self.carry.as_slice(), bytes].concat();
            &joined
        };
        self.carry = match std::str::from_utf8(bytes) {
            Ok(_) => Vec::new(),
            Err(error) if error.error_len().is_none() => bytes[error.valid_up_to()..].to_vec(),
            Err(_) => {
                self.broken = true;
                Vec::new()
            }
        };
    }

    fn valid(&self) -> bool {
        !self.broken && self.carry.is_empty()
    }
}

fn read_full(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The second pass: text in chunks.
pub(super) struct Text {
    file: File,
    path: PathBuf,
    label: String,
    encoding: Encoding,
    decoder: Decoder,
    hasher: blake3::Hasher,
    digest: blake3::Hash,
    /// Bytes given to the decoder so far.
    offset: u64,
    raw: Vec<u8>,
    out: Vec<u8>,
    /// The last character was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    ended: bool,
}

impl Text {
    pub(super) fn open(path: &Path, label: &str, scan: &Scan) -> Result<Self, DatasetError> {
        let mut file = File::open(path).map_err(|e| DatasetError::io(path, e))?;
        let mut mark = vec![0; scan.encoding.mark()];
        let read = read_full(&mut file, &mut mark).map_err(|e| DatasetError::io(path, e))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&mark[..read]);
        Ok(Self {
            file,
            path: path.into(),
            label: label.into(),
            encoding: scan.encoding,
            decoder: scan.encoding.codec().new_decoder_without_bom_handling(),
            hasher,
            digest: scan.digest,
            offset: read as u64,
            raw: vec![0; CHUNK],
            out: Vec::new(),
            after_return: false,
            ended: false,
        })
    }

    /// The next piece of text, valid UTF-8 in parts; empty at the end of the file.
    pub(super) fn next(&mut self) -> Result<&[u8], DatasetError> {
        self.out.clear();
        while self.out.is_empty() && !self.ended {
            self.decode()?;
        }
        Ok(&self.out)
    }

    fn decode(&mut self) -> Result<(), DatasetError> {
        let read = read_full(&mut self.file, &mut self.raw)
            .map_err(|e| DatasetError::io(&self.path, e))?;
        self.hasher.update(&self.raw[..read]);
        self.ended = read < self.raw.len();
        if self.ended && self.hasher.finalize() != self.digest {
            return Err(DatasetError::table(&self.label, None, TableFault::Changed));
        }
        let capacity = self
            .decoder
            .max_utf8_buffer_length_without_replacement(read);
        let mut decoded =
            String::with_capacity(capacity.expect("the length of a chunk overflows") + 4);
        let (result, used) = self.decoder.decode_to_string_without_replacement(
            &self.raw[..read],
            &mut decoded,
            self.ended,
        );
        if let DecoderResult::Malformed(length, after) = result {
            let offset =
                (self.offset + used as u64).saturating_sub(u64::from(length) + u64::from(after));
            let encoding = self.encoding.codec().name();
            return Err(DatasetError::table(
                &self.label,
                None,
                TableFault::Malformed { encoding, offset },
            ));
        }
        self.offset += used as u64;
        for byte in decoded.bytes() {
            match byte {
                b'\r' => self.out.push(b'\n'),
                b'\n' if self.after_return => {}
                other => self.out.push(other),
            }
            self.after_return = byte == b'\r';
        }
        Ok(())
    }
}
