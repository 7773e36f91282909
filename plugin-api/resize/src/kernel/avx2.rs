//! The passes with AVX2. Same bytes as `scalar`, by construction: 32-bit sums are exact modulo 2^32 in any order.
//!
//! A weight has up to 23 bits, too many for the 16-bit multiply-add (`vpmaddwd`), which does twice the work of a 32-bit multiply. So each weight is
//! `upper * 2^11 + lower`, both halves are summed, and the sums are joined at the end.

use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_packs_epi32, _mm_packus_epi16,
    _mm_set1_epi32, _mm_shuffle_epi32, _mm_srai_epi32, _mm256_add_epi32,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_cvtepu8_epi16,
    _mm256_extracti128_si256, _mm256_load_si256, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_packs_epi32, _mm256_packus_epi16, _mm256_set1_epi32, _mm256_setr_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_srai_epi32,
    _mm256_storeu_si256, _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
};

use std::ops::Range;

use super::blocks::{Ahead, BLOCK, for_each_block};
use super::pack::{Packed, WORD_LOAD, WordChunk};
use super::{Rows, RowsMut, SLACK, scalar};
use crate::coefficients::{Coefficients, PRECISION_BITS, ROUNDING, SPLIT_BITS, lower, upper};

/// Byte columns that one step of the vertical kernel makes; narrower rows are the scalar kernel's.
pub(super) const LANES: usize = 32;

/// Horizontal pass. `target` rows must have [`SLACK`] bytes behind them, which are overwritten.
pub(super) fn horizontal(
    channels: usize,
    source: Rows<'_>,
    table: &Coefficients,
    packed: &Packed,
    target: RowsMut<'_>,
    scratch: &mut Vec<u8>,
) {
    let outputs = table.spans.len();
    assert!(
        is_x86_feature_detected!("avx2"),
        "back end chosen without its instructions"
    );
    assert!(target.stride >= outputs * channels + SLACK);
    assert!(packed.offsets.len() == outputs + 1 && packed.offsets[outputs] <= packed.words.len());
    for_each_block(source, packed.reach, target, scratch, |inputs, outs| {
        // SAFETY: AVX2 was detected. Each input is readable for `packed.reach` bytes, the most that any load of `packed` touches, and each output writable
        // for its stride, which has room for all outputs and more (asserted).
        unsafe {
            match channels {
                1 => block_of_one(inputs, outs, source.stride, table, packed),
                3 => block_of_many::<3>(inputs, outs, source.stride, table, packed),
                _ => block_of_many::<4>(inputs, outs, source.stride, table, packed),
            }
        }
    });
}

