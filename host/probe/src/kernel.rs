//! Fused passes over a block of raw f32 rows on the CPU: rows are read once for the products with a vector and, still
//! in cache, once more for the sums back into a vector. It must not know threads, tensors or the optimiser.
//!
//! A row's logit does not depend on which rows it is computed with. Inside `with_simd` arithmetic stays out of closures:
//! one that is not inlined loses the vector instructions.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only what is inlined"
)]

use std::any::TypeId;

use pulp::{Scalar, Simd, WithSimd};

use crate::objective::Costs;

/// Rows handled together, so that sums back into a vector are loaded and stored once for all of them.
const TOGETHER: usize = 4;
/// Values widened to f64 at a time.
const PIECE: usize = 256;

/// Room for widened values; unaligned vector stores would straddle cache lines.
#[repr(align(64))]
struct Buffer([f64; PIECE]);

/// The number a pass is computed in.
pub(crate) trait Real: Copy + Send + Sync + 'static {
    const ZERO: Self;
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// `self * factor + sum`, rounded once where `fused`. Without the instruction a fused one is a slow library call.
    fn multiply_add(self, factor: Self, sum: Self, fused: bool) -> Self;
    /// The inner product, with several running sums per vector lane.
    fn dot<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> Self;
    /// The inner product with a raw row.
    fn product<S: Simd>(simd: S, row: &[f32], vector: &[Self]) -> Self;
}

macro_rules! dot {
    ($as_simd:ident, $zero:ident, $multiply_add:ident, $add:ident, $reduce:ident) => {
        #[inline(always)]
        fn dot<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> Self {
            let ((a, a_rest), (b, b_rest)) = (S::$as_simd(a), S::$as_simd(b));
            let ((a4, a1), (b4, b1)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
            let zero = simd.$zero(0.0);
            let (mut s0, mut s1, mut s2, mut s3) = (zero, zero, zero, zero);
            for (a, b) in a4.iter().zip(b4) {
                s0 = simd.$multiply_add(a[0], b[0], s0);
                s1 = simd.$multiply_add(a[1], b[1], s1);
                s2 = simd.$multiply_add(a[2], b[2], s2);
                s3 = simd.$multiply_add(a[3], b[3], s3);
            }
            for (a, b) in a1.iter().zip(b1) {
                s0 = simd.$multiply_add(*a, *b, s0);
            }
            let mut sum = simd.$reduce(simd.$add(simd.$add(s0, s1), simd.$add(s2, s3)));
            for (a, b) in a_rest.iter().zip(b_rest) {
                sum = a.multiply_add(*b, sum, fused::<S>());
            }
            sum
        }
    };
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn multiply_add(self, factor: Self, sum: Self, fused: bool) -> Self {
        if fused {
            self.mul_add(factor, sum)
        } else {
            self * factor + sum
        }
    }
    #[inline(always)]
    fn product<S: Simd>(simd: S, row: &[f32], vector: &[Self]) -> Self {
        Self::dot(simd, row, vector)
    }
    dot!(
        as_simd_f32s,
        splat_f32s,
        mul_add_e_f32s,
        add_f32s,
        reduce_sum_f32s
    );
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        f64::from(value)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn multiply_add(self, factor: Self, sum: Self, fused: bool) -> Self {
        if fused {
            self.mul_add(factor, sum)
        } else {
            self * factor + sum
        }
    }
    #[inline(always)]
    fn product<S: Simd>(simd: S, row: &[f32], vector: &[Self]) -> Self {
        let mut buffer = Buffer([0.0; PIECE]);
        let mut sum = 0.0;
        for (row, vector) in row.chunks(PIECE).zip(vector.chunks(PIECE)) {
            sum += Self::dot(simd, widen(row, &mut buffer), vector);
        }
        sum
    }
    dot!(
        as_simd_f64s,
        splat_f64s,
        mul_add_e_f64s,
        add_f64s,
        reduce_sum_f64s
    );
}

/// A block of raw rows with their inverse norms.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub values: &'a [f32],
    pub width: usize,
    pub inverse_norms: &'a [f64],
}

impl<'a> Rows<'a> {
    #[inline(always)]
    fn row(self, index: usize) -> &'a [f32] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    #[inline(always)]
    fn several<const N: usize>(self, first: usize) -> [&'a [f32]; N] {
        std::array::from_fn(|offset| self.row(first + offset))
    }
}

/// Totals of one block in one evaluation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub loss: f64,
    pub slope: f64,
    pub curvature: f64,
}

/// Loss, gradient and curvature terms of a block at `(weights, intercept)`; `gradient` and `pull` are added to.
pub(crate) struct Evaluate<'a> {
    pub rows: Rows<'a>,
    pub labels: &'a [bool],
    pub costs: Costs,
    pub weights: &'a [f64],
    pub intercept: f64,
    pub gradient: &'a mut [f64],
    pub pull: &'a mut [f64],
    /// Each row's `D_i`.
    pub curvatures: &'a mut [f64],
}

