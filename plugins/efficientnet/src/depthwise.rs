//! The depthwise convolution written out for the CPU: rows of places shared out to threads, channels in blocks that stay in registers.
//! candle's own convolution makes one picture of each channel first, which costs more than the sums themselves.

use crate::convolution::Side;
use focus_nn::candle::{CpuStorage, CustomOp3, Layout, Result, Shape, bail};
use rayon::prelude::*;

/// Channels summed at once.
const LANES: usize = 32;

/// `y = relu6(x * kernels + bias)` for each channel by itself. Arguments: pictures (batch, height, width, channels), kernels
/// (kernel * kernel, channels), bias (channels).
pub(crate) struct Direct {
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
}

fn read<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let (CpuStorage::F32(values), Some((from, to))) = (storage, layout.contiguous_offsets()) else {
        bail!("the direct convolution wants contiguous f32 values")
    };
    Ok(&values[from..to])
}

impl CustomOp3 for Direct {
    fn name(&self) -> &'static str {
        "depthwise"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        kernels: &CpuStorage,
        kernels_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, height, width, channels) = x_layout.shape().dims4()?;
        let values = read(x, x_layout)?;
        let plane = Plane {
            width,
            channels,
            kernels: read(kernels, kernels_layout)?,
            bias: read(bias, bias_layout)?,
            kernel: self.kernel,
            stride: self.stride,
            columns: Side::same(width, self.kernel, self.stride),
        };
        let rows = Side::same(height, self.kernel, self.stride);
        let row = plane.columns.out * channels;
        let mut out = vec![0.0_f32; batch * rows.out * row];
        out.par_chunks_mut(row).enumerate().for_each(|(at, out)| {
            let picture = &values[at / rows.out * height * width * channels..];
            let first = (at % rows.out) * self.stride;
            // The kernel's rows that lie inside the picture.
            let from = rows.before.saturating_sub(first);
            let to = self.kernel.min(height + rows.before - first);
            plane.row(picture, first + from - rows.before, from..to, out);
        });
        Ok((
            CpuStorage::F32(out),
            Shape::from((batch, rows.out, plane.columns.out, channels)),
        ))
    }
}

struct Plane<'a> {
    width: usize,
    channels: usize,
    kernels: &'a [f32],
    bias: &'a [f32],
    kernel: usize,
    stride: usize,
    columns: Side,
}

impl Plane<'_> {
    /// One row of places. `top` is the picture's row under the first of the kernel's `rows`.
    fn row(&self, picture: &[f32], top: usize, rows: std::ops::Range<usize>, out: &mut [f32]) {
        for (place, out) in out.chunks_exact_mut(self.channels).enumerate() {
            let first = place * self.stride;
            let from = self.columns.before.saturating_sub(first);
            let to = self.kernel.min(self.width + self.columns.before - first);
            let left = first + from - self.columns.before;
            let mut base = 0;
            let mut blocks = out.chunks_exact_mut(LANES);
            for block in &mut blocks {
                let mut sums = [0.0_f32; LANES];
                sums.copy_from_slice(&self.bias[base..][..LANES]);
                for (line, row) in rows.clone().enumerate() {
                    for (step, column) in (from..to).enumerate() {
                        let at = ((top + line) * self.width + left + step) * self.channels + base;
                        let weight = (row * self.kernel + column) * self.channels + base;
                        let values = &picture[at..][..LANES];
                        let weights = &self.kernels[weight..][..LANES];
                        for lane in 0..LANES {
                            sums[lane] += values[lane] * weights[lane];
                        }
                    }
                }
                for (value, sum) in block.iter_mut().zip(sums) {
                    *value = sum.clamp(0.0, 6.0);
                }
                base += LANES;
            }
            for (offset, value) in blocks.into_remainder().iter_mut().enumerate() {
                let channel = base + offset;
                let mut sum = self.bias[channel];
                for (line, row) in rows.clone().enumerate() {
                    for (step, column) in (from..to).enumerate() {
                        let at = ((top + line) * self.width + left + step) * self.channels;
                        let weight = (row * self.kernel + column) * self.channels;
                        sum += picture[at + channel] * self.kernels[weight + channel];
                    }
                }
                *value = sum.clamp(0.0, 6.0);
            }
        }
    }
}
