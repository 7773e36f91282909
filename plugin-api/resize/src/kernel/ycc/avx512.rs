//! The conversion with AVX-512, 64 pixels at a time: the pixels left and right of the chroma samples apart, in 16-bit lanes. Same bytes as `scalar`.

use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm_setr_epi8, _mm256_maskz_loadu_epi8, _mm512_add_epi16,
    _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_cvtepu8_epi16, _mm512_dpwssd_epi32,
    _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_mulhrs_epi16, _mm512_packs_epi32,
    _mm512_packus_epi16, _mm512_permutex2var_epi8, _mm512_set1_epi16, _mm512_set1_epi32,
    _mm512_shuffle_epi8, _mm512_srai_epi16, _mm512_srai_epi32, _mm512_srli_epi16,
    _mm512_storeu_si512, _mm512_sub_epi16, _mm512_unpackhi_epi16, _mm512_unpacklo_epi16,
};

use super::super::avx512::is_available;
use super::{Row, STEP, factor, rounding, scalar};
use crate::Chroma;

/// `factor::RED` less one, with 15 fraction bits for `vpmulhrsw`: for each of the 256 differences it rounds to the same (tested).
const RED_15: i16 = 13173;
/// `factor::BLUE` less two, likewise.
const BLUE_15: i16 = -7471;

/// Entries before the first sum, so that the sum left of it can be read.
const MARGIN: usize = 32;

/// Room for the column sums of a chroma row, with a margin on both sides.
pub(super) const fn sums_of(samples: usize) -> usize {
    MARGIN + samples.next_multiple_of(MARGIN) + MARGIN
}

/// `sums` has room for four rows: blue and red as seen from the near chroma row, then as seen from the far one, for the next row of pixels.
pub(super) fn to_planes(row: &Row<'_>, sums: &mut [i16], out: &mut [u8], stride: usize) {
    assert!(is_available(), "back end chosen without its instructions");
    let (width, samples) = (row.luma.len(), row.near[0].len());
    assert!(stride >= width.next_multiple_of(STEP) && out.len() >= 3 * stride);
    assert!(sums.len() == 4 * sums_of(samples));
    let rows = row.near.iter().chain(&row.far);
    assert!(rows.into_iter().all(|plane| plane.len() == samples));
    let (near_sums, far_sums) = sums.split_at_mut(2 * sums_of(samples));
    if row.chroma == Chroma::Full {
        assert!(samples == width);
    } else {
        assert!(samples == width.div_ceil(2));
        let rooms = near_sums.chunks_exact_mut(sums_of(samples));
        let rooms = rooms.zip(far_sums.chunks_exact_mut(sums_of(samples)));
        for (plane, (near, far)) in rooms.enumerate().filter(|_| !row.exchanged) {
            // SAFETY: the instructions were detected; both chroma rows hold `samples` bytes, and both rooms have, behind their margin, place for
            // `samples` rounded up to `MARGIN`.
            unsafe {
                column_sums(
                    [row.near[plane].as_ptr(), row.far[plane].as_ptr()],
                    samples,
                    row.ahead.1,
                    [&mut *near, &mut *far].map(|sums| sums.as_mut_ptr().add(MARGIN)),
                );
            };
            for sums in [near, far] {
                sums[MARGIN - 1] = sums[MARGIN];
                sums[MARGIN + samples] = sums[MARGIN + samples - 1];
            }
        }
    }
    let sums = if row.exchanged { far_sums } else { near_sums };
    let (blue_sums, red_sums) = sums.split_at(sums_of(samples));
    // SAFETY: the instructions were detected; `out` holds three planes of `width` rounded up to `STEP`, and the sums and chroma rows are as long as
    // asserted.
    unsafe {
        from_sums(
            row,
            [blue_sums.as_ptr(), red_sums.as_ptr()],
            out.as_mut_ptr(),
            stride,
        );
    };
}

