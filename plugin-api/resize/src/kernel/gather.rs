//! The horizontal pass for one channel with AVX-512, sixteen outputs at a time. Same bytes as `scalar`, by construction.
//!
//! A step picks its taps from a window of 128 bytes with one `vpermi2b` and multiplies them as `avx512` does. Where outputs lie near each other, every 32-bit lane is
//! an output; where they lie far apart, four lanes in different 128-bit parts share one, and are added at the end.

use std::arch::x86_64::{
    __m512i, _mm_storeu_si128, _mm512_castsi512_si128, _mm512_dpbusd_epi32,
    _mm512_extracti32x4_epi32, _mm512_load_si512, _mm512_loadu_si512, _mm512_maskz_set1_epi32,
    _mm512_packs_epi32, _mm512_packus_epi16, _mm512_permutex2var_epi8, _mm512_permutexvar_epi32,
    _mm512_setr_epi32, _mm512_setzero_si512, _mm512_srai_epi32,
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
    let units = outputs.next_multiple_of(GATHER_OUTPUTS) / packed.lanes;
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
/// The instructions; `inputs` readable for `packed.reach` bytes, `outs` writable for [`GATHER_OUTPUTS`] bytes for as many units as make those; whole
/// numbers of these.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
unsafe fn block<const LANES: usize>(
    inputs: [*const u8; BLOCK],
    outs: [*mut u8; BLOCK],
    packed: &Packed,
) {
    let units = GATHER_OUTPUTS / LANES;
    let mut step = 0;
    for group in 0..(packed.offsets.len() - 1) / units {
        let rows = if LANES == GATHER_OUTPUTS {
            // SAFETY: the caller's promise.
            let sums = unsafe { unit_sums::<LANES>(inputs, packed, group, &mut step) };
            // Packing leaves four outputs of each row side by side in each 128-bit part.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_permutexvar_epi32(order, finish(sums))
        } else {
            let mut sums = [_mm512_setzero_si512(); 4];
            for (unit, sum) in sums.iter_mut().enumerate() {
                let unit = group * units + unit;
                // SAFETY: the caller's promise.
                *sum = add_parts(unsafe { unit_sums::<LANES>(inputs, packed, unit, &mut step) });
            }
            // Each part is a row already.
            finish(sums)
        };
        let parts = [
            _mm512_castsi512_si128(rows),
            _mm512_extracti32x4_epi32::<1>(rows),
            _mm512_extracti32x4_epi32::<2>(rows),
            _mm512_extracti32x4_epi32::<3>(rows),
        ];
        for (out, part) in outs.into_iter().zip(parts) {
            // SAFETY: the caller's promise.
            unsafe { _mm_storeu_si128(out.add(group * GATHER_OUTPUTS).cast(), part) };
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
    // Half a unit, once for each output: where four parts are added, in the first.
    let rounding = _mm512_maskz_set1_epi32(if LANES == 4 { 0xF } else { !0 }, ROUNDING);
    let zero = _mm512_setzero_si512();
    let mut sums = [[rounding, zero, zero]; BLOCK];
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
                for digit in 0..2 {
                    sums[row][digit] = _mm512_dpbusd_epi32(sums[row][digit], taps, weights[digit]);
                }
                if chunk.wide {
                    sums[row][2] = _mm512_dpbusd_epi32(sums[row][2], taps, weights[2]);
                }
            }
        }
        *step = window.end;
    }
    sums.map(|digits| join(digits))
}

/// Sums with the fraction dropped, as bytes: in each 128-bit part those of the four vectors one behind the other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn finish(sums: [__m512i; 4]) -> __m512i {
    let [a, b, c, d] = sums.map(|sums| _mm512_srai_epi32::<{ PRECISION_BITS }>(sums));
    _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d))
}
