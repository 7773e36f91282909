//! Keys and values of what a sequence has seen. Knows no layers' work.

use super::DecoderConfig;
use candle_core::{DType, Device, Result, Tensor, bail};

/// Keys and values of one sequence, for every layer; memory for `capacity` tokens is taken at once.
#[derive(Debug)]
pub struct Cache {
    /// (kv_heads, capacity, head_dim) each.
    layers: Vec<(Tensor, Tensor)>,
    length: usize,
    capacity: usize,
}

impl Cache {
    /// An empty cache for `capacity` tokens.
    pub fn new(
        config: &DecoderConfig,
        capacity: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        let shape = (config.kv_heads, capacity, config.head_dim);
        let layers = config
            .layers
            .iter()
            .map(|_| {
                Ok((
                    Tensor::zeros(shape, dtype, device)?,
                    Tensor::zeros(shape, dtype, device)?,
                ))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            layers,
            length: 0,
            capacity,
        })
    }

    /// A copy with room for `capacity` tokens: conversations that begin alike branch off here.
    pub fn branch(&self, capacity: usize) -> Result<Self> {
        if capacity < self.length {
            bail!("a cache of {} tokens cannot hold {}", capacity, self.length);
        }
        let copy = |from: &Tensor| {
            let (heads, _, width) = from.dims3()?;
            let into = Tensor::zeros((heads, capacity, width), from.dtype(), from.device())?;
            if self.length > 0 {
                into.slice_set(&from.narrow(1, 0, self.length)?.contiguous()?, 1, 0)?;
            }
            Ok::<_, candle_core::Error>(into)
        };
        let layers = self
            .layers
            .iter()
            .map(|(key, value)| Ok((copy(key)?, copy(value)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            layers,
            length: self.length,
            capacity,
        })
    }

    /// Tokens seen.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Tokens there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Write keys and values of new tokens, (kv_heads, new, head_dim) each, behind those of `layer`; all of that layer's come back, as
    /// views.
    pub(super) fn extend(
        &mut self,
        layer: usize,
        key: &Tensor,
        value: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let new = key.dim(1)?;
        let all = self.length + new;
        if all > self.capacity {
            bail!("a cache for {} tokens is full", self.capacity);
        }
        let (keys, values) = &self.layers[layer];
        keys.slice_set(&key.contiguous()?, 1, self.length)?;
        values.slice_set(&value.contiguous()?, 1, self.length)?;
        Ok((keys.narrow(1, 0, all)?, values.narrow(1, 0, all)?))
    }

    /// Count `new` tokens, once every layer has them.
    pub(super) fn advance(&mut self, new: usize) {
        self.length += new;
    }
}