/// # Safety
///
/// The instructions; chroma as long as luma where it is full, else `sums` readable up to the chroma row's length rounded up to 32 and one more, behind
/// the margin; `out` as for [`pixels`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn from_sums(row: &Row<'_>, sums: [*const i16; 2], out: *mut u8, stride: usize) {
    if row.chroma == Chroma::Full {
        let middle = _mm512_set1_epi16(128);
        let differences = |at: usize, mask: u64| {
            row.near.map(|plane| {
                // SAFETY: the mask keeps the load within the row, which is as long as luma's.
                let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, plane.as_ptr().add(at).cast()) };
                halves(bytes).map(|half| _mm512_sub_epi16(half, middle))
            })
        };
        // SAFETY: the caller's promises.
        unsafe { pixels(row, out, stride, differences) };
        return;
    }
    // The middle, 128, is taken off before the shift.
    let (left, right) = rounding(row.chroma);
    let (left, right) = (
        _mm512_set1_epi16(left - (128 << 4)),
        _mm512_set1_epi16(right - (128 << 4)),
    );
    let differences = |at: usize, _: u64| {
        sums.map(|sums| {
            // SAFETY: the caller's promise about sums: the loads end at most one behind the rounding up.
            let (sum, before, after) = unsafe {
                let first = sums.add(MARGIN + at / 2);
                (
                    _mm512_loadu_si512(first.cast()),
                    _mm512_loadu_si512(first.sub(1).cast()),
                    _mm512_loadu_si512(first.add(1).cast()),
                )
            };
            let triple = _mm512_add_epi16(_mm512_add_epi16(sum, sum), sum);
            [
                _mm512_srai_epi16::<4>(_mm512_add_epi16(triple, _mm512_add_epi16(before, left))),
                _mm512_srai_epi16::<4>(_mm512_add_epi16(triple, _mm512_add_epi16(after, right))),
            ]
        })
    };
    // SAFETY: the caller's promises.
    unsafe { pixels(row, out, stride, differences) };
}

/// Three times one row's sample and once the other's, both ways round.
///
/// # Safety
///
/// The instructions; `samples` bytes readable at `rows`; `samples` rounded up to 32 writable at `outs`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn column_sums(rows: [*const u8; 2], samples: usize, ahead: usize, outs: [*mut i16; 2]) {
    let step = |at: usize, mask: u32| {
        // SAFETY: the mask keeps the loads within `samples`; the stores are within its rounding up.
        unsafe {
            let [near, far] = rows
                .map(|row| _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, row.add(at).cast())));
            let once = _mm512_add_epi16(near, far);
            for (out, twice) in outs.into_iter().zip([near, far]) {
                let sum = _mm512_add_epi16(once, _mm512_add_epi16(twice, twice));
                _mm512_storeu_si512(out.add(at).cast(), sum);
            }
        }
    };
    let whole = samples & !63;
    for at in (0..whole).step_by(64) {
        _mm_prefetch::<_MM_HINT_T0>(rows[1].wrapping_add(at).wrapping_add(ahead).cast());
        step(at, !0);
        step(at + 32, !0);
    }
    for at in (whole..samples).step_by(32) {
        step(at, (!0_u64 >> (64 - (samples - at))) as u32);
    }
}

/// Bytes at even and at odd places, as 16-bit lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn halves(bytes: __m512i) -> [__m512i; 2] {
    [
        _mm512_and_si512(bytes, _mm512_set1_epi16(0xFF)),
        _mm512_srli_epi16::<8>(bytes),
    ]
}

/// All pixels of a row. `differences` gives, for the pixels from one on and the mask of those that exist, blue and red difference of the even and of the
/// odd ones.
///
/// # Safety
///
/// The instructions; `out` writable for three planes, `stride` apart, of the row's width rounded up to [`STEP`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn pixels(
    row: &Row<'_>,
    out: *mut u8,
    stride: usize,
    differences: impl Fn(usize, u64) -> [[__m512i; 2]; 2],
) {
    let width = row.luma.len();
    // Packing puts eight even pixels before eight odd ones in each 128-bit part.
    let order = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15,
    ));
    let step = |at: usize, mask: u64| {
        _mm_prefetch::<_MM_HINT_T0>(
            row.luma
                .as_ptr()
                .wrapping_add(at)
                .wrapping_add(row.ahead.0)
                .cast(),
        );
        // SAFETY: the mask keeps the load within the row.
        let luma = unsafe { _mm512_maskz_loadu_epi8(mask, row.luma.as_ptr().add(at).cast()) };
        let [blue, red] = differences(at, mask);
        let luma = halves(luma);
        let even = convert(luma[0], blue[0], red[0]);
        let odd = convert(luma[1], blue[1], red[1]);
        for channel in 0..3 {
            let bytes = _mm512_packus_epi16(even[channel], odd[channel]);
            // SAFETY: within the planes' rounding up.
            unsafe {
                _mm512_storeu_si512(
                    out.add(channel * stride + at).cast(),
                    _mm512_shuffle_epi8(bytes, order),
                );
            };
        }
    };
    let whole = width & !(STEP - 1);
    for at in (0..whole).step_by(STEP) {
        step(at, !0);
    }
    if whole < width {
        step(whole, !0 >> (STEP - (width - whole)));
    }
}

