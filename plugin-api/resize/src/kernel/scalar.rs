//! The passes in plain Rust: the definition that the SIMD kernels are tested against.

use std::ops::Range;

use super::{Rows, RowsMut};
use crate::coefficients::{Coefficients, PRECISION_BITS, ROUNDING};

pub(super) fn horizontal<const CHANNELS: usize>(
    source: Rows<'_>,
    table: &Coefficients,
    target: RowsMut<'_>,
) {
    for y in 0..source.count {
        let row = source.row(y);
        let out = &mut target.data[y * target.stride..];
        for (output, (pixel, span)) in out.chunks_exact_mut(CHANNELS).zip(&table.spans).enumerate()
        {
            let mut sums = [ROUNDING; CHANNELS];
            let taps = row[span.start * CHANNELS..].chunks_exact(CHANNELS);
            for (tap, &weight) in taps.zip(table.fixed_of(output)) {
                for (sum, &value) in sums.iter_mut().zip(tap) {
                    *sum = sum.wrapping_add(i32::from(value).wrapping_mul(weight));
                }
            }
            for (value, sum) in pixel.iter_mut().zip(sums) {
                *value = to_byte(sum);
            }
        }
    }
}

pub(super) fn vertical(
    bytes: usize,
    source: Rows<'_>,
    table: &Coefficients,
    outputs: Range<usize>,
    target: RowsMut<'_>,
) {
    for (line, output) in outputs.enumerate() {
        let span = table.spans[output];
        columns(
            0..bytes,
            source,
            span.start,
            table.fixed_of(output),
            &mut target.data[line * target.stride..][..bytes],
        );
    }
}

/// One output row over a range of byte columns; a block at a time, so that rows are read along and sums stay in registers.
pub(super) fn columns(
    range: Range<usize>,
    source: Rows<'_>,
    start: usize,
    weights: &[i32],
    out: &mut [u8],
) {
    const BLOCK: usize = 64;
    for from in range.clone().step_by(BLOCK) {
        let width = BLOCK.min(range.end - from);
        let mut sums = [ROUNDING; BLOCK];
        for (tap, &weight) in weights.iter().enumerate() {
            let row = &source.row(start + tap)[from..][..width];
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum = sum.wrapping_add(i32::from(value).wrapping_mul(weight));
            }
        }
        for (value, &sum) in out[from..][..width].iter_mut().zip(&sums) {
            *value = to_byte(sum);
        }
    }
}

/// Drops the fraction and clamps to 0..=255.
fn to_byte(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}
