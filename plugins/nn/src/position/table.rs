//! Learnt position tables on a grid, resampled as PyTorch does it: bicubic with a = -0.75, edges repeated, pixel centres at halves
//! (`align_corners=False`), no antialiasing even when the grid shrinks.

use candle_core::{Device, Result, Tensor};

/// Which scale the coordinates are taken with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interpolation {
    /// From the sizes: `interpolate(size=...)`, as transformers does for DINOv2.
    Size,
    /// From a factor of `(target + offset) / source`: `interpolate(scale_factor=...)`, as DINO and its heirs do with an offset of
    /// 0.1 against rounding; coordinates shift by a few hundredths.
    Factor {
        /// Added to the target's side before dividing.
        offset: f64,
    },
}

/// Resample `table`, (rows * columns, dim), from one grid to another; both (rows, columns). Equal grids come back as they are.
/// Weights of both axes are matrices, so the work is two products on the table's device, in its type.
pub fn interpolate(
    table: &Tensor,
    from: (usize, usize),
    to: (usize, usize),
    how: Interpolation,
) -> Result<Tensor> {
    let (places, dim) = table.dims2()?;
    if places != from.0 * from.1 {
        candle_core::bail!(
            "A position table does not fit its grid: expected {} x {} rows, found {places}",
            from.0,
            from.1
        );
    }
    if from == to {
        return Ok(table.clone());
    }
    let kind = table.dtype();
    let device = table.device();
    let wide = table.to_dtype(candle_core::DType::F32)?;
    let down = axis(from.0, to.0, how, device)?;
    let across = axis(from.1, to.1, how, device)?;
    // (to_rows, from_rows) x (from_rows, from_columns * dim)
    let rows = down.matmul(&wide.reshape((from.0, from.1 * dim))?)?;
    // columns to the front: (to_columns, from_columns) x (from_columns, to_rows * dim)
    let columns = rows
        .reshape((to.0, from.1, dim))?
        .transpose(0, 1)?
        .reshape((from.1, to.0 * dim))?;
    across
        .matmul(&columns)?
        .reshape((to.1, to.0, dim))?
        .transpose(0, 1)?
        .reshape((to.0 * to.1, dim))?
        .to_dtype(kind)
}

/// Weights of one axis, (to, from).
fn axis(from: usize, to: usize, how: Interpolation, device: &Device) -> Result<Tensor> {
    let scale = match how {
        Interpolation::Size => from as f64 / to as f64,
        Interpolation::Factor { offset } => from as f64 / (to as f64 + offset),
    };
    let mut weights = vec![0.0_f32; to * from];
    for (target, row) in weights.chunks_exact_mut(from.max(1)).enumerate() {
        let centre = scale * (target as f64 + 0.5) - 0.5;
        let first = centre.floor();
        for tap in -1..=2_i64 {
            let weight = cubic(centre - first - tap as f64);
            let place = (first as i64 + tap).clamp(0, from as i64 - 1);
            row[place as usize] += weight as f32;
        }
    }
    Tensor::from_vec(weights, (to, from), device)
}

/// Keys' kernel with a = -0.75.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    let x = x.abs();
    if x <= 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    } else {
        0.0
    }
}
