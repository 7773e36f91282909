//! Rows for the horizontal SIMD kernels, four at a time, with room behind each for loads that run past the last pixel. Knows no weights.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::{Rows, RowsMut};

/// Rows that go through a horizontal kernel together, so that a chunk of weights is loaded once for all of them.
pub(super) const BLOCK: usize = 4;

/// Calls `work` with the first byte of four source rows and of the four rows to write.
///
/// Each source pointer is readable for `reach` bytes, and each target pointer writable for `target.stride` bytes. A short last block repeats its last
/// row: it is computed and written more than once, with the same result.
pub(super) fn for_each_block(
    source: Rows<'_>,
    reach: usize,
    target: RowsMut<'_>,
    scratch: &mut Vec<u8>,
    mut work: impl FnMut([*const u8; BLOCK], [*mut u8; BLOCK]),
) {
    assert!(source.count > 0 && target.data.len() >= source.count * target.stride);
    let base = target.data.as_mut_ptr();
    for first in (0..source.count).step_by(BLOCK) {
        let lines: [usize; BLOCK] =
            std::array::from_fn(|index| (first + index).min(source.count - 1));
        // Where a load would leave the buffer, the row is copied to one with room behind it: the last rows of an image.
        let fits = |line: usize| line * source.stride + reach <= source.data.len();
        if !lines.iter().all(|&line| fits(line)) {
            scratch.clear();
            scratch.resize(BLOCK * reach, 0);
            for (room, &line) in scratch.chunks_exact_mut(reach).zip(&lines) {
                let row = source.row(line);
                let length = row.len().min(reach);
                room[..length].copy_from_slice(&row[..length]);
            }
        }
        let inputs: [*const u8; BLOCK] = std::array::from_fn(|index| {
            let slice = if fits(lines[index]) {
                source.row(lines[index])
            } else {
                &scratch[index * reach..]
            };
            assert!(slice.len() >= reach);
            slice.as_ptr()
        });
        // SAFETY: every line is below `source.count`, and `target.data` holds that many rows of `target.stride` bytes (asserted above).
        let outs: [*mut u8; BLOCK] = lines.map(|line| unsafe { base.add(line * target.stride) });
        work(inputs, outs);
    }
}

/// Asks for the rows of the next block while this one is worked on: a full-size photograph does not fit the near caches, and a processor follows one
/// row by itself but not four across the ends of pages.
pub(super) struct Ahead {
    rows: [*const u8; BLOCK],
    asked: usize,
}

impl Ahead {
    pub(super) fn new(inputs: [*const u8; BLOCK], stride: usize) -> Self {
        Self {
            rows: inputs.map(|row| row.wrapping_add(BLOCK * stride)),
            asked: 0,
        }
    }

    /// Asks for all up to byte `end` of each row.
    #[inline]
    pub(super) fn up_to(&mut self, end: usize) {
        while self.asked < end {
            for row in self.rows {
                // SAFETY: a hint; an address outside any buffer is ignored, never read.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(self.asked).cast()) };
            }
            self.asked += 64;
        }
    }
}
