//! Scaled dot-product attention of f32 on the CPU: scores of a few queries at a time, kept in the first cache from product to product.
//!
//! Keys are turned and values copied once per head into rows of whole vectors; then each block of queries is on its own. A query's
//! result does not depend on its neighbours, on the number of threads or on the block it falls into.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only what is inlined"
)]

use super::RowStep;
use super::row::Softmax;
use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, bail};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Rows are padded to whole vectors of the widest kind.
const PAD: usize = 16;
/// Queries whose running sums stay in registers together.
const ROWS: usize = 4;
/// Vectors of sums for each of them.
const WIDE: usize = 4;
/// Queries in one task: enough for their heads' keys to be read from cache more than once.
const BLOCK: usize = 64;

/// `softmax(scale * Q K^T) V` for queries (batch, heads, n, head_dim), keys and values (batch, heads, m, head_dim) of any strides but
/// the last, which is 1; the result is (batch, n, heads * head_dim).
pub(crate) struct Attention {
    pub(crate) scale: f32,
}

/// A tensor of four axes, the last of stride 1.
#[derive(Clone, Copy)]
struct View<'a> {
    values: &'a [f32],
    dims: [usize; 4],
    strides: [usize; 3],
    start: usize,
}

impl<'a> View<'a> {
    fn new(storage: &'a CpuStorage, layout: &Layout) -> Result<Self> {
        let (CpuStorage::F32(values), &[a, b, c, d], &[x, y, z, 1]) =
            (storage, layout.dims(), layout.stride())
        else {
            bail!("fused attention wants f32 values of four axes, the last without gaps")
        };
        Ok(Self {
            values,
            dims: [a, b, c, d],
            strides: [x, y, z],
            start: layout.start_offset(),
        })
    }

    #[inline(always)]
    fn row(&self, image: usize, head: usize, row: usize) -> &'a [f32] {
        let [x, y, z] = self.strides;
        let from = self.start + image * x + head * y + row * z;
        &self.values[from..from + self.dims[3]]
    }
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "fused-attention"
    }

    fn cpu_fwd(
        &self,
        query: &CpuStorage,
        query_layout: &Layout,
        key: &CpuStorage,
        key_layout: &Layout,
        value: &CpuStorage,
        value_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let query = View::new(query, query_layout)?;
        let key = View::new(key, key_layout)?;
        let value = View::new(value, value_layout)?;
        let [batch, heads, tokens, head_dim] = query.dims;
        let others = key.dims[2];
        if key.dims != value.dims || key.dims != [batch, heads, others, head_dim] {
            bail!(
                "queries {:?}, keys {:?} and values {:?} do not fit",
                query.dims,
                key.dims,
                value.dims
            )
        }
        let width = heads * head_dim;
        let mut out = vec![0.0; batch * tokens * width];
        if !out.is_empty() && others > 0 {
            let prepared = Prepared::new(key, value);
            let arch = Arch::new();
            let images = out.par_chunks_mut(tokens * width).enumerate();
            images.for_each(|(image, out)| {
                let blocks = out.par_chunks_mut(BLOCK * width).enumerate();
                blocks.for_each(|(block, out)| {
                    arch.dispatch(Block {
                        query,
                        prepared: &prepared,
                        image,
                        first: block * BLOCK,
                        scale: self.scale,
                        out,
                    });
                });
            });
        }
        Ok((CpuStorage::F32(out), Shape::from((batch, tokens, width))))
    }
}

/// Keys turned, (head_dim, m padded), and values, (m, head_dim padded), of every head.
struct Prepared {
    keys: Vec<f32>,
    values: Vec<f32>,
    others: usize,
    keys_wide: usize,
    values_wide: usize,
}

