//! One row of `YCbCr` to planes of red, green and blue, chroma widened as libjpeg-turbo widens it ("fancy upsampling"). All back ends agree.
//!
//! Knows one row and its chroma rows; must not know images. Widening is by the triangle filter: each chroma sample lies between two pixels, and
//! each of the two takes 3/4 of it and 1/4 of the neighbour on its side; down the columns likewise. Beyond an edge the sample at the edge counts.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use super::Backend;
use crate::Chroma;

/// The samples that one row of pixels is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// One for each pixel.
    pub luma: &'a [u8],
    /// Blue and red difference, of the chroma row that the pixels lie in.
    pub near: [&'a [u8]; 2],
    /// The same of the next nearest chroma row.
    pub far: [&'a [u8]; 2],
    /// How chroma is spaced.
    pub chroma: Chroma,
    /// Whether the row converted just before, with the same room for sums, was made from the same chroma rows, near and far exchanged.
    pub exchanged: bool,
    /// Bytes from this luma row to the one that is wanted next, and from the near chroma rows to the next not yet wanted: hints to fetch them early.
    pub ahead: (usize, usize),
}

/// Pixels that a vector kernel makes at a time; outputs have room for a whole number of them.
pub(crate) const STEP: usize = 64;

/// Bytes that a plane of a row of `width` pixels needs.
pub(crate) const fn padded(width: usize) -> usize {
    width.next_multiple_of(STEP)
}

/// Fixed-point factors of the conversion, with 16 fraction bits, as libjpeg rounds them.
mod factor {
    /// Red from the red difference: 1.402.
    pub(super) const RED: i32 = 91881;
    /// Blue from the blue difference: 1.772.
    pub(super) const BLUE: i32 = 116_130;
    /// Green from the blue difference: -0.34414.
    pub(super) const GREEN_BLUE: i32 = -22554;
    /// Green from the red difference: -0.71414.
    pub(super) const GREEN_RED: i32 = -46802;
}

/// What is added to 16 times a widened sample before the shift, at the left and the right of a chroma sample's two pixels. libjpeg alternates them so
/// that rounding does not drift.
fn rounding(chroma: Chroma) -> (i16, i16) {
    match chroma {
        Chroma::Quarter => (8, 7),
        // Of quarters, in sixteenths: 1 and 2.
        Chroma::HalfWidth | Chroma::Full => (4, 8),
    }
}

/// Converts a row: red at the start of `out`, green at `stride`, blue at twice that; each plane has [`padded`] bytes, those past the row's end without
/// meaning. `sums` is room, to be left alone from one row to the next.
pub(crate) fn to_planes(
    backend: Backend,
    row: &Row<'_>,
    sums: &mut Vec<i16>,
    out: &mut [u8],
    stride: usize,
) {
    let width = row.luma.len();
    assert!(stride >= padded(width) && out.len() >= 3 * stride);
    let samples = match row.chroma {
        Chroma::Full => width,
        Chroma::HalfWidth | Chroma::Quarter => width.div_ceil(2),
    };
    assert!(
        row.near
            .iter()
            .chain(&row.far)
            .all(|plane| plane.len() == samples)
    );
    #[cfg(target_arch = "x86_64")]
    if backend == Backend::Avx512 {
        let sums = super::aligned(sums, 4 * avx512::sums_of(samples));
        return avx512::to_planes(row, sums, out, stride);
    }
    let _ = (backend, sums);
    scalar::to_planes(row, out, stride);
}

/// Planes of red, green and blue to pixels of three bytes, as many as `out` holds.
pub(crate) fn interleave(backend: Backend, planes: [&[u8]; 3], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if backend == Backend::Avx512 {
        return avx512::interleave(planes, out);
    }
    let _ = backend;
    scalar::interleave(planes, out);
}
