//! The conversion in plain Rust: the definition that the SIMD kernel is tested against. Knows no instruction set.

use super::{MARGIN, Row, factor, rounding};
use crate::Chroma;

pub(super) fn to_planes(row: &Row<'_>, sums: &mut [i16], out: &mut [u8], stride: usize) {
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
    let samples = row.near[0].len();
    let half = sums.len() / 2;
    let (blue_sums, red_sums) = sums.split_at_mut(half);
    for (plane, sums) in [&mut *blue_sums, &mut *red_sums].into_iter().enumerate() {
        let inner = &mut sums[MARGIN..][..samples];
        for ((sum, &near), &far) in inner.iter_mut().zip(row.near[plane]).zip(row.far[plane]) {
            *sum = 3 * i16::from(near) + i16::from(far);
        }
        sums[MARGIN - 1] = sums[MARGIN];
        sums[MARGIN + samples] = sums[MARGIN + samples - 1];
    }
    let (left, right) = rounding(row.chroma);
    let widened = |sums: &[i16], at: usize, other: usize, round: i16| {
        i32::from(((3 * sums[at] + sums[other] + round) >> 4) - 128)
    };
    for sample in 0..width / 2 {
        let (at, x) = (MARGIN + sample, 2 * sample);
        [red[x], green[x], blue[x]] = convert(
            i32::from(row.luma[x]),
            widened(blue_sums, at, at - 1, left),
            widened(red_sums, at, at - 1, left),
        );
        [red[x + 1], green[x + 1], blue[x + 1]] = convert(
            i32::from(row.luma[x + 1]),
            widened(blue_sums, at, at + 1, right),
            widened(red_sums, at, at + 1, right),
        );
    }
    if !width.is_multiple_of(2) {
        let (at, x) = (MARGIN + samples - 1, width - 1);
        [red[x], green[x], blue[x]] = convert(
            i32::from(row.luma[x]),
            widened(blue_sums, at, at - 1, left),
            widened(red_sums, at, at - 1, left),
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
