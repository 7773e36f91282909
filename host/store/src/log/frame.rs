//! The bytes of an answer log: a header, then frames. It tells a tail that a kill tore from a frame that was damaged later,
//! and knows nothing of what a frame holds.
//!
//! ```text
//! header: "FOCUSLOG" | version u32 | schema bytes u32 | crc32 of those 16 and the schema u32 | 0 u32 | schema
//! frame:  "FRME" | number u32 | payload bytes u32 | rows u32 | crc32 of the payload u32 | crc32 of those 20 u32
//!         | payload | "FRAMEEND"
//! ```
//! Little-endian. The closing word is never zero, so pages that a power cut left unwritten (they read as zeros) show.

use crate::{
    error::{Result, StoreError},
    limits::Limits,
};
use std::{fs::File, os::unix::fs::FileExt, path::Path};

const MAGIC: [u8; 8] = *b"FOCUSLOG";
const VERSION: u32 = 1;
const HEADER: usize = 24;
const FRAME_MAGIC: [u8; 4] = *b"FRME";
const FRAME_HEADER: usize = 24;
const FRAME_END: [u8; 8] = *b"FRAMEEND";
const LONGEST_SCHEMA: u32 = 1 << 20;
const PAGE: u64 = 4096;

/// A whole frame in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub number: u32,
    pub offset: u64,
    pub length: u32,
    pub rows: u32,
    pub crc: u32,
}

impl Frame {
    pub fn end(&self) -> u64 {
        self.offset + (FRAME_HEADER + FRAME_END.len()) as u64 + u64::from(self.length)
    }
}

