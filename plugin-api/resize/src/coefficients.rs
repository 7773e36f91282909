//! Which source pixels make an output pixel, and with what weights, along one axis. Knows no pixels and no channels.

use crate::{Filter, ResizeError};

/// Fraction bits of the fixed-point weights: 32 less 8 for the pixel less 2 for overshoot and sign, as in Pillow.
pub(crate) const PRECISION_BITS: u32 = 32 - 8 - 2;
/// Half a unit, added before the final shift.
pub(crate) const ROUNDING: i32 = 1 << (PRECISION_BITS - 1);
/// Where a weight is split in two 16-bit halves for the SIMD kernels.
pub(crate) const SPLIT_BITS: u32 = 11;
/// Weights below this magnitude fit two halves: 15 bits above [`SPLIT_BITS`].
const WORD_LIMIT: i32 = 1 << (SPLIT_BITS + 15);
/// Weights up to this magnitude fit three signed bytes.
const BYTE_LIMIT: i32 = 127 << 16;
/// A table of more weights than this is refused (1 GiB of `f64`).
const MAX_WEIGHTS: usize = 1 << 27;

/// The source pixels of one output pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// First source pixel.
    pub start: usize,
    /// How many; may be 0 for a region thinner than a pixel.
    pub len: usize,
}

/// One axis of a scaling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    /// Source length in pixels.
    pub source: u32,
    /// Start of the region read, in source pixels.
    pub from: f32,
    /// End of the region read.
    pub to: f32,
    /// Length that the region is resized to.
    pub target: u32,
    /// First output wanted.
    pub first: u32,
    /// Number of outputs wanted.
    pub count: u32,
    /// Resampling filter.
    pub filter: Filter,
}

/// Weights of the wanted outputs of one axis.
#[derive(Debug, Clone)]
pub(crate) struct Coefficients {
    /// Source pixels of each output.
    pub spans: Vec<Span>,
    /// Weights of output `i` at `i * stride ..`, normalised to sum 1.
    pub weights: Vec<f64>,
    /// The same in fixed point.
    pub fixed: Vec<i32>,
    /// Weights kept for each output; those beyond its span are 0.
    pub stride: usize,
    /// Whether all of `fixed` can be split in 16-bit halves: always, but for weights of 16 and more, which no filter of this crate has.
    pub fits_words: bool,
    /// Whether all of `fixed` can be split in three signed bytes.
    pub fits_bytes: bool,
}

impl Coefficients {
    pub(crate) fn new(axis: &Axis) -> Result<Self, ResizeError> {
        // The region's length is a difference of f32 in Pillow; for whole images it is exact.
        let scale = f64::from(axis.to - axis.from) / f64::from(axis.target);
        let widening = scale.max(1.0);
        let support = axis.filter.support() * widening;
        let stride = support.ceil() as usize * 2 + 1;
        let outputs = axis.count as usize;
        let total = outputs
            .checked_mul(stride)
            .filter(|&total| total <= MAX_WEIGHTS)
            .ok_or(ResizeError::TooLarge {
                from: axis.source,
                to: axis.target,
            })?;
        let mut weights = vec![0.0_f64; total];
        let mut spans = Vec::with_capacity(outputs);
        let shrink = 1.0 / widening;
        let length = i64::from(axis.source);
        for (index, row) in weights.chunks_exact_mut(stride).enumerate() {
            let output = f64::from(axis.first) + index as f64;
            let center = f64::from(axis.from) + (output + 0.5) * scale;
            // Truncation toward zero, as C does: the clamp at 0 comes after it.
            let start = ((center - support + 0.5) as i64).max(0);
            let end = ((center + support + 0.5) as i64).min(length);
            let len = (end - start).max(0) as usize;
            let mut sum = 0.0;
            for (tap, weight) in row[..len].iter_mut().enumerate() {
                *weight = axis
                    .filter
                    .weight(((start + tap as i64) as f64 - center + 0.5) * shrink);
                sum += *weight;
            }
            if sum != 0.0 {
                for weight in &mut row[..len] {
                    *weight /= sum;
                }
            }
            spans.push(Span {
                start: start as usize,
                len,
            });
        }
        let fixed: Vec<i32> = weights.iter().map(|&weight| to_fixed(weight)).collect();
        let most = fixed
            .iter()
            .map(|weight| weight.unsigned_abs())
            .max()
            .unwrap_or(0);
        let (fits_words, fits_bytes) = (
            most < WORD_LIMIT.unsigned_abs(),
            most <= BYTE_LIMIT.unsigned_abs(),
        );
        Ok(Self {
            spans,
            weights,
            fixed,
            stride,
            fits_words,
            fits_bytes,
        })
    }

