//! Cutting a picture into patches and embedding each.

use super::linear::product;
use crate::{Init, LoadError, Weights};
use candle_core::{Result, Tensor};

/// A convolution whose stride is its size, as the product that it is.
#[derive(Debug, Clone)]
pub struct PatchEmbedding {
    /// (dim, channels * size * size).
    weight: Tensor,
    bias: Option<Tensor>,
    channels: usize,
    size: usize,
}

impl PatchEmbedding {
    /// `weight` of shape (dim, channels, size, size) and, where asked for, `bias` of shape (dim), at a place.
    pub fn load(
        at: &Weights,
        channels: usize,
        size: usize,
        dim: usize,
        bias: bool,
    ) -> std::result::Result<Self, LoadError> {
        let weight = at.get("weight", &[dim, channels, size, size], Init::Normal(0.02))?;
        let bias = bias
            .then(|| at.get("bias", &[dim], Init::Zeros))
            .transpose()?;
        Ok(Self {
            weight: weight.reshape((dim, channels * size * size))?,
            bias,
            channels,
            size,
        })
    }

    /// (batch, channels, height, width) to (batch, rows * columns, dim), row by row. What does not fill a patch is left out, as by a
    /// convolution.
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let (batch, channels, height, width) = pixels.dims4()?;
        if channels != self.channels {
            candle_core::bail!(
                "Pixels have the wrong number of channels: expected {}, found {channels}",
                self.channels
            );
        }
        let (rows, columns) = (height / self.size, width / self.size);
        let whole = pixels
            .narrow(2, 0, rows * self.size)?
            .narrow(3, 0, columns * self.size)?
            .contiguous()?;
        let patches = whole
            .reshape((batch, channels, rows, self.size, columns, self.size))?
            .permute((0, 2, 4, 1, 3, 5))?
            .reshape((batch * rows * columns, channels * self.size * self.size))?;
        let mut embedded = product(&patches, &self.weight.t()?)?;
        if let Some(bias) = &self.bias {
            embedded = embedded.broadcast_add(bias)?;
        }
        embedded.reshape((batch, rows * columns, ()))
    }
}
