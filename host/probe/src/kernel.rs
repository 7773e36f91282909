//! Fused passes over a block of raw f32 rows on the CPU: rows are read once for the products with a vector and, still
//! in cache, once more for the sums back into a vector. It must not know threads, tensors or the optimiser.
//!
//! A row's logit does not depend on which rows it is computed with: lanes run along the row only.

use std::any::TypeId;

use pulp::{Scalar, Simd, WithSimd};

use crate::objective::Costs;

/// Rows handled together, so that the vector's values are loaded once for all of them.
const TOGETHER: usize = 4;
/// Running sums per row.
const LANES: usize = 32;

/// The number a pass is computed in.
pub(crate) trait Real: Copy + Send + Sync + 'static {
    const ZERO: Self;
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn plus(self, other: Self) -> Self;
    /// `self * factor + sum`, rounded once where `fused`. Without the instruction a fused one is a slow library call.
    fn multiply_add(self, factor: Self, sum: Self, fused: bool) -> Self;
}

macro_rules! real {
    ($real:ty) => {
        impl Real for $real {
            const ZERO: Self = 0.0;
            #[inline(always)]
            #[expect(clippy::cast_lossless, reason = "`from` is missing for the identity")]
            fn from_f32(value: f32) -> Self {
                value as $real
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $real
            }
            #[inline(always)]
            #[expect(clippy::cast_lossless, reason = "`from` is missing for the identity")]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn multiply_add(self, factor: Self, sum: Self, fused: bool) -> Self {
                if fused {
                    self.mul_add(factor, sum)
                } else {
                    self * factor + sum
                }
            }
        }
    };
}
real!(f32);
real!(f64);

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
    fn with_simd<S: Simd>(mut self, _: S) -> Totals {
        let fused = fused::<S>();
        let mut totals = Totals::default();
        let count = self.labels.len();
        let whole = count - count % TOGETHER;
        for first in (0..whole).step_by(TOGETHER) {
            self.step::<TOGETHER>(first, fused, &mut totals);
        }
        for first in whole..count {
            self.step::<1>(first, fused, &mut totals);
        }
        totals
    }
}

impl Evaluate<'_> {
    #[inline(always)]
    fn step<const N: usize>(&mut self, first: usize, fused: bool, totals: &mut Totals) {
        let rows = self.rows.several::<N>(first);
        let products = products::<f64, N>(rows, self.weights, fused);
        let mut slopes = [0.0; N];
        let mut pulls = [0.0; N];
        for offset in 0..N {
            let index = first + offset;
            let inverse = self.rows.inverse_norms[index];
            let terms = self.costs.terms(
                products[offset] * inverse + self.intercept,
                self.labels[index],
            );
            totals.loss += terms.loss;
            totals.slope += terms.slope;
            totals.curvature += terms.curvature;
            self.curvatures[index] = terms.curvature;
            slopes[offset] = terms.slope * inverse;
            pulls[offset] = terms.curvature * inverse;
        }
        add_twice(rows, slopes, pulls, self.gradient, self.pull, fused);
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
    fn with_simd<S: Simd>(mut self, _: S) {
        let fused = fused::<S>();
        let count = self.curvatures.len();
        let whole = count - count % TOGETHER;
        for first in (0..whole).step_by(TOGETHER) {
            self.step::<TOGETHER>(first, fused);
        }
        for first in whole..count {
            self.step::<1>(first, fused);
        }
    }
}

impl<R: Real> Curve<'_, R> {
    #[inline(always)]
    fn step<const N: usize>(&mut self, first: usize, fused: bool) {
        let rows = self.rows.several::<N>(first);
        let products = products::<R, N>(rows, self.direction, fused);
        let mut factors = [R::ZERO; N];
        for offset in 0..N {
            let inverse = self.rows.inverse_norms[first + offset];
            let centred = products[offset].to_f64() * inverse - self.shift;
            factors[offset] = R::from_f64(self.curvatures[first + offset] * centred * inverse);
        }
        add(rows, factors, self.out, fused);
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
    fn with_simd<S: Simd>(self, _: S) {
        for (index, out) in self.out.iter_mut().enumerate() {
            let [product] = products::<f64, 1>([self.rows.row(index)], self.weights, fused::<S>());
            *out = product * self.rows.inverse_norms[index] + self.intercept;
        }
    }
}

/// The sum of squares of a row; not finite exactly when a value is not (f32 squares cannot overflow f64).
pub(crate) struct SumOfSquares<'a>(pub &'a [f32]);

impl WithSimd for SumOfSquares<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        for chunk in chunks {
            for lane in 0..LANES {
                let value = f64::from(chunk[lane]);
                sums[lane] = value.multiply_add(value, sums[lane], fused::<S>());
            }
        }
        let mut sum = fold(sums);
        for &value in rest {
            sum = f64::from(value).multiply_add(f64::from(value), sum, fused::<S>());
        }
        sum
    }
}

#[inline(always)]
fn fused<S: Simd>() -> bool {
    TypeId::of::<S>() != TypeId::of::<Scalar>()
}

/// Adds the lanes pairwise.
#[inline(always)]
fn fold<R: Real>(mut sums: [R; LANES]) -> R {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] = sums[lane].plus(sums[lane + half]);
        }
        half /= 2;
    }
    sums[0]
}

/// The product of each row with `vector`, one row after the other: memory is then read in one forward stream.
#[inline(always)]
fn products<R: Real, const N: usize>(rows: [&[f32]; N], vector: &[R], fused: bool) -> [R; N] {
    let mut out = [R::ZERO; N];
    for row in 0..N {
        out[row] = product(rows[row], vector, fused);
    }
    out
}

#[inline(always)]
fn product<R: Real>(row: &[f32], vector: &[R], fused: bool) -> R {
    let (values, values_rest) = row.as_chunks::<LANES>();
    let (factors, factors_rest) = vector.as_chunks::<LANES>();
    let mut sums = [R::ZERO; LANES];
    for (values, factors) in values.iter().zip(factors) {
        for lane in 0..LANES {
            sums[lane] = R::from_f32(values[lane]).multiply_add(factors[lane], sums[lane], fused);
        }
    }
    let mut sum = fold(sums);
    for (value, factor) in values_rest.iter().zip(factors_rest) {
        sum = R::from_f32(*value).multiply_add(*factor, sum, fused);
    }
    sum
}

/// `out += sum of factor * row`. A plain loop: in lanes like `products` the compiler would vectorise across them.
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

/// `add` into two vectors with two sets of factors, reading the rows once.
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
