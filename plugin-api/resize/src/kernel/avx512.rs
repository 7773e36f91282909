//! The passes with AVX-512 (F, BW, VL, VBMI, VNNI). Same bytes as `scalar`, by construction: 32-bit sums are exact modulo 2^32 in any order.
//!
//! `vpdpbusd` multiplies bytes of pixels with signed bytes of weights, four taps at once, without saturation. A weight is three such bytes; each
//! is summed, and the sums are joined at the end.

use std::arch::x86_64::{
    __m512i, _mm_extract_epi32, _mm512_add_epi32, _mm512_cvtusepi32_epi8, _mm512_dpbusd_epi32,
    _mm512_load_si512, _mm512_loadu_si512, _mm512_max_epi32, _mm512_packs_epi32,
    _mm512_packus_epi16, _mm512_permutexvar_epi8, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_slli_epi32, _mm512_srai_epi32, _mm512_storeu_si512,
    _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpacklo_epi8, _mm512_unpacklo_epi16,
};

use std::ops::Range;

use super::blocks::{Ahead, BLOCK, for_each_block};
use super::pack::{BYTE_LOAD, BYTE_STEP, Packed};
use super::{Rows, RowsMut, SLACK, scalar};
use crate::coefficients::{Coefficients, PRECISION_BITS, ROUNDING, byte_digits};

/// Byte columns that one step of the vertical kernel makes.
pub(super) const LANES: usize = 64;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx2")
}

/// Horizontal pass for three or four channels. `target` rows must have [`SLACK`] bytes behind them, which are overwritten.
pub(super) fn horizontal(
    channels: usize,
    source: Rows<'_>,
    table: &Coefficients,
    packed: &Packed,
    target: RowsMut<'_>,
    scratch: &mut Vec<u8>,
) {
    let outputs = table.spans.len();
    assert!(is_available(), "back end chosen without its instructions");
    assert!(target.stride >= outputs * channels + SLACK);
    assert!(packed.offsets.len() == outputs + 1 && packed.offsets[outputs] <= packed.bytes.len());
    for_each_block(source, packed.reach, target, scratch, |inputs, outs| {
        // SAFETY: the instructions were detected. Each input is readable for `packed.reach` bytes, the most that any load of `packed` touches, and each
        // output writable for its stride, which has room for all outputs and more (asserted).
        unsafe {
            if channels == 3 {
                block::<3>(inputs, outs, source.stride, table, packed);
            } else {
                block::<4>(inputs, outs, source.stride, table, packed);
            }
        }
    });
}

/// # Safety
///
/// The instructions; `inputs` readable for `packed.reach` bytes, `outs` writable for `outputs * CHANNELS + 1`, `packed` made from `table` for CHANNELS.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
unsafe fn block<const CHANNELS: usize>(
    inputs: [*const u8; BLOCK],
    outs: [*mut u8; BLOCK],
    stride: usize,
    table: &Coefficients,
    packed: &Packed,
) {
    let order: [u8; 64] = std::array::from_fn(|at| {
        let (group, channel, tap) = (at / 16, at % 16 / 4, at % 4);
        // The fourth channel of three has weight 0; it may read anything.
        if channel < CHANNELS {
            ((group * 4 + tap) * CHANNELS + channel) as u8
        } else {
            0
        }
    });
    // SAFETY: 64 readable bytes.
    let order = unsafe { _mm512_loadu_si512(order.as_ptr().cast()) };
    let zero = _mm512_setzero_si512();
    let rounding = _mm512_set1_epi32(ROUNDING);
    let mut ahead = Ahead::new(inputs, stride);
    for (output, span) in table.spans.iter().enumerate() {
        let mut sums = [[zero; 3]; BLOCK];
        let mut at = span.start * CHANNELS;
        ahead.up_to(at);
        for chunk in &packed.bytes[packed.offsets[output]..packed.offsets[output + 1]] {
            // SAFETY: each digit array is 64 bytes and, by the layout of `ByteChunk`, 64-byte aligned.
            let weights = chunk
                .digits
                .each_ref()
                .map(|digits| unsafe { _mm512_load_si512(digits.as_ptr().cast()) });
            for row in 0..BLOCK {
                debug_assert!(at + BYTE_LOAD <= packed.reach);
                // SAFETY: `at + BYTE_LOAD` is within `packed.reach`, by the way that was computed.
                let bytes = unsafe { _mm512_loadu_si512(inputs[row].add(at).cast()) };
                let taps = _mm512_permutexvar_epi8(order, bytes);
                for digit in 0..3 {
                    sums[row][digit] = _mm512_dpbusd_epi32(sums[row][digit], taps, weights[digit]);
                }
            }
            at += BYTE_STEP * CHANNELS;
        }
        let rows = add_parts(sums.map(|digits| join(digits)));
        let values = _mm512_srai_epi32::<{ PRECISION_BITS }>(_mm512_add_epi32(rows, rounding));
        let pixels = _mm512_cvtusepi32_epi8(_mm512_max_epi32(values, zero));
        let pixels = [
            _mm_extract_epi32::<0>(pixels),
            _mm_extract_epi32::<1>(pixels),
            _mm_extract_epi32::<2>(pixels),
            _mm_extract_epi32::<3>(pixels),
        ];
        for row in 0..BLOCK {
            // SAFETY: four bytes at an output pixel: for three channels the last goes to the next pixel, written later, or to the slack.
            unsafe {
                outs[row]
                    .add(output * CHANNELS)
                    .cast::<i32>()
                    .write_unaligned(pixels[row]);
            };
        }
    }
}

