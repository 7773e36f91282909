//! The conversion in plain Rust: the definition that the SIMD kernel is tested against. Knows no instruction set.

use super::{Row, factor, rounding};
use crate::Chroma;

pub(super) fn to_planes(row: &Row<'_>, out: &mut [u8], stride: usize) {
    let width = row.luma.len();
    let (red, rest) = out.split_at_mut(stride);
    let (green, blue) = rest.split_at_mut(stride);
    if row.chroma == Chroma::Full {
        for x in 0..width {
            [red[x], green[x], blue[x]] = convert(
                i32::from(row.luma[x]),
                i32::from(row.near[0][x]) - 128,
                i32::from(row.near[1][x]) - 128,
            );
        }
        return;
    }
    let last = row.near[0].len() - 1;
    let (left, right) = rounding(row.chroma);
    let widened = |plane: usize, at: usize, beside: usize, round: i16| {
        let sum = |at: usize| {
            let (near, far) = (row.near[plane][at], row.far[plane][at]);
            3 * i16::from(near) + i16::from(far)
        };
        i32::from(((3 * sum(at) + sum(beside) + round) >> 4) - 128)
    };
    for x in 0..width {
        let at = x / 2;
        let (beside, round) = if x.is_multiple_of(2) {
            (at.saturating_sub(1), left)
        } else {
            ((at + 1).min(last), right)
        };
        [red[x], green[x], blue[x]] = convert(
            i32::from(row.luma[x]),
            widened(0, at, beside, round),
            widened(1, at, beside, round),
        );
    }
}

/// Red, green and blue of a pixel; the differences are from -128 to 127.
fn convert(luma: i32, blue: i32, red: i32) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let clamped = |value: i32| value.clamp(0, 255) as u8;
    [
        clamped(luma + ((factor::RED * red + HALF) >> 16)),
        clamped(luma + ((factor::GREEN_BLUE * blue + factor::GREEN_RED * red + HALF) >> 16)),
        clamped(luma + ((factor::BLUE * blue + HALF) >> 16)),
    ]
}

/// Planes to pixels of three bytes.
pub(super) fn interleave([red, green, blue]: [&[u8]; 3], out: &mut [u8]) {
    for (((pixel, &r), &g), &b) in out.chunks_exact_mut(3).zip(red).zip(green).zip(blue) {
        pixel.copy_from_slice(&[r, g, b]);
    }
}