/// # Safety
///
/// AVX2; `inputs` readable for `packed.reach` bytes, `outs` writable for `outputs * CHANNELS + 1` bytes, `packed` made from `table` for CHANNELS.
#[target_feature(enable = "avx2")]
unsafe fn block_of_many<const CHANNELS: usize>(
    inputs: [*const u8; BLOCK],
    outs: [*mut u8; BLOCK],
    stride: usize,
    table: &Coefficients,
    packed: &Packed,
) {
    // Bytes of four pixels, zero extended to pairs of taps for each channel: (0, 1) in the lower half, (2, 3) in the upper.
    let mask = if CHANNELS == 3 {
        _mm256_setr_epi8(
            0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
            6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
        )
    } else {
        _mm256_setr_epi8(
            0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, //
            8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1,
        )
    };
    let rounding = _mm_set1_epi32(ROUNDING);
    let mut ahead = Ahead::new(inputs, stride);
    for (output, span) in table.spans.iter().enumerate() {
        let mut uppers = [_mm256_setzero_si256(); BLOCK];
        let mut lowers = [_mm256_setzero_si256(); BLOCK];
        let mut at = span.start * CHANNELS;
        ahead.up_to(at);
        for chunk in &packed.words[packed.offsets[output]..packed.offsets[output + 1]] {
            let (weight_upper, weight_lower) = weights(chunk);
            for row in 0..BLOCK {
                debug_assert!(at + WORD_LOAD <= packed.reach);
                // SAFETY: `at + WORD_LOAD` is within `packed.reach`, by the way that was computed.
                let bytes = unsafe { _mm_loadu_si128(inputs[row].add(at).cast()) };
                let pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), mask);
                uppers[row] = _mm256_add_epi32(uppers[row], _mm256_madd_epi16(pairs, weight_upper));
                lowers[row] = _mm256_add_epi32(lowers[row], _mm256_madd_epi16(pairs, weight_lower));
            }
            at += 4 * CHANNELS;
        }
        for row in 0..BLOCK {
            let sums = join(uppers[row], lowers[row]);
            let sums = _mm_add_epi32(
                _mm_add_epi32(
                    _mm256_castsi256_si128(sums),
                    _mm256_extracti128_si256::<1>(sums),
                ),
                rounding,
            );
            let sums = _mm_srai_epi32::<{ PRECISION_BITS as i32 }>(sums);
            let words = _mm_packs_epi32(sums, sums);
            let pixel = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
            // SAFETY: four bytes at an output pixel: for three channels the last goes to the next pixel, written later, or to the slack.
            unsafe {
                outs[row]
                    .add(output * CHANNELS)
                    .cast::<i32>()
                    .write_unaligned(pixel);
            };
        }
    }
}

/// # Safety
///
/// As `block_of_many`, for one channel.
#[target_feature(enable = "avx2")]
unsafe fn block_of_one(
    inputs: [*const u8; BLOCK],
    outs: [*mut u8; BLOCK],
    stride: usize,
    table: &Coefficients,
    packed: &Packed,
) {
    let mut ahead = Ahead::new(inputs, stride);
    for (output, span) in table.spans.iter().enumerate() {
        let mut uppers = [_mm256_setzero_si256(); BLOCK];
        let mut lowers = [_mm256_setzero_si256(); BLOCK];
        let mut at = span.start;
        ahead.up_to(at);
        for chunk in &packed.words[packed.offsets[output]..packed.offsets[output + 1]] {
            let (weight_upper, weight_lower) = weights(chunk);
            for row in 0..BLOCK {
                debug_assert!(at + WORD_LOAD <= packed.reach);
                // SAFETY: `at + WORD_LOAD` is within `packed.reach`, by the way that was computed.
                let taps =
                    _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(inputs[row].add(at).cast()) });
                uppers[row] = _mm256_add_epi32(uppers[row], _mm256_madd_epi16(taps, weight_upper));
                lowers[row] = _mm256_add_epi32(lowers[row], _mm256_madd_epi16(taps, weight_lower));
            }
            at += WORD_LOAD;
        }
        for row in 0..BLOCK {
            let sums = join(uppers[row], lowers[row]);
            let halves = _mm_add_epi32(
                _mm256_castsi256_si128(sums),
                _mm256_extracti128_si256::<1>(sums),
            );
            let pairs = _mm_add_epi32(halves, _mm_shuffle_epi32::<0b01_00_11_10>(halves));
            let sum = _mm_cvtsi128_si32(_mm_add_epi32(
                pairs,
                _mm_shuffle_epi32::<0b10_11_00_01>(pairs),
            ));
            let value = (sum.wrapping_add(ROUNDING) >> PRECISION_BITS).clamp(0, 255) as u8;
            // SAFETY: one byte, at an output of this row.
            unsafe { outs[row].add(output).write(value) };
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
    assert!(
        is_x86_feature_detected!("avx2"),
        "back end chosen without its instructions"
    );
    assert!(bytes >= LANES);
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
        let first = source.data[span.start * source.stride..].as_ptr();
        let mut at = 0;
        while at < bytes {
            // The last step moves back to end with the row: some columns are made twice.
            at = at.min(bytes - LANES);
            // SAFETY: AVX2 was detected; rows `0..weights.len()` from `first`, `source.stride` apart, are readable for `bytes` bytes (asserted for the
            // last, which lies behind the others), `out` is `bytes` long, and `at + LANES <= bytes`.
            unsafe {
                columns(
                    first.add(at),
                    source.stride,
                    weights,
                    out.as_mut_ptr().add(at),
                );
            };
            at += LANES;
        }
    }
}

