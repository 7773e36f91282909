//! The two passes over 8-bit rows, and the choice of instruction set. All back ends give the same bytes.
//!
//! Knows rows, channels and coefficient tables; must not know images, windows or the order of the passes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(target_arch = "x86_64")]
mod gather;
mod pack;
mod scalar;
pub(crate) mod ycc;

pub(crate) use pack::Packed;

use std::ops::Range;

use crate::ResizeError;
use crate::coefficients::Coefficients;

/// Instruction set of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Plain Rust, any processor.
    Scalar,
    /// x86-64 with AVX2.
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL, VBMI and VNNI (Ice Lake, Zen 4 and later).
    Avx512,
}

impl Backend {
    /// All back ends, slowest first.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// The fastest that this processor has.
    pub fn best() -> Self {
        Self::ALL
            .into_iter()
            .rev()
            .find(|backend| backend.is_available())
            .unwrap_or(Self::Scalar)
    }

    /// Whether this processor has it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    pub(crate) fn require(self) -> Result<Self, ResizeError> {
        if self.is_available() {
            Ok(self)
        } else {
            Err(ResizeError::Backend {
                backend: self.name(),
            })
        }
    }
}

/// Rows of bytes to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// Row `y` begins at `y * stride`.
    pub data: &'a [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Number of rows.
    pub count: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn row(&self, index: usize) -> &'a [u8] {
        &self.data[index * self.stride..]
    }
}

/// Rows of bytes to write.
#[derive(Debug)]
pub(crate) struct RowsMut<'a> {
    /// Row `y` begins at `y * stride`.
    pub data: &'a mut [u8],
    /// Bytes from one row to the next; at least [`SLACK`] more than a row holds, where a kernel says so.
    pub stride: usize,
}

/// Bytes that the horizontal kernels may write past a row's end.
pub(crate) const SLACK: usize = 32;

/// `len` values from an address that is a multiple of 64 bytes: wide loads and stores across cache lines take twice as long.
pub(crate) fn aligned<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    const LINE: usize = 64;
    if buffer.len() < len + LINE {
        buffer.resize(len + LINE, T::default());
    }
    let skipped = buffer.as_ptr().align_offset(LINE).min(LINE);
    &mut buffer[skipped..][..len]
}

/// Resamples each row of `source` to the outputs of `table`. `target` rows need [`SLACK`] bytes behind them.
///
/// The kernel is the one that `packed` was laid out for.
pub(crate) fn horizontal(
    channels: usize,
    source: Rows<'_>,
    table: &Coefficients,
    packed: &Packed,
    target: RowsMut<'_>,
    scratch: &mut Vec<u8>,
) {
    #[cfg(target_arch = "x86_64")]
    if !packed.bytes.is_empty() {
        return avx512::horizontal(channels, source, table, packed, target, scratch);
    } else if !packed.gathers.is_empty() {
        return gather::horizontal(source, table.spans.len(), packed, target, scratch);
    } else if !packed.words.is_empty() {
        return avx2::horizontal(channels, source, table, packed, target, scratch);
    }
    let _ = (packed, scratch);
    match channels {
        1 => scalar::horizontal::<1>(source, table, target),
        3 => scalar::horizontal::<3>(source, table, target),
        _ => scalar::horizontal::<4>(source, table, target),
    }
}

/// Resamples columns: output row `y` is a weighted sum of the source rows in span `y`, over the first `bytes` bytes of each. The rows of `outputs` are
/// made, the first of them at the start of `target`.
pub(crate) fn vertical(
    backend: Backend,
    bytes: usize,
    source: Rows<'_>,
    table: &Coefficients,
    outputs: Range<usize>,
    target: RowsMut<'_>,
) {
    #[cfg(target_arch = "x86_64")]
    if backend == Backend::Avx512 && table.fits_bytes && bytes >= avx512::LANES {
        return avx512::vertical(bytes, source, table, outputs, target);
    } else if backend != Backend::Scalar && table.fits_words && bytes >= avx2::LANES {
        return avx2::vertical(bytes, source, table, outputs, target);
    }
    let _ = backend;
    scalar::vertical(bytes, source, table, outputs, target);
}
