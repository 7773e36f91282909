//! Looks at every page header of a Parquet file before the Parquet library does, so that no header can make it reserve or
//! inflate more than `Limits` allows. It reads thrift's compact protocol just far enough for that, and no page's contents.

use crate::{
    error::{Result, StoreError},
    limits::Limits,
};
use parquet::file::metadata::ParquetMetaData;
use std::{fs::File, os::unix::fs::FileExt, path::Path};

/// A header with statistics of two long texts stays well below this.
const LONGEST_HEADER: usize = 1 << 16;
/// Nesting of thrift structures in a page header: three; more is nonsense.
const DEEPEST: u32 = 8;

/// Check the row groups' claims and each page header of the columns for which `wanted` is true.
pub(crate) fn check_pages(
    path: &Path,
    file: &File,
    metadata: &ParquetMetaData,
    limits: &Limits,
    wanted: impl Fn(usize) -> bool,
) -> Result<()> {
    let size = file.metadata().map_err(StoreError::io("read", path))?.len();
    let too_large = |what, limit, found| StoreError::TooLarge {
        file: path.into(),
        what,
        limit,
        found,
    };
    let damaged = |what: &str| StoreError::damaged(path, what);
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows())
            .map_err(|_| damaged("a row group has a negative number of rows"))?;
        if rows > limits.row_group_rows {
            return Err(too_large(
                "rows of a row group",
                limits.row_group_rows,
                rows,
            ));
        }
        let mut inflated = 0u64;
        for (_, column) in group
            .columns()
            .iter()
            .enumerate()
            .filter(|(i, _)| wanted(*i))
        {
            let start = column
                .dictionary_page_offset()
                .unwrap_or(column.data_page_offset());
            let (Ok(start), Ok(length)) = (
                u64::try_from(start),
                u64::try_from(column.compressed_size()),
            ) else {
                return Err(damaged("a column chunk has a negative place"));
            };
            let end = start.checked_add(length).filter(|end| *end <= size);
            let end = end.ok_or_else(|| damaged("a column chunk lies outside the file"))?;
            let mut at = start;
            while at < end {
                let mut buffer = vec![0; LONGEST_HEADER.min((end - at) as usize)];
                file.read_exact_at(&mut buffer, at)
                    .map_err(StoreError::io("read", path))?;
                let page =
                    Header::read(&buffer).ok_or_else(|| damaged("a page header cannot be read"))?;
                if page.inflated > limits.page_bytes {
                    return Err(too_large(
                        "bytes of a page",
                        limits.page_bytes,
                        page.inflated,
                    ));
                }
                inflated += page.inflated;
                if inflated > limits.row_group_bytes {
                    return Err(too_large(
                        "bytes of a row group",
                        limits.row_group_bytes,
                        inflated,
                    ));
                }
                at += page.length + page.stored;
            }
            if at != end {
                return Err(damaged("the pages of a column chunk do not fill it"));
            }
        }
    }
    Ok(())
}

struct Header {
    length: u64,
    inflated: u64,
    stored: u64,
}

impl Header {
    // PageHeader: 1 type, 2 uncompressed_page_size, 3 compressed_page_size, then structures that are skipped.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut thrift = Thrift { bytes, at: 0 };
        let (mut inflated, mut stored, mut last) = (None, None, 0i64);
        loop {
            let (kind, id) = thrift.field(last)?;
            last = id;
            match (id, kind) {
                (_, 0) => break,
                (2, 5) => inflated = Some(u64::try_from(thrift.zigzag()?).ok()?),
                (3, 5) => stored = Some(u64::try_from(thrift.zigzag()?).ok()?),
                _ => thrift.skip(kind, 0)?,
            }
        }
        Some(Self {
            length: thrift.at as u64,
            inflated: inflated?,
            stored: stored?,
        })
    }
}

struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn advance(&mut self, count: u64) -> Option<()> {
        self.at = usize::try_from(count)
            .ok()?
            .checked_add(self.at)
            .filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    // The next field of a structure as (type, id); type 0 is its end.
    fn field(&mut self, last: i64) -> Option<(u8, i64)> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some((0, last));
        }
        let id = match byte >> 4 {
            0 => self.zigzag()?,
            delta => last.checked_add(i64::from(delta))?,
        };
        Some((byte & 0x0f, id))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1 | 2 => Some(()),
            3 => self.advance(1),
            4..=6 => self.varint().map(drop),
            7 => self.advance(8),
            8 => {
                let length = self.varint()?;
                self.advance(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 {
                    self.varint()?
                } else {
                    u64::from(head >> 4)
                };
                let inner = head & 0x0f;
                // A truth value takes a byte in a list and none in a field.
                let inner = if inner == 1 || inner == 2 { 3 } else { inner };
                (0..count).try_for_each(|_| self.skip(inner, depth + 1))
            }
            12 => {
                let mut last = 0;
                loop {
                    let (kind, id) = self.field(last)?;
                    last = id;
                    if kind == 0 {
                        return Some(());
                    }
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_made_by_hand_is_read() {
        // type = 0, sizes 300 and 20, data_page_header { 1: 7 }, end.
        let bytes = [
            0x15, 0, 0x15, 0xd8, 0x04, 0x15, 40, 0x2c, 0x15, 14, 0, 0, 0xff,
        ];
        let header = Header::read(&bytes).expect("reads");
        assert_eq!(
            (header.length, header.inflated, header.stored),
            (12, 300, 20)
        );
        for cut in 0..12 {
            assert!(Header::read(&bytes[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_text_longer_than_the_header_is_refused() {
        let bytes = [
            0x15, 0, 0x15, 2, 0x15, 2, 0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0,
        ];
        assert!(Header::read(&bytes).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(header) = Header::read(&bytes) {
                prop_assert!(header.length as usize <= bytes.len());
            }
        }
    }
}