impl WithSimd for Evaluate<'_> {
    type Output = Totals;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Totals {
        let mut totals = Totals::default();
        let count = self.labels.len();
        let whole = count - count % TOGETHER;
        for first in (0..whole).step_by(TOGETHER) {
            self.step::<S, TOGETHER>(simd, first, &mut totals);
        }
        for first in whole..count {
            self.step::<S, 1>(simd, first, &mut totals);
        }
        totals
    }
}

impl Evaluate<'_> {
    #[inline(always)]
    fn step<S: Simd, const N: usize>(&mut self, simd: S, first: usize, totals: &mut Totals) {
        let rows = self.rows.several::<N>(first);
        let mut slopes = [0.0; N];
        let mut pulls = [0.0; N];
        for offset in 0..N {
            let index = first + offset;
            let inverse = self.rows.inverse_norms[index];
            let logit = f64::product(simd, rows[offset], self.weights) * inverse + self.intercept;
            let terms = self.costs.terms(logit, self.labels[index]);
            totals.loss += terms.loss;
            totals.slope += terms.slope;
            totals.curvature += terms.curvature;
            self.curvatures[index] = terms.curvature;
            slopes[offset] = terms.slope * inverse;
            pulls[offset] = terms.curvature * inverse;
        }
        add_twice(rows, slopes, pulls, self.gradient, self.pull, fused::<S>());
    }
}

/// `out += sum_i D_i (z_i.direction - shift) z_i` over a block.
pub(crate) struct Curve<'a, R> {
    pub rows: Rows<'a>,
    pub curvatures: &'a [f64],
    pub direction: &'a [R],
    pub shift: f64,
    pub out: &'a mut [R],
}

impl<R: Real> WithSimd for Curve<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let count = self.curvatures.len();
        let whole = count - count % TOGETHER;
        for first in (0..whole).step_by(TOGETHER) {
            self.step::<S, TOGETHER>(simd, first);
        }
        for first in whole..count {
            self.step::<S, 1>(simd, first);
        }
    }
}

impl<R: Real> Curve<'_, R> {
    #[inline(always)]
    fn step<S: Simd, const N: usize>(&mut self, simd: S, first: usize) {
        let rows = self.rows.several::<N>(first);
        let mut factors = [R::ZERO; N];
        for offset in 0..N {
            let inverse = self.rows.inverse_norms[first + offset];
            let centred =
                R::product(simd, rows[offset], self.direction).to_f64() * inverse - self.shift;
            factors[offset] = R::from_f64(self.curvatures[first + offset] * centred * inverse);
        }
        add(rows, factors, self.out, fused::<S>());
    }
}

/// Each row's logit.
pub(crate) struct Logits<'a> {
    pub rows: Rows<'a>,
    pub weights: &'a [f64],
    pub intercept: f64,
    pub out: &'a mut [f64],
}

impl WithSimd for Logits<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for index in 0..self.out.len() {
            let product = f64::product(simd, self.rows.row(index), self.weights);
            self.out[index] = product * self.rows.inverse_norms[index] + self.intercept;
        }
    }
}

/// The sum of squares of a row; not finite exactly when a value is not (f32 squares cannot overflow f64).
pub(crate) struct SumOfSquares<'a>(pub &'a [f32]);

impl WithSimd for SumOfSquares<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let mut buffer = Buffer([0.0; PIECE]);
        let mut sum = 0.0;
        for piece in self.0.chunks(PIECE) {
            let wide = widen(piece, &mut buffer);
            sum += f64::dot(simd, wide, wide);
        }
        sum
    }
}

#[inline(always)]
fn fused<S: Simd>() -> bool {
    TypeId::of::<S>() != TypeId::of::<Scalar>()
}

/// `values` in f64, in the front of `buffer`.
#[inline(always)]
fn widen<'a>(values: &[f32], buffer: &'a mut Buffer) -> &'a [f64] {
    let wide = &mut buffer.0[..values.len()];
    for (wide, &value) in wide.iter_mut().zip(values) {
        *wide = f64::from(value);
    }
    wide
}

/// `out += sum of factor * row`. A plain loop over the positions, which the compiler vectorises.
#[inline(always)]
fn add<R: Real, const N: usize>(rows: [&[f32]; N], factors: [R; N], out: &mut [R], fused: bool) {
    let rows = rows.map(|row| &row[..out.len()]);
    for position in 0..out.len() {
        let mut sum = out[position];
        for row in 0..N {
            sum = R::from_f32(rows[row][position]).multiply_add(factors[row], sum, fused);
        }
        out[position] = sum;
    }
}

/// `add` into two vectors with two sets of factors, widening the rows once.
#[inline(always)]
fn add_twice<const N: usize>(
    rows: [&[f32]; N],
    first: [f64; N],
    second: [f64; N],
    a: &mut [f64],
    b: &mut [f64],
    fused: bool,
) {
    let b = &mut b[..a.len()];
    let rows = rows.map(|row| &row[..a.len()]);
    for position in 0..a.len() {
        let (mut sum_a, mut sum_b) = (a[position], b[position]);
        for row in 0..N {
            let value = f64::from(rows[row][position]);
            sum_a = value.multiply_add(first[row], sum_a, fused);
            sum_b = value.multiply_add(second[row], sum_b, fused);
        }
        (a[position], b[position]) = (sum_a, sum_b);
    }
}