/// What lies at the place where a frame should begin.
#[derive(Debug)]
pub(crate) enum Found {
    Frame(Frame, Vec<u8>),
    End,
    /// The beginning of a frame whose writing did not end.
    Torn,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The bytes with which a log begins.
pub(crate) fn encode_header(schema: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + schema.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((schema.len() as u32).to_le_bytes());
    bytes.extend(header_crc(&bytes, schema).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(schema);
    bytes
}

fn header_crc(fixed: &[u8], schema: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(fixed);
    crc.update(schema);
    crc.finalize()
}

/// The schema in a log's header, and where the first frame begins.
pub(crate) fn read_header(path: &Path, file: &File) -> Result<(Vec<u8>, u64)> {
    let damaged = |what: &str| StoreError::damaged(path, what);
    let size = file.metadata().map_err(StoreError::io("read", path))?.len();
    let mut fixed = [0; HEADER];
    if size < HEADER as u64 {
        return Err(damaged("its header is cut short"));
    }
    file.read_exact_at(&mut fixed, 0)
        .map_err(StoreError::io("read", path))?;
    if fixed[..8] != MAGIC {
        return Err(damaged("it does not begin as an answer log does"));
    }
    if word(&fixed, 8) != VERSION {
        return Err(StoreError::SchemaVersion {
            file: path.into(),
            expected: VERSION,
            found: word(&fixed, 8).to_string(),
        });
    }
    let length = word(&fixed, 12);
    if length > LONGEST_SCHEMA || HEADER as u64 + u64::from(length) > size {
        return Err(damaged("its header is cut short or damaged"));
    }
    let mut schema = vec![0; length as usize];
    file.read_exact_at(&mut schema, HEADER as u64)
        .map_err(StoreError::io("read", path))?;
    if header_crc(&fixed[..16], &schema) != word(&fixed, 16) || word(&fixed, 20) != 0 {
        return Err(damaged("its header has another checksum than was written"));
    }
    Ok((schema, HEADER as u64 + u64::from(length)))
}

/// The bytes of a frame, and its entry for the index. None when the payload is longer than a frame can say.
pub(crate) fn encode_frame(
    number: u32,
    offset: u64,
    rows: u32,
    payload: &[u8],
) -> Option<(Vec<u8>, Frame)> {
    let frame = Frame {
        number,
        offset,
        length: u32::try_from(payload.len()).ok()?,
        rows,
        crc: crc32fast::hash(payload),
    };
    let mut bytes = Vec::with_capacity(FRAME_HEADER + payload.len() + FRAME_END.len());
    bytes.extend(FRAME_MAGIC);
    for value in [number, frame.length, rows, frame.crc] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(payload);
    bytes.extend(FRAME_END);
    Some((bytes, frame))
}

/// Read the frame that should begin at `offset`, of a log of `size` bytes.
pub(crate) fn read_frame(
    path: &Path,
    file: &File,
    number: u32,
    offset: u64,
    size: u64,
    limits: &Limits,
) -> Result<Found> {
    let left = size - offset;
    let damaged = |what: String| StoreError::DamagedFrame {
        file: path.into(),
        frame: number.into(),
        offset,
        what,
    };
    if left == 0 {
        return Ok(Found::End);
    }
    // A kill leaves a beginning of the frame that was being written; whatever is whole and wrong is damage.
    if left < FRAME_HEADER as u64 {
        return Ok(Found::Torn);
    }
    let mut head = [0; FRAME_HEADER];
    file.read_exact_at(&mut head, offset)
        .map_err(StoreError::io("read", path))?;
    if head[..4] != FRAME_MAGIC || crc32fast::hash(&head[..20]) != word(&head, 20) {
        let unwritten = unwritten(path, file, offset, offset + FRAME_HEADER as u64, size)?;
        return if unwritten {
            Ok(Found::Torn)
        } else {
            Err(damaged("its header is not what was written".into()))
        };
    }
    let frame = Frame {
        number: word(&head, 4),
        offset,
        length: word(&head, 8),
        rows: word(&head, 12),
        crc: word(&head, 16),
    };
    if frame.number != number {
        return Err(damaged(format!("it says it is frame {}", frame.number)));
    }
    if frame.length > limits.frame_bytes {
        let (limit, found) = (limits.frame_bytes.into(), frame.length.into());
        return Err(StoreError::TooLarge {
            file: path.into(),
            what: "bytes of a frame",
            limit,
            found,
        });
    }
    if frame.end() > size {
        return Ok(Found::Torn);
    }
    match read_payload(path, file, &frame) {
        Ok(payload) => Ok(Found::Frame(frame, payload)),
        Err(StoreError::DamagedFrame { .. })
            if unwritten(path, file, offset, frame.end(), size)? =>
        {
            Ok(Found::Torn)
        }
        Err(e) => Err(e),
    }
}

/// Read a known frame's payload and check it.
pub(crate) fn read_payload(path: &Path, file: &File, frame: &Frame) -> Result<Vec<u8>> {
    let damaged = |what: &str| StoreError::DamagedFrame {
        file: path.into(),
        frame: frame.number.into(),
        offset: frame.offset,
        what: what.into(),
    };
    let mut payload = vec![0; frame.length as usize + FRAME_END.len()];
    file.read_exact_at(&mut payload, frame.offset + FRAME_HEADER as u64)
        .map_err(StoreError::io("read", path))?;
    let end = payload.split_off(frame.length as usize);
    if crc32fast::hash(&payload) != frame.crc {
        return Err(damaged(
            "its contents have another checksum than was written",
        ));
    }
    if end != FRAME_END {
        return Err(damaged("it does not end as a frame does"));
    }
    Ok(payload)
}

// Were the last pages of the file never written, from within the frame `start..end` on? After a power cut such pages read
// as zeros up to the end of the file.
fn unwritten(path: &Path, file: &File, start: u64, end: u64, size: u64) -> Result<bool> {
    let mut zeros_from = size;
    let mut page = vec![0; PAGE as usize];
    while zeros_from > start {
        let from = (zeros_from - 1) / PAGE * PAGE;
        let part = &mut page[..(zeros_from - from) as usize];
        file.read_exact_at(part, from)
            .map_err(StoreError::io("read", path))?;
        match part.iter().rposition(|byte| *byte != 0) {
            Some(last) => {
                zeros_from = from + last as u64 + 1;
                break;
            }
            None => zeros_from = from,
        }
    }
    let border = zeros_from.next_multiple_of(PAGE);
    Ok(zeros_from <= start || (border < end && border < size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn log(tail: &[u8]) -> (tempfile::NamedTempFile, u64) {
        let mut file = tempfile::NamedTempFile::new().expect("file");
        file.write_all(tail).expect("writes");
        (file, tail.len() as u64)
    }

    fn look(tail: &[u8]) -> Result<Found> {
        let (file, size) = log(tail);
        read_frame(file.path(), file.as_file(), 3, 0, size, &Limits::default())
    }

    #[test]
    fn a_cut_frame_is_torn_and_a_changed_one_is_damage() {
        let (bytes, frame) = encode_frame(3, 0, 2, &[7; 9000]).expect("short");
        assert!(matches!(look(&bytes), Ok(Found::Frame(f, p)) if f == frame && p == [7; 9000]));
        for cut in 1..bytes.len() {
            assert!(
                matches!(look(&bytes[..cut]), Ok(Found::Torn)),
                "cut at {cut}"
            );
        }
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert!(
                matches!(
                    look(&bad),
                    Err(StoreError::DamagedFrame {
                        frame: 3,
                        offset: 0,
                        ..
                    })
                ),
                "flip at {at}"
            );
        }
    }

    #[test]
    fn unwritten_pages_are_a_torn_tail_but_zeros_inside_are_damage() {
        let (bytes, _) = encode_frame(3, 0, 2, &[7; 9000]).expect("short");
        for from in [0usize, 4096, 8192] {
            let mut lost = bytes.clone();
            lost[from..].fill(0);
            assert!(matches!(look(&lost), Ok(Found::Torn)), "zeros from {from}");
        }
        let mut lost = bytes.clone();
        lost[4096..8192].fill(0);
        assert!(look(&lost).is_err(), "a page in the middle");
        let mut lost = bytes.clone();
        lost[bytes.len() - 8..].fill(0);
        assert!(look(&lost).is_err(), "not from a page's border");
        let mut two = bytes.clone();
        two[100] ^= 1;
        two.extend(&bytes);
        let last = two.len();
        two[last - 1000..].fill(0);
        assert!(look(&two).is_err(), "damage before a frame that was torn");
    }

    #[test]
    fn a_hostile_length_is_refused_before_anything_is_reserved() {
        let (mut bytes, _) = encode_frame(3, 0, 2, b"x").expect("short");
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..20]);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(look(&bytes), Err(StoreError::TooLarge { .. })));
    }

    #[test]
    fn headers_read_back_and_every_flip_shows() {
        let header = encode_header(b"schema bytes");
        let (file, _) = log(&header);
        assert_eq!(
            read_header(file.path(), file.as_file()).expect("reads"),
            (b"schema bytes".to_vec(), 36)
        );
        for at in 0..header.len() {
            let mut bad = header.clone();
            bad[at] ^= 0x10;
            let (file, _) = log(&bad);
            assert!(
                read_header(file.path(), file.as_file()).is_err(),
                "flip at {at}"
            );
            let (file, _) = log(&header[..at]);
            assert!(
                read_header(file.path(), file.as_file()).is_err(),
                "cut at {at}"
            );
        }
    }
}
