//! The horizontal pass for one channel with AVX-512, sixteen outputs at a time. Same bytes as `scalar`, by construction.
//!
//! A step picks its taps from a window of 128 bytes with one `vpermi2b` and multiplies them as `avx512` does. Where outputs lie near each other, every 32-bit lane is
//! an output; where they lie far apart, four lanes in different 128-bit parts share one, and are added at the end.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_extract_epi32, _mm_storeu_si128, _mm512_add_epi32,
    _mm512_cvtusepi32_epi8, _mm512_dpbusd_epi32, _mm512_load_si512, _mm512_loadu_si512,
    _mm512_max_epi32, _mm512_permutex2var_epi8, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_srai_epi32,
};

use super::avx512::{add_parts, is_available, join};
use super::blocks::{BLOCK, for_each_block};
use super::pack::{GATHER_LOAD, GATHER_OUTPUTS, Packed};
use super::{Rows, RowsMut, SLACK};
use crate::coefficients::{PRECISION_BITS, ROUNDING};

/// Horizontal pass. `target` rows must have [`SLACK`] bytes behind them, which are overwritten.
pub(super) fn horizontal(
    source: Rows<'_>,
    outputs: usize,
    packed: &Packed,
    target: RowsMut<'_>,
    scratch: &mut Vec<u8>,
) {
    assert!(is_available(), "back end chosen without its instructions");
    assert!(target.stride >= outputs + SLACK && SLACK >= GATHER_OUTPUTS);
    let units = outputs.div_ceil(packed.lanes);
    assert!(packed.offsets.len() == units + 1 && packed.offsets[units] <= packed.windows.len());
    for_each_block(source, packed.reach, target, scratch, |inputs, outs| {
        // SAFETY: the instructions were detected. Each input is readable for `packed.reach` bytes, the most that any load of `packed` touches, and each
        // output writable for its stride, which has room for `outputs` rounded up to sixteen (asserted).
        unsafe {
            if packed.lanes == GATHER_OUTPUTS {
                block::<GATHER_OUTPUTS>(inputs, outs, packed);
            } else {
                block::<4>(inputs, outs, packed);
            }
        }
    });
}

/// The rows of a block. `LANES` is `packed.lanes`.
///
/// # Safety
///
/// The instructions; `inputs` readable for `packed.reach` bytes, `outs` writable for `LANES` bytes a unit.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
unsafe fn block<const LANES: usize>(
    inputs: [*const u8; BLOCK],
    outs: [*mut u8; BLOCK],
    packed: &Packed,
) {
    let mut step = 0;
    for unit in 0..packed.offsets.len() - 1 {
        // SAFETY: the caller's promise.
        let sums = unsafe { unit_sums::<LANES>(inputs, packed, unit, &mut step) };
        let outs = outs.map(|out| out.wrapping_add(unit * LANES));
        if LANES == GATHER_OUTPUTS {
            for row in 0..BLOCK {
                // SAFETY: the caller's promise.
                unsafe { _mm_storeu_si128(outs[row].cast(), finish(sums[row])) };
            }
        } else {
            let bytes = finish(add_parts(sums));
            let rows = [
                _mm_extract_epi32::<0>(bytes),
                _mm_extract_epi32::<1>(bytes),
                _mm_extract_epi32::<2>(bytes),
                _mm_extract_epi32::<3>(bytes),
            ];
            for row in 0..BLOCK {
                // SAFETY: the caller's promise: four bytes.
                unsafe { outs[row].cast::<i32>().write_unaligned(rows[row]) };
            }
        }
    }
}

/// The lanes' sums over a unit's steps, for each row; `step` is the first, and is moved to the next unit's.
///
/// # Safety
///
/// The instructions; `inputs` readable for [`GATHER_LOAD`] bytes from each window's base.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
unsafe fn unit_sums<const LANES: usize>(
    inputs: [*const u8; BLOCK],
    packed: &Packed,
    unit: usize,
    step: &mut usize,
) -> [__m512i; BLOCK] {
    let mut sums = [[_mm512_setzero_si512(); 3]; BLOCK];
    for window in &packed.windows[packed.offsets[unit]..packed.offsets[unit + 1]] {
        let bytes = inputs.map(|input| {
            // SAFETY: the caller's promise.
            unsafe {
                let first = input.add(window.base);
                [
                    _mm512_loadu_si512(first.cast()),
                    _mm512_loadu_si512(first.add(GATHER_LOAD / 2).cast()),
                ]
            }
        });
        for chunk in &packed.gathers[*step..window.end] {
            // SAFETY: each array is 64 bytes and, by the layout of `GatherChunk`, 64-byte aligned.
            let (index, weights) = unsafe {
                (
                    _mm512_load_si512(chunk.index.as_ptr().cast()),
                    chunk
                        .digits
                        .each_ref()
                        .map(|digits| _mm512_load_si512(digits.as_ptr().cast())),
                )
            };
            for row in 0..BLOCK {
                let taps = _mm512_permutex2var_epi8(bytes[row][0], index, bytes[row][1]);
                for digit in 0..3 {
                    sums[row][digit] = _mm512_dpbusd_epi32(sums[row][digit], taps, weights[digit]);
                }
            }
        }
        *step = window.end;
    }
    sums.map(|digits| join(digits))
}

/// Rounded and clamped sums.
#[inline]
#[target_feature(enable = "avx512f")]
fn finish(sums: __m512i) -> __m128i {
    let rounded = _mm512_add_epi32(sums, _mm512_set1_epi32(ROUNDING));
    let values = _mm512_srai_epi32::<{ PRECISION_BITS }>(rounded);
    _mm512_cvtusepi32_epi8(_mm512_max_epi32(values, _mm512_setzero_si512()))
}