/// Weighted sum of rows over [`LANES`] byte columns.
///
/// # Safety
///
/// AVX2; [`LANES`] readable bytes at `first + row * stride` for each weight, as many writable at `out`.
#[target_feature(enable = "avx2")]
unsafe fn columns(first: *const u8, stride: usize, weights: &[i32], out: *mut u8) {
    let zero = _mm256_setzero_si256();
    let mut uppers = [zero; 4];
    let mut lowers = [zero; 4];
    let mut row = first;
    for pair in weights.chunks(2) {
        // SAFETY: the caller's promise about rows; a lone last row is read as both of its pair, with weight 0 for the second.
        let (one, two, next) = unsafe {
            let second = if pair.len() == 2 {
                row.add(stride)
            } else {
                row
            };
            (
                _mm256_loadu_si256(row.cast()),
                _mm256_loadu_si256(second.cast()),
                second,
            )
        };
        let second_weight = pair.get(1).copied().unwrap_or(0);
        let weight_upper = _mm256_set1_epi32(both(upper(pair[0]), upper(second_weight)));
        let weight_lower = _mm256_set1_epi32(both(lower(pair[0]), lower(second_weight)));
        let (left, right) = (
            _mm256_unpacklo_epi8(one, two),
            _mm256_unpackhi_epi8(one, two),
        );
        let pairs = [
            _mm256_unpacklo_epi8(left, zero),
            _mm256_unpackhi_epi8(left, zero),
            _mm256_unpacklo_epi8(right, zero),
            _mm256_unpackhi_epi8(right, zero),
        ];
        for ((upper, lower), pair) in uppers.iter_mut().zip(&mut lowers).zip(pairs) {
            *upper = _mm256_add_epi32(*upper, _mm256_madd_epi16(pair, weight_upper));
            *lower = _mm256_add_epi32(*lower, _mm256_madd_epi16(pair, weight_lower));
        }
        row = next.wrapping_add(stride);
    }
    let rounding = _mm256_set1_epi32(ROUNDING);
    let sums: [__m256i; 4] = std::array::from_fn(|index| {
        let sum = _mm256_add_epi32(join(uppers[index], lowers[index]), rounding);
        _mm256_srai_epi32::<{ PRECISION_BITS as i32 }>(sum)
    });
    // Unpacking and packing both work in 128-bit halves, so the order comes out right.
    let bytes = _mm256_packus_epi16(
        _mm256_packs_epi32(sums[0], sums[1]),
        _mm256_packs_epi32(sums[2], sums[3]),
    );
    // SAFETY: the caller's promise about `out`.
    unsafe { _mm256_storeu_si256(out.cast(), bytes) };
}

/// Two 16-bit weights as the 32-bit lane that `vpmaddwd` wants.
fn both(first: i16, second: i16) -> i32 {
    i32::from(first as u16) | (i32::from(second) << 16)
}

#[target_feature(enable = "avx2")]
fn weights(chunk: &WordChunk) -> (__m256i, __m256i) {
    // SAFETY: both arrays are 32 bytes long and, by the layout of `WordChunk`, 32-byte aligned.
    unsafe {
        (
            _mm256_load_si256(chunk.upper.as_ptr().cast()),
            _mm256_load_si256(chunk.lower.as_ptr().cast()),
        )
    }
}

#[target_feature(enable = "avx2")]
fn join(upper: __m256i, lower: __m256i) -> __m256i {
    _mm256_add_epi32(_mm256_slli_epi32::<{ SPLIT_BITS as i32 }>(upper), lower)
}
