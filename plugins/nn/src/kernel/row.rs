//! The steps: bias and activation, norm, residual, softmax, rotation. Each on one row.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only what is inlined"
)]

use super::{RowStep, maths};
use crate::Activation;

/// Running sums of a reduction, so that it vectorises; their number fixes the order of additions on every machine.
const LANES: usize = 16;

#[inline(always)]
fn total(row: &[f32], value: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (chunks, tail) = row.as_chunks::<LANES>();
    let mut rest = 0.0;
    for &x in tail {
        rest += value(x);
    }
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += value(x);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0] + rest
}

/// `activation(row + bias)`.
#[derive(Clone, Copy)]
pub(crate) struct BiasActivate<'a> {
    pub(crate) bias: &'a [f32],
    pub(crate) activation: Option<Activation>,
}

impl RowStep for BiasActivate<'_> {
    #[inline(always)]
    fn apply(self, _: usize, row: &mut [f32]) {
        let pairs = row.iter_mut().zip(self.bias);
        match self.activation {
            None => pairs.for_each(|(x, b)| *x += b),
            Some(Activation::Gelu) => pairs.for_each(|(x, b)| {
                let v = *x + b;
                *x = 0.5 * v * (1.0 + maths::erf(v * std::f32::consts::FRAC_1_SQRT_2));
            }),
            Some(Activation::GeluTanh) => pairs.for_each(|(x, b)| {
                // sqrt(2 / pi)
                const FACTOR: f32 = 0.797_884_6;
                let v = *x + b;
                *x = 0.5 * v * (1.0 + maths::tanh(FACTOR * (v + 0.044715 * v * v * v)));
            }),
            Some(Activation::QuickGelu) => pairs.for_each(|(x, b)| {
                let v = *x + b;
                *x = v * maths::sigmoid(1.702 * v);
            }),
            Some(Activation::Silu) => pairs.for_each(|(x, b)| {
                let v = *x + b;
                *x = v * maths::sigmoid(v);
            }),
            Some(Activation::Relu) => pairs.for_each(|(x, b)| *x = (*x + b).max(0.0)),
        }
    }
}

/// Layer norm into the row from `source`.
#[derive(Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub(crate) source: &'a [f32],
    pub(crate) weight: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) eps: f32,
}

impl RowStep for Norm<'_> {
    #[inline(always)]
    fn apply(self, index: usize, row: &mut [f32]) {
        let width = row.len();
        let source = &self.source[index * width..][..width];
        let mean = total(source, |x| x) / width as f32;
        // Around the mean, not from the mean of squares, which cancels.
        let variance = total(source, |x| (x - mean) * (x - mean)) / width as f32;
        let scale = 1.0 / (variance + self.eps).sqrt();
        let affine = self.weight.iter().zip(self.bias);
        for ((y, x), (w, b)) in row.iter_mut().zip(source).zip(affine) {
            *y = (x - mean) * scale * w + b;
        }
    }
}

/// `source + gamma * row`, with `gamma` empty for 1.
#[derive(Clone, Copy)]
pub(crate) struct Residual<'a> {
    pub(crate) source: &'a [f32],
    pub(crate) gamma: &'a [f32],
}

impl RowStep for Residual<'_> {
    #[inline(always)]
    fn apply(self, index: usize, row: &mut [f32]) {
        let source = &self.source[index * row.len()..][..row.len()];
        if self.gamma.is_empty() {
            row.iter_mut().zip(source).for_each(|(y, x)| *y += x);
        } else {
            let pairs = row.iter_mut().zip(source).zip(self.gamma);
            pairs.for_each(|((y, x), g)| *y = x + g * *y);
        }
    }
}

/// `softmax(scale * row)`.
#[derive(Clone, Copy)]
pub(crate) struct Softmax {
    pub(crate) scale: f32,
}

impl RowStep for Softmax {
    #[inline(always)]
    fn apply(self, _: usize, row: &mut [f32]) {
        let mut highs = [f32::NEG_INFINITY; LANES];
        let (chunks, tail) = row.as_chunks::<LANES>();
        let mut high = f32::NEG_INFINITY;
        for &x in tail {
            high = high.max(x);
        }
        for chunk in chunks {
            for (high, &x) in highs.iter_mut().zip(chunk) {
                *high = if x > *high { x } else { *high };
            }
        }
        for &x in &highs {
            high = high.max(x);
        }
        // A row that a mask empties wholly stays finite.
        let high = if high == f32::NEG_INFINITY { 0.0 } else { high };
        for x in row.iter_mut() {
            *x = maths::exp(self.scale * (*x - high));
        }
        let inverse = 1.0 / total(row, |x| x);
        for x in row.iter_mut() {
            *x *= inverse;
        }
    }
}

/// Rotary embedding of a row of `heads` heads: `x * cos + rotate_half(x) * sin`. Row `index` is token `index % tokens`; the first
/// `tokens - len` of them, which have no place in the picture, stay as they are.
#[derive(Clone, Copy)]
pub(crate) struct Rotate<'a> {
    pub(crate) cos: &'a [f32],
    pub(crate) sin: &'a [f32],
    pub(crate) head_dim: usize,
    pub(crate) tokens: usize,
}

impl RowStep for Rotate<'_> {
    #[inline(always)]
    fn apply(self, index: usize, row: &mut [f32]) {
        let placed = self.cos.len() / self.head_dim;
        let Some(place) = (index % self.tokens).checked_sub(self.tokens - placed) else {
            return;
        };
        let cos = &self.cos[place * self.head_dim..][..self.head_dim];
        let sin = &self.sin[place * self.head_dim..][..self.head_dim];
        let half = self.head_dim / 2;
        for head in row.chunks_exact_mut(self.head_dim) {
            let (low, high) = head.split_at_mut(half);
            let first = cos[..half].iter().zip(&sin[..half]);
            let second = cos[half..].iter().zip(&sin[half..]);
            let pairs = low.iter_mut().zip(high).zip(first.zip(second));
            for ((a, b), ((cos_a, sin_a), (cos_b, sin_b))) in pairs {
                (*a, *b) = (*a * cos_a - *b * sin_a, *b * cos_b + *a * sin_b);
            }
        }
    }
}