/// As `scalar::interleave`.
pub(super) fn interleave(planes: [&[u8]; 3], out: &mut [u8]) {
    assert!(is_available(), "back end chosen without its instructions");
    let pixels = out.len() / 3;
    let whole = pixels & !(STEP - 1);
    assert!(planes.iter().all(|plane| plane.len() >= pixels));
    // SAFETY: the instructions were detected; `whole` pixels are readable in each plane and, three bytes each, writable in `out`.
    unsafe { interleave_whole(planes.map(<[u8]>::as_ptr), whole, out.as_mut_ptr()) };
    scalar::interleave(planes.map(|plane| &plane[whole..]), &mut out[whole * 3..]);
}

/// For each third of 64 pixels: which byte of red and green, red being the first 64, goes where; then of those and blue.
const ORDERS: [[[u8; STEP]; 2]; 3] = {
    let mut orders = [[[0; STEP]; 2]; 3];
    let mut at = 0;
    while at < 3 * STEP {
        let (pixel, part, place) = ((at / 3) as u8, at / STEP, at % STEP);
        let (first, second) = match at % 3 {
            0 => (pixel, place as u8),
            1 => (STEP as u8 + pixel, place as u8),
            _ => (0, STEP as u8 + pixel),
        };
        orders[part][0][place] = first;
        orders[part][1][place] = second;
        at += 1;
    }
    orders
};

/// # Safety
///
/// The instructions; `pixels`, a multiple of [`STEP`], readable at each plane, and three times as many bytes writable at `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn interleave_whole(planes: [*const u8; 3], pixels: usize, out: *mut u8) {
    // SAFETY: 64 readable bytes each.
    let orders =
        ORDERS.map(|pair| pair.map(|order| unsafe { _mm512_loadu_si512(order.as_ptr().cast()) }));
    for at in (0..pixels).step_by(STEP) {
        // SAFETY: the caller's promise.
        let [red, green, blue] =
            planes.map(|plane| unsafe { _mm512_loadu_si512(plane.add(at).cast()) });
        for (part, [first, second]) in orders.into_iter().enumerate() {
            let two = _mm512_permutex2var_epi8(red, first, green);
            // SAFETY: the caller's promise.
            unsafe {
                _mm512_storeu_si512(
                    out.add(at * 3 + part * STEP).cast(),
                    _mm512_permutex2var_epi8(two, second, blue),
                );
            };
        }
    }
}

/// Red, green and blue, not yet clamped.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn convert(luma: __m512i, blue: __m512i, red: __m512i) -> [__m512i; 3] {
    // Green's factors do not fit 16 bits: red's is split as -1 and the rest.
    const GREEN: i32 = ((factor::GREEN_RED + (1 << 16)) << 16) | (factor::GREEN_BLUE & 0xFFFF);
    let half = _mm512_set1_epi32(1 << 15);
    let green = _mm512_set1_epi32(GREEN);
    let [low, high] = [
        _mm512_unpacklo_epi16(blue, red),
        _mm512_unpackhi_epi16(blue, red),
    ]
    .map(|pairs| _mm512_srai_epi32::<16>(_mm512_dpwssd_epi32(half, pairs, green)));
    let with_red = _mm512_add_epi16(luma, red);
    let with_blue = _mm512_add_epi16(_mm512_add_epi16(luma, blue), blue);
    [
        _mm512_add_epi16(
            with_red,
            _mm512_mulhrs_epi16(red, _mm512_set1_epi16(RED_15)),
        ),
        _mm512_add_epi16(_mm512_sub_epi16(luma, red), _mm512_packs_epi32(low, high)),
        _mm512_add_epi16(
            with_blue,
            _mm512_mulhrs_epi16(blue, _mm512_set1_epi16(BLUE_15)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_factors_round_like_the_long_ones() {
        for difference in -128..128_i32 {
            for (short, long, whole) in [(RED_15, factor::RED, 1), (BLUE_15, factor::BLUE, 2)] {
                let exact = (long * difference + (1 << 15)) >> 16;
                let made = whole * difference + ((difference * i32::from(short) + (1 << 14)) >> 15);
                assert_eq!(made, exact, "{difference}");
            }
        }
    }
}
