//! The steps behind candle's interface for operations of one's own. CPU only: layers choose.

use super::{for_rows, row};
use crate::Activation;
use candle_core::{
    CpuStorage, CustomOp3, InplaceOp1, InplaceOp2, InplaceOp3, Layout, Result, Shape, Tensor, bail,
};

/// Whether the fused forms apply: f32 on the CPU, and no gradient is wanted.
pub(crate) fn fused(x: &Tensor) -> bool {
    x.device().is_cpu() && x.dtype() == candle_core::DType::F32 && !wants_gradient(x)
}

/// Whether `x` must be worked on by operations that have gradients.
pub(crate) fn wants_gradient(x: &Tensor) -> bool {
    x.track_op() || super::form::is_training()
}

/// Softmax over the last axis, not in place: candle's fused kernel, which cuts gradients, or basic operations.
pub(crate) fn softmax(x: &Tensor) -> Result<Tensor> {
    if wants_gradient(x) {
        candle_nn::ops::softmax(x, candle_core::D::Minus1)
    } else {
        candle_nn::ops::softmax_last_dim(x)
    }
}

fn read<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let (CpuStorage::F32(values), Some((from, to))) = (storage, layout.contiguous_offsets()) else {
        bail!("a fused step wants contiguous f32 values")
    };
    Ok(&values[from..to])
}

fn write<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let (CpuStorage::F32(values), Some((from, to))) = (storage, layout.contiguous_offsets()) else {
        bail!("a fused step wants contiguous f32 values")
    };
    Ok(&mut values[from..to])
}

fn width(layout: &Layout) -> usize {
    layout.dims().last().copied().unwrap_or(1)
}

/// `y = activation(y + bias)`.
pub(crate) struct BiasActivate(pub(crate) Option<Activation>);

impl InplaceOp2 for BiasActivate {
    fn name(&self) -> &'static str {
        "bias-activate"
    }

    fn cpu_fwd(
        &self,
        y: &mut CpuStorage,
        layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<()> {
        let step = row::BiasActivate {
            bias: read(bias, bias_layout)?,
            activation: self.0,
        };
        for_rows(write(y, layout)?, width(layout), step);
        Ok(())
    }
}

/// `y = x + y`.
pub(crate) struct Add;

impl InplaceOp2 for Add {
    fn name(&self) -> &'static str {
        "residual"
    }

    fn cpu_fwd(
        &self,
        y: &mut CpuStorage,
        layout: &Layout,
        x: &CpuStorage,
        x_layout: &Layout,
    ) -> Result<()> {
        let step = row::Residual {
            source: read(x, x_layout)?,
            gamma: &[],
        };
        for_rows(write(y, layout)?, width(layout), step);
        Ok(())
    }
}

/// `y = x + gamma * y`.
pub(crate) struct ScaledAdd;

impl InplaceOp3 for ScaledAdd {
    fn name(&self) -> &'static str {
        "scaled-residual"
    }

    fn cpu_fwd(
        &self,
        y: &mut CpuStorage,
        layout: &Layout,
        x: &CpuStorage,
        x_layout: &Layout,
        gamma: &CpuStorage,
        gamma_layout: &Layout,
    ) -> Result<()> {
        let step = row::Residual {
            source: read(x, x_layout)?,
            gamma: read(gamma, gamma_layout)?,
        };
        for_rows(write(y, layout)?, width(layout), step);
        Ok(())
    }
}

/// `softmax(scale * y)` over the last axis.
pub(crate) struct Softmax {
    pub(crate) scale: f32,
}

impl InplaceOp1 for Softmax {
    fn name(&self) -> &'static str {
        "scaled-softmax"
    }

    fn cpu_fwd(&self, y: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let step = row::Softmax { scale: self.scale };
        for_rows(write(y, layout)?, width(layout), step);
        Ok(())
    }
}

/// Rotates `y` of shape (batch, tokens, heads * head_dim) by tables of shape (places, head_dim).
pub(crate) struct Rotate {
    pub(crate) tokens: usize,
}

impl InplaceOp3 for Rotate {
    fn name(&self) -> &'static str {
        "rotate"
    }

    fn cpu_fwd(
        &self,
        y: &mut CpuStorage,
        layout: &Layout,
        cos: &CpuStorage,
        cos_layout: &Layout,
        sin: &CpuStorage,
        sin_layout: &Layout,
    ) -> Result<()> {
        let step = row::Rotate {
            cos: read(cos, cos_layout)?,
            sin: read(sin, sin_layout)?,
            head_dim: width(cos_layout),
            tokens: self.tokens,
        };
        for_rows(write(y, layout)?, width(layout), step);
        Ok(())
    }
}

/// Layer norm over the last axis.
pub(crate) struct Norm {
    pub(crate) eps: f32,
}

impl CustomOp3 for Norm {
    fn name(&self) -> &'static str {
        "fused-layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let source = read(x, layout)?;
        let mut out = vec![0.0; source.len()];
        let step = row::Norm {
            source,
            weight: read(weight, weight_layout)?,
            bias: read(bias, bias_layout)?,
            eps: self.eps,
        };
        for_rows(&mut out, width(layout), step);
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }
}
