//! Fused steps on rows of f32 on the CPU, vectorised for the machine at hand, rows shared out to threads. A row's values do not depend on
//! its neighbours or on the number of threads. Knows slices; [`op`] puts them behind tensors.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only what is inlined"
)]

pub(crate) mod attention;
pub(crate) mod form;
mod maths;
pub(crate) mod op;
pub(crate) mod row;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Values below which threads cost more than they save.
const PARALLEL: usize = 1 << 15;
/// Values of the rows that one task works on: fits the first cache.
const PIECE: usize = 1 << 12;

/// A step on one row, given the row's index.
pub(crate) trait RowStep: Copy + Sync {
    /// Change `row` in place. Must be `#[inline(always)]`, as must be all that it calls.
    fn apply(self, index: usize, row: &mut [f32]);
}

struct Rows<'a, R> {
    data: &'a mut [f32],
    width: usize,
    first: usize,
    step: R,
}

impl<R: RowStep> WithSimd for Rows<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let rows = self.data.chunks_exact_mut(self.width);
        for (index, row) in (self.first..).zip(rows) {
            self.step.apply(index, row);
        }
    }
}

/// Run a step on every row of `width` values.
pub(crate) fn for_rows<R: RowStep>(data: &mut [f32], width: usize, step: R) {
    if width == 0 {
        return;
    }
    let arch = Arch::new();
    let run = |first: usize, data: &mut [f32]| {
        arch.dispatch(Rows {
            data,
            width,
            first,
            step,
        });
    };
    if data.len() < PARALLEL {
        run(0, data);
        return;
    }
    let rows = (PIECE / width).max(1);
    data.par_chunks_mut(rows * width)
        .enumerate()
        .for_each(|(piece, data)| run(piece * rows, data));
}