/// Vertical pass over `bytes` byte columns, at least [`LANES`] of them. Writes nothing past a row's end.
pub(super) fn vertical(
    bytes: usize,
    source: Rows<'_>,
    table: &Coefficients,
    outputs: Range<usize>,
    target: RowsMut<'_>,
) {
    assert!(is_available(), "back end chosen without its instructions");
    assert!(bytes >= LANES);
    let mut quads = Vec::new();
    for (line, output) in outputs.enumerate() {
        let span = table.spans[output];
        let weights = table.fixed_of(output);
        let out = &mut target.data[line * target.stride..][..bytes];
        if weights.is_empty() {
            scalar::columns(0..bytes, source, 0, weights, out);
            continue;
        }
        let last = (span.start + weights.len() - 1) * source.stride;
        assert!(last + bytes <= source.data.len());
        quads.clear();
        quads.extend(weights.chunks(4).map(quad));
        let first = source.data[span.start * source.stride..].as_ptr();
        let mut at = 0;
        while at < bytes {
            // The last step moves back to end with the row: some columns are made twice.
            at = at.min(bytes - LANES);
            // SAFETY: the instructions were detected; rows `0..weights.len()` from `first`, `source.stride` apart, are readable for `bytes` bytes
            // (asserted for the last, which lies behind the others), `out` is `bytes` long, `at + LANES <= bytes`, and `quads` has a quarter as many
            // entries as there are rows, rounded up.
            unsafe {
                columns(
                    first.add(at),
                    source.stride,
                    weights.len(),
                    &quads,
                    out.as_mut_ptr().add(at),
                );
            };
            at += LANES;
        }
    }
}

/// The digits of four rows' weights, each digit's four as one 32-bit lane; missing rows have weight 0.
fn quad(weights: &[i32]) -> [i32; 3] {
    let mut lanes = [[0_u8; 4]; 3];
    for (row, &weight) in weights.iter().enumerate() {
        for (lane, digit) in lanes.iter_mut().zip(byte_digits(weight)) {
            lane[row] = digit.cast_unsigned();
        }
    }
    lanes.map(i32::from_le_bytes)
}

/// Weighted sum of rows over [`LANES`] byte columns.
///
/// # Safety
///
/// The instructions; [`LANES`] readable bytes at `first + row * stride` for each of `rows`, as many writable at `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn columns(first: *const u8, stride: usize, rows: usize, quads: &[[i32; 3]], out: *mut u8) {
    let mut sums = [[_mm512_setzero_si512(); 3]; 4];
    for (index, quad) in quads.iter().enumerate() {
        let row = |offset: usize| {
            // Rows behind the last have weight 0: the last is read in their place.
            let at = (index * 4 + offset).min(rows - 1) * stride;
            // SAFETY: the caller's promise about rows.
            unsafe { _mm512_loadu_si512(first.add(at).cast()) }
        };
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        let (ab, cd) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
        let (ab_high, cd_high) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
        let taps = [
            _mm512_unpacklo_epi16(ab, cd),
            _mm512_unpackhi_epi16(ab, cd),
            _mm512_unpacklo_epi16(ab_high, cd_high),
            _mm512_unpackhi_epi16(ab_high, cd_high),
        ];
        for (digit, &weights) in quad.iter().enumerate() {
            let weights = _mm512_set1_epi32(weights);
            for part in 0..4 {
                sums[part][digit] = _mm512_dpbusd_epi32(sums[part][digit], taps[part], weights);
            }
        }
    }
    let rounding = _mm512_set1_epi32(ROUNDING);
    let values = sums.map(|digits| {
        _mm512_srai_epi32::<{ PRECISION_BITS }>(_mm512_add_epi32(join(digits), rounding))
    });
    // Unpacking and packing both work in 128-bit parts, so the order comes out right.
    let bytes = _mm512_packus_epi16(
        _mm512_packs_epi32(values[0], values[1]),
        _mm512_packs_epi32(values[2], values[3]),
    );
    // SAFETY: the caller's promise about `out`.
    unsafe { _mm512_storeu_si512(out.cast(), bytes) };
}

#[target_feature(enable = "avx512f")]
pub(super) fn join(digits: [__m512i; 3]) -> __m512i {
    let upper = _mm512_add_epi32(
        _mm512_slli_epi32::<16>(digits[2]),
        _mm512_slli_epi32::<8>(digits[1]),
    );
    _mm512_add_epi32(upper, digits[0])
}

/// Each row's four 128-bit parts are added, and the rows end up side by side.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add_parts([a, b, c, d]: [__m512i; BLOCK]) -> __m512i {
    let ab = _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b01_00_01_00>(a, b),
        _mm512_shuffle_i32x4::<0b11_10_11_10>(a, b),
    );
    let cd = _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b01_00_01_00>(c, d),
        _mm512_shuffle_i32x4::<0b11_10_11_10>(c, d),
    );
    _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b10_00_10_00>(ab, cd),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(ab, cd),
    )
}