impl Prepared {
    fn new(key: View<'_>, value: View<'_>) -> Self {
        let [batch, heads, others, head_dim] = key.dims;
        let keys_wide = others.next_multiple_of(PAD);
        let values_wide = head_dim.next_multiple_of(PAD);
        let mut keys = vec![0.0; batch * heads * head_dim * keys_wide];
        let mut values = vec![0.0; batch * heads * others * values_wide];
        let each = keys
            .par_chunks_mut(head_dim * keys_wide)
            .zip(values.par_chunks_mut(others * values_wide))
            .enumerate();
        each.for_each(|(at, (keys, values))| {
            let (image, head) = (at / heads, at % heads);
            for other in 0..others {
                for (d, x) in key.row(image, head, other).iter().enumerate() {
                    keys[d * keys_wide + other] = *x;
                }
                values[other * values_wide..][..head_dim]
                    .copy_from_slice(value.row(image, head, other));
            }
        });
        Self {
            keys,
            values,
            others,
            keys_wide,
            values_wide,
        }
    }
}

/// Some queries of an image, all heads.
struct Block<'a> {
    query: View<'a>,
    prepared: &'a Prepared,
    image: usize,
    first: usize,
    scale: f32,
    out: &'a mut [f32],
}

impl WithSimd for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [_, heads, _, head_dim] = self.query.dims;
        let of = self.prepared;
        let width = heads * head_dim;
        let rows = self.out.len() / width;
        let mut scores = vec![0.0; ROWS * of.keys_wide];
        let mut sums = vec![0.0; ROWS * of.values_wide];
        let softmax = Softmax { scale: self.scale };
        for head in 0..heads {
            let at = self.image * heads + head;
            let keys = &of.keys[at * head_dim * of.keys_wide..][..head_dim * of.keys_wide];
            let values =
                &of.values[at * of.others * of.values_wide..][..of.others * of.values_wide];
            for from in (0..rows).step_by(ROWS) {
                let count = ROWS.min(rows - from);
                // A short last group repeats its last query, so that every row is summed in one way.
                let row = |i: usize| from + i.min(count - 1);
                let queries: [&[f32]; ROWS] =
                    std::array::from_fn(|i| self.query.row(self.image, head, self.first + row(i)));
                product(simd, queries, keys, of.keys_wide, &mut scores);
                let mut weights = [&[][..]; ROWS];
                for (weights, scores) in weights
                    .iter_mut()
                    .zip(scores.chunks_exact_mut(of.keys_wide))
                {
                    let scores = &mut scores[..of.others];
                    softmax.apply(0, scores);
                    *weights = scores;
                }
                product(simd, weights, values, of.values_wide, &mut sums);
                for i in 0..count {
                    let to = (from + i) * width + head * head_dim;
                    self.out[to..to + head_dim]
                        .copy_from_slice(&sums[i * of.values_wide..][..head_dim]);
                }
            }
        }
    }
}

/// `out[i] = left[i] . right` for `ROWS` rows at once: `right` has rows of `wide` values, as many as `left` has values in a row.
#[inline(always)]
fn product<S: Simd>(simd: S, left: [&[f32]; ROWS], right: &[f32], wide: usize, out: &mut [f32]) {
    let vectors = wide / S::F32_LANES;
    let mut column = 0;
    while column + WIDE <= vectors {
        tile::<S, WIDE>(simd, left, right, wide, column, out);
        column += WIDE;
    }
    while column < vectors {
        tile::<S, 1>(simd, left, right, wide, column, out);
        column += 1;
    }
}

/// `N` vectors of the result, from vector `column` on.
#[inline(always)]
fn tile<S: Simd, const N: usize>(
    simd: S,
    left: [&[f32]; ROWS],
    right: &[f32],
    wide: usize,
    column: usize,
    out: &mut [f32],
) {
    let lanes = S::F32_LANES;
    let from = column * lanes;
    let mut sums = [[simd.splat_f32s(0.0); N]; ROWS];
    let inner = left[0].len();
    let left: [&[f32]; ROWS] = left.map(|row| &row[..inner]);
    for (k, row) in right.chunks_exact(wide).take(inner).enumerate() {
        let (vectors, _) = S::as_simd_f32s(&row[from..from + N * lanes]);
        for i in 0..ROWS {
            let x = simd.splat_f32s(left[i][k]);
            for n in 0..N {
                sums[i][n] = simd.mul_add_e_f32s(x, vectors[n], sums[i][n]);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate() {
        let (vectors, _) = S::as_mut_simd_f32s(&mut out[i * wide + from..][..N * lanes]);
        vectors.copy_from_slice(sums);
    }
}
