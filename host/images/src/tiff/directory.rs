//! The tags of a page: whole numbers only, each checked to lie within the file. Knows no pixels.

use std::collections::HashSet;

use super::{corrupt, cut, unsupported};
use crate::ImageError;

/// Numbers of the tags that are looked at.
pub(super) mod tag {
    pub const WIDTH: u16 = 256;
    pub const HEIGHT: u16 = 257;
    pub const BITS: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const ORIENTATION: u16 = 274;
    pub const SAMPLES: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_LENGTHS: u16 = 279;
    pub const PLANAR: u16 = 284;
    pub const PREDICTOR: u16 = 317;
    pub const COLOR_MAP: u16 = 320;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_HEIGHT: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_LENGTHS: u16 = 325;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const SAMPLE_FORMAT: u16 = 339;
}

/// Pages are counted up to here, and no page twice: a chain may run in a circle.
const MOST_PAGES: usize = 1000;

/// A file's byte order and bytes.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, ImageError> {
        let big_endian = bytes.starts_with(b"MM");
        let reader = Self { bytes, big_endian };
        match reader.short(2) {
            Some(42) => Ok(reader),
            Some(43) => Err(unsupported("BigTIFF, for files beyond 4 GB")),
            Some(_) => Err(corrupt("the signature is wrong")),
            None => Err(cut("the header is not complete")),
        }
    }

    fn short(self, at: usize) -> Option<u16> {
        let two = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian {
            u16::from_be_bytes(two)
        } else {
            u16::from_le_bytes(two)
        })
    }

    fn long(self, at: usize) -> Option<u32> {
        let four = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        })
    }
}

/// A page's tags: place of each entry in the file, in the file's order.
pub(super) struct Directory<'a> {
    reader: Reader<'a>,
    /// Tag and where its entry begins.
    entries: Vec<(u16, usize)>,
    /// Where the directory begins.
    at: usize,
    /// Where the next page's directory begins; 0 is nowhere.
    next: usize,
}

impl<'a> Directory<'a> {
    /// Of the first page.
    pub(super) fn first(bytes: &'a [u8]) -> Result<Self, ImageError> {
        let reader = Reader::new(bytes)?;
        let at = reader
            .long(4)
            .ok_or_else(|| cut("the header is not complete"))? as usize;
        Self::at(reader, at)
    }

    /// How many pages the file has. Those behind the first are not read, but must be there: a file that is cut is not whole because its first page is.
    pub(super) fn pages(&self) -> Result<usize, ImageError> {
        let mut seen = HashSet::new();
        let mut next = self.next;
        while next != 0 && next != self.at && seen.len() + 1 < MOST_PAGES && seen.insert(next) {
            next = Self::at(self.reader, next)?.next;
        }
        Ok(seen.len() + 1)
    }

    /// The directory at a place. What its entries point to must lie within the file: what is cut off may be the part that matters.
    fn at(reader: Reader<'a>, at: usize) -> Result<Self, ImageError> {
        let bytes = reader.bytes;
        let count = reader.short(at);
        let count = count.ok_or_else(|| {
            cut(format!(
                "the tags lie at byte {at}, and the file has {}",
                bytes.len()
            ))
        })?;
        let entries: Vec<(u16, usize)> = (0..usize::from(count))
            .map(|index| at + 2 + index * 12)
            .map_while(|place| Some((reader.short(place)?, place)))
            .collect();
        let next = reader.long(at + 2 + usize::from(count) * 12);
        let next = next.ok_or_else(|| cut("the tags are not complete"))? as usize;
        let directory = Self {
            reader,
            entries,
            at,
            next,
        };
        for &(number, place) in &directory.entries {
            let end = directory
                .place(place)
                .map_or(0, |(from, size)| from.saturating_add(size));
            if end > bytes.len() {
                return Err(cut(format!(
                    "the values of tag {number} end at byte {end}, and the file has {}",
                    bytes.len()
                )));
            }
        }
        Ok(directory)
    }

    pub(super) fn big_endian(&self) -> bool {
        self.reader.big_endian
    }

    /// Where an entry's values lie and how many bytes they take; `None` for a type that is not known.
    fn place(&self, entry: usize) -> Option<(usize, usize)> {
        let count = self.reader.long(entry + 4)? as usize;
        let each = match self.reader.short(entry + 2)? {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 => 8,
            _ => return None,
        };
        let size = count.saturating_mul(each);
        if size <= 4 {
            return Some((entry + 8, size));
        }
        Some((self.reader.long(entry + 8)? as usize, size))
    }

    fn entry(&self, number: u16) -> Option<usize> {
        self.entries
            .iter()
            .find(|(found, _)| *found == number)
            .map(|&(_, place)| place)
    }

    pub(super) fn has(&self, number: u16) -> bool {
        self.entry(number).is_some()
    }

    /// All values of a tag; `None` where it is not there.
    pub(super) fn values(&self, number: u16) -> Result<Option<Vec<u32>>, ImageError> {
        let Some(entry) = self.entry(number) else {
            return Ok(None);
        };
        let wrong = || corrupt(format!("tag {number} must hold whole numbers"));
        let kind = self.reader.short(entry + 2).ok_or_else(wrong)?;
        let (from, size) = self.place(entry).ok_or_else(wrong)?;
        let reader = self.reader;
        // The places were checked when the directory was read.
        let values: Option<Vec<u32>> = match kind {
            1 | 7 => (0..size)
                .map(|at| reader.bytes.get(from + at).map(|&byte| byte.into()))
                .collect(),
            3 => (0..size / 2)
                .map(|at| reader.short(from + 2 * at).map(u32::from))
                .collect(),
            4 => (0..size / 4).map(|at| reader.long(from + 4 * at)).collect(),
            _ => None,
        };
        values.map(Some).ok_or_else(wrong)
    }

    /// The first value of a tag, or what holds without it.
    pub(super) fn one(&self, number: u16, otherwise: u32) -> Result<u32, ImageError> {
        let values = self.values(number)?;
        Ok(values
            .and_then(|values| values.first().copied())
            .unwrap_or(otherwise))
    }

    /// The first value of a tag that must be there.
    pub(super) fn required(&self, number: u16, what: &str) -> Result<u32, ImageError> {
        self.values(number)?
            .and_then(|values| values.first().copied())
            .ok_or_else(|| corrupt(format!("the {what} is missing")))
    }

    /// The value of a tag that has one for each sample, all the same.
    pub(super) fn same(&self, number: u16, otherwise: u32, what: &str) -> Result<u32, ImageError> {
        let values = self.values(number)?.unwrap_or_default();
        let first = values.first().copied().unwrap_or(otherwise);
        if values.iter().any(|&value| value != first) {
            return Err(unsupported(what));
        }
        Ok(first)
    }
}