    /// Fixed-point weights of one output, as many as its span is long.
    pub(crate) fn fixed_of(&self, output: usize) -> &[i32] {
        &self.fixed[output * self.stride..][..self.spans[output].len]
    }

    /// Weights of one output, as many as its span is long.
    pub(crate) fn weights_of(&self, output: usize) -> &[f64] {
        &self.weights[output * self.stride..][..self.spans[output].len]
    }

    /// First source pixel that any output reads, and one past the last.
    pub(crate) fn reach(&self) -> (usize, usize) {
        let first = self.spans.iter().map(|span| span.start).min().unwrap_or(0);
        let end = self
            .spans
            .iter()
            .map(|span| span.start + span.len)
            .max()
            .unwrap_or(0);
        (first, end.max(first))
    }

    /// Makes source positions relative to `first`: for a second pass over rows that begin there.
    pub(crate) fn shift(&mut self, first: usize) {
        for span in &mut self.spans {
            span.start -= first.min(span.start);
        }
    }
}

/// Rounds half away from zero to [`PRECISION_BITS`].
fn to_fixed(weight: f64) -> i32 {
    let scaled = weight * f64::from(1_u32 << PRECISION_BITS);
    if weight < 0.0 {
        (scaled - 0.5) as i32
    } else {
        (scaled + 0.5) as i32
    }
}

/// Upper half of a split weight.
pub(crate) fn upper(weight: i32) -> i16 {
    (weight >> SPLIT_BITS) as i16
}

/// Lower half of a split weight: never negative.
pub(crate) fn lower(weight: i32) -> i16 {
    (weight & ((1 << SPLIT_BITS) - 1)) as i16
}

/// A weight as three signed bytes, least first.
pub(crate) fn byte_digits(weight: i32) -> [i8; 3] {
    let first = weight as i8;
    let rest = (weight - i32::from(first)) >> 8;
    let second = rest as i8;
    [first, second, ((rest - i32::from(second)) >> 8) as i8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(source: u32, target: u32, filter: Filter) -> Axis {
        Axis {
            source,
            from: 0.0,
            to: source as f32,
            target,
            first: 0,
            count: target,
            filter,
        }
    }

    #[test]
    fn weights_sum_to_one_and_stay_inside_the_source() {
        for filter in Filter::ALL {
            for (source, target) in [
                (1, 1),
                (1, 9),
                (9, 1),
                (7, 5),
                (5, 7),
                (4288, 224),
                (3, 300),
            ] {
                let table = Coefficients::new(&axis(source, target, filter)).unwrap();
                assert_eq!(table.spans.len(), target as usize);
                for output in 0..target as usize {
                    let sum: f64 = table.weights_of(output).iter().sum();
                    assert!(
                        (sum - 1.0).abs() < 1e-12,
                        "{filter:?} {source}->{target} at {output}: {sum}"
                    );
                    let span = table.spans[output];
                    assert!(span.start + span.len <= source as usize && span.len <= table.stride);
                }
                assert!(table.fits_words && table.fits_bytes);
            }
        }
    }

    #[test]
    fn split_halves_rebuild_the_weight() {
        for weight in [
            0,
            1,
            -1,
            2047,
            2048,
            -2048,
            -2049,
            WORD_LIMIT - 1,
            -WORD_LIMIT,
            4_194_304,
            -300_000,
        ] {
            assert_eq!(
                (i32::from(upper(weight)) << SPLIT_BITS) + i32::from(lower(weight)),
                weight
            );
        }
    }

    #[test]
    fn byte_digits_rebuild_the_weight() {
        let odd = (0..20_000).map(|step| step * 419 - BYTE_LIMIT / 2);
        for weight in [
            0,
            1,
            -1,
            127,
            128,
            -128,
            -129,
            32_767,
            32_896,
            -32_897,
            BYTE_LIMIT,
            -BYTE_LIMIT,
            4_194_304,
        ]
        .into_iter()
        .chain(odd)
        {
            let [first, second, third] = byte_digits(weight).map(i32::from);
            assert_eq!((third << 16) + (second << 8) + first, weight);
        }
    }

    #[test]
    fn a_window_has_the_weights_of_its_place() {
        let whole = Coefficients::new(&axis(100, 37, Filter::Bicubic)).unwrap();
        let part = Coefficients::new(&Axis {
            first: 5,
            count: 11,
            ..axis(100, 37, Filter::Bicubic)
        })
        .unwrap();
        for output in 0..11 {
            assert_eq!(part.spans[output], whole.spans[output + 5]);
            assert_eq!(part.fixed_of(output), whole.fixed_of(output + 5));
        }
    }

    #[test]
    fn a_table_beyond_memory_is_refused() {
        let error = Coefficients::new(&axis(u32::MAX, 65_000, Filter::Lanczos)).unwrap_err();
        assert!(matches!(error, ResizeError::TooLarge { .. }));
    }
}
