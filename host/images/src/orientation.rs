//! EXIF orientation: read once, applied once, here. Other EXIF fields are not looked at.

use std::io::Cursor;

use exif::{In, Reader, Tag};

/// How the stored rows and columns become upright ones; the eight values of the EXIF standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation(u8);

impl Orientation {
    pub(crate) const UPRIGHT: Self = Self(1);

    pub(crate) fn value(self) -> u8 {
        self.0
    }

    pub(crate) fn swaps_sides(self) -> bool {
        self.0 >= 5
    }

    /// The upright size of a picture stored with `size`.
    pub(crate) fn upright(self, size: (u32, u32)) -> (u32, u32) {
        if self.swaps_sides() {
            (size.1, size.0)
        } else {
            size
        }
    }

    /// From a JPEG file, whose APP1 segment holds the block.
    pub(crate) fn of_jpeg(bytes: &[u8], remarks: &mut Vec<String>) -> Self {
        match exif::get_exif_attr_from_jpeg(&mut Cursor::new(bytes)) {
            Ok(block) => Self::of_block(block, remarks),
            Err(exif::Error::NotFound(_)) => Self::UPRIGHT,
            Err(error) => {
                remarks.push(format!(
                    "EXIF block not found for a fault in the segments: {error}"
                ));
                Self::UPRIGHT
            }
        }
    }

    /// From the block itself. A damaged block is read as far as it goes: cameras write odd private fields.
    pub(crate) fn of_block(block: Vec<u8>, remarks: &mut Vec<String>) -> Self {
        let read = Reader::new().continue_on_error(true).read_raw(block);
        let exif = match read.or_else(|error| error.distill_partial_result(|_| ())) {
            Ok(exif) => exif,
            Err(error) => {
                remarks.push(format!("EXIF block cannot be parsed: {error}"));
                return Self::UPRIGHT;
            }
        };
        // The thumbnail may have an orientation of its own: only the primary image's counts.
        let Some(field) = exif.get_field(Tag::Orientation, In::PRIMARY) else {
            return Self::UPRIGHT;
        };
        if let Some(value) = field.value.get_uint(0) {
            return Self::of_value(value, remarks);
        }
        remarks.push("EXIF orientation must be 1 to 8, found no number".into());
        Self::UPRIGHT
    }

    /// From the number itself, as TIFF has it.
    pub(crate) fn of_value(value: u32, remarks: &mut Vec<String>) -> Self {
        if (1..=8).contains(&value) {
            return Self(value as u8);
        }
        remarks.push(format!("EXIF orientation must be 1 to 8, found {value}"));
        Self::UPRIGHT
    }

    /// Turns RGB pixels upright: from `source` (of `width` x `height`) to `target`. Returns the new width and height.
    pub(crate) fn apply(self, source: &[u8], size: (u32, u32), target: &mut Vec<u8>) -> (u32, u32) {
        self.turn::<3>(source, size, target)
    }

    /// The same for pixels of `N` bytes.
    pub(crate) fn turn<const N: usize>(
        self,
        source: &[u8],
        (width, height): (u32, u32),
        target: &mut Vec<u8>,
    ) -> (u32, u32) {
        let (w, h) = (width as usize, height as usize);
        let (out_w, out_h) = if self.swaps_sides() { (h, w) } else { (w, h) };
        // Source index of the output's first pixel, and the steps for a column and a row of the output.
        let (last_column, last_row) = (w - 1, (h - 1) * w);
        let (down, up, right, left) = (w as isize, -(w as isize), 1, -1);
        let (start, column, row): (usize, isize, isize) = match self.0 {
            2 => (last_column, left, down),
            3 => (last_row + last_column, left, up),
            4 => (last_row, right, up),
            5 => (0, down, right),
            6 => (last_row, up, right),
            7 => (last_row + last_column, up, left),
            8 => (last_column, down, left),
            _ => (0, right, down),
        };
        target.clear();
        target.resize(source.len(), 0);
        for block_y in (0..out_h).step_by(BLOCK) {
            for block_x in (0..out_w).step_by(BLOCK) {
                let x_end = (block_x + BLOCK).min(out_w);
                for y in block_y..(block_y + BLOCK).min(out_h) {
                    let mut from = start as isize + column * block_x as isize + row * y as isize;
                    let line = &mut target[(y * out_w + block_x) * N..(y * out_w + x_end) * N];
                    for pixel in line.chunks_exact_mut(N) {
                        pixel.copy_from_slice(&source[from as usize * N..][..N]);
                        from += column;
                    }
                }
            }
        }
        (out_w as u32, out_h as u32)
    }
}

/// Side of the squares that pixels are moved in, so that walking down the source's columns stays within the cache.
const BLOCK: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(values: &[u8]) -> Vec<u8> {
        values.iter().flat_map(|&value| [value; 3]).collect()
    }

    #[test]
    fn the_eight_orientations_of_a_3_by_2_image() {
        // Stored rows: 1 2 3 / 4 5 6.
        let source = grey(&[1, 2, 3, 4, 5, 6]);
        let expected: [(u8, (u32, u32), [u8; 6]); 8] = [
            (1, (3, 2), [1, 2, 3, 4, 5, 6]),
            (2, (3, 2), [3, 2, 1, 6, 5, 4]),
            (3, (3, 2), [6, 5, 4, 3, 2, 1]),
            (4, (3, 2), [4, 5, 6, 1, 2, 3]),
            (5, (2, 3), [1, 4, 2, 5, 3, 6]),
            (6, (2, 3), [4, 1, 5, 2, 6, 3]),
            (7, (2, 3), [6, 3, 5, 2, 4, 1]),
            (8, (2, 3), [3, 6, 2, 5, 1, 4]),
        ];
        for (value, size, pixels) in expected {
            let mut out = vec![9; 100];
            assert_eq!(
                Orientation(value).apply(&source, (3, 2), &mut out),
                size,
                "orientation {value}"
            );
            assert_eq!(out, grey(&pixels), "orientation {value}");
        }
    }

    #[test]
    fn blocks_join_without_a_seam() {
        let (width, height) = (70_u32, 45_u32);
        let source: Vec<u8> = (0..width * height)
            .flat_map(|index| [index as u8, (index >> 8) as u8, 7])
            .collect();
        let mut turned = Vec::new();
        let mut back = Vec::new();
        for (there, home) in [(2, 2), (3, 3), (4, 4), (5, 5), (6, 8), (7, 7), (8, 6)] {
            let size = Orientation(there).apply(&source, (width, height), &mut turned);
            assert_ne!(turned, source);
            assert_eq!(
                Orientation(home).apply(&turned, size, &mut back),
                (width, height)
            );
            assert_eq!(back, source, "orientation {there} and back");
        }
    }

    #[test]
    fn an_unusable_block_is_upright_with_a_remark() {
        for block in [
            &b""[..],
            b"II*\0",
            b"not exif at all",
            b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0\0\0\0\0",
        ] {
            let mut remarks = Vec::new();
            assert_eq!(
                Orientation::of_block(block.to_vec(), &mut remarks),
                Orientation::UPRIGHT
            );
            assert_eq!(remarks.len(), 1, "{block:?}");
        }
    }
}
