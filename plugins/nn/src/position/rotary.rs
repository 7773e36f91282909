//! Rotary positions: on a plane, as DINOv3 has them (patches only, angles from coordinates in [-1, 1]), or by tables of one's own.

use crate::kernel::op;
use candle_core::{D, DType, Device, Result, Tensor};
use std::f64::consts::TAU;

/// Cosines and sines for a grid of patches; tokens before the patches are not turned.
#[derive(Debug, Clone)]
pub struct Rotary {
    /// (places, head_dim), f32.
    cos: Tensor,
    sin: Tensor,
}

impl Rotary {
    /// For a grid of (rows, columns). The angle of patch i of n along a side is `2 pi c theta^(-4k / head_dim)` with
    /// `c = 2 (i + 0.5) / n - 1` and k below `head_dim / 4`; first those of the row, then those of the column, all of it twice.
    pub fn axial(
        grid: (usize, usize),
        head_dim: usize,
        theta: f64,
        device: &Device,
    ) -> Result<Self> {
        if !head_dim.is_multiple_of(4) {
            candle_core::bail!(
                "Rotary positions on a plane need heads of a multiple of 4 wide: found {head_dim}"
            );
        }
        let (rows, columns) = grid;
        let quarter = head_dim / 4;
        let mut cos = Vec::with_capacity(rows * columns * head_dim);
        let mut sin = Vec::with_capacity(rows * columns * head_dim);
        let coordinate = |i: usize, n: usize| 2.0 * ((i as f64 + 0.5) / n as f64) - 1.0;
        for row in 0..rows {
            for column in 0..columns {
                for _ in 0..2 {
                    for c in [coordinate(row, rows), coordinate(column, columns)] {
                        for k in 0..quarter {
                            let angle = TAU * c * theta.powf(-4.0 * k as f64 / head_dim as f64);
                            cos.push(angle.cos() as f32);
                            sin.push(angle.sin() as f32);
                        }
                    }
                }
            }
        }
        let shape = (rows * columns, head_dim);
        Ok(Self {
            cos: Tensor::from_vec(cos, shape, device)?,
            sin: Tensor::from_vec(sin, shape, device)?,
        })
    }

    /// From tables of shape (places, head_dim), f32: a language model's, say, whose angles repeat in both halves of a head.
    pub fn from_tables(cos: Tensor, sin: Tensor) -> Self {
        Self { cos, sin }
    }

    /// Turn queries or keys of shape (batch, tokens, heads * head_dim). Takes the tensor, whose memory may hold the result.
    pub fn apply(&self, x: Tensor, head_dim: usize) -> Result<Tensor> {
        let (batch, tokens, dim) = x.dims3()?;
        let places = self.cos.dim(0)?;
        let Some(prefix) = tokens.checked_sub(places) else {
            candle_core::bail!(
                "More places than tokens: expected at most {tokens}, found {places}"
            );
        };
        if op::fused(&x) && x.is_contiguous() {
            x.inplace_op3(&self.cos, &self.sin, &op::Rotate { tokens })?;
            return Ok(x);
        }
        let kind = x.dtype();
        let head = x.narrow(1, 0, prefix)?;
        let rest = x
            .narrow(1, prefix, places)?
            .to_dtype(DType::F32)?
            .reshape((batch, places, dim / head_dim, head_dim))?;
        let half = head_dim / 2;
        let low = rest.narrow(D::Minus1, 0, half)?;
        let high = rest.narrow(D::Minus1, half, half)?;
        let turned = Tensor::cat(&[&high.neg()?, &low], D::Minus1)?;
        let wide = (places, 1, head_dim);
        let cos = self.cos.reshape(wide)?;
        let sin = self.sin.reshape(wide)?;
        let rest = (rest.broadcast_mul(&cos)? + turned.broadcast_mul(&sin)?)?
            .reshape((batch, places, dim))?
            .to_dtype(kind)?;
        Tensor::cat(&[&head, &rest], 1)
    }
}
