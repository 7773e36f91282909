//! Convolutions on channels-last pictures, (batch, height, width, channels): products over places, and sums over neighbours. Sides are
//! padded as TensorFlow pads: the output has `ceil(side / stride)` places, and an odd row of padding goes to the end.
//!
//! The forms here are made of basic operations and run on any device; `depthwise` has the one that is worth writing out for the CPU.

use crate::depthwise::Direct;
use focus_nn::candle::Result;
use focus_nn::{DType, Tensor};

/// What follows a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// Values are cut to 0 to 6.
    Relu6,
}

/// Places along one side: how many come out, and how the side is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Places that come out.
    pub out: usize,
    /// Zeros before the first.
    pub before: usize,
}

impl Side {
    /// Of a side of `len` places under a kernel.
    pub fn same(len: usize, kernel: usize, stride: usize) -> Self {
        let out = len.div_ceil(stride);
        let reach = (out.max(1) - 1) * stride + kernel;
        Self {
            out,
            before: reach.saturating_sub(len) / 2,
        }
    }
}

/// A 1 x 1 convolution: a product over channels at every place.
#[derive(Debug, Clone)]
pub struct Pointwise {
    /// (inputs, outputs).
    matrix: Tensor,
    bias: Tensor,
    after: After,
}

impl Pointwise {
    /// From (outputs, inputs) or (outputs, inputs, 1, 1) and a bias.
    pub fn new(kernel: &Tensor, bias: Tensor, after: After) -> Result<Self> {
        let matrix = kernel.flatten_from(1)?.t()?.contiguous()?;
        Ok(Self {
            matrix,
            bias,
            after,
        })
    }

    /// (batch, height, width, inputs) to (batch, height, width, outputs).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, height, width, inputs) = x.dims4()?;
        let rows = x.reshape((batch * height * width, inputs))?;
        let y = rows.matmul(&self.matrix)?;
        let y = finish(&y, &self.bias, self.after)?;
        y.reshape((batch, height, width, y.dim(1)?))
    }
}

fn finish(y: &Tensor, bias: &Tensor, after: After) -> Result<Tensor> {
    let y = y.broadcast_add(bias)?;
    match after {
        After::Nothing => Ok(y),
        After::Relu6 => y.clamp(0.0_f64, 6.0_f64),
    }
}

/// A picture padded, and a view of it for each place of the kernel.
struct Taps {
    padded: Tensor,
    stride: usize,
    out: (usize, usize),
}

impl Taps {
    fn new(x: &Tensor, kernel: usize, stride: usize) -> Result<Self> {
        let (_, height, width, _) = x.dims4()?;
        let (rows, columns) = (
            Side::same(height, kernel, stride),
            Side::same(width, kernel, stride),
        );
        // Whole strides on both sides, so that every view is a reshape and a cut.
        let whole = |side: Side| (side.out + kernel.div_ceil(stride)) * stride;
        let after = |side: Side, len: usize| whole(side).saturating_sub(side.before + len);
        let padded = x
            .pad_with_zeros(1, rows.before, after(rows, height))?
            .pad_with_zeros(2, columns.before, after(columns, width))?;
        Ok(Self {
            padded,
            stride,
            out: (rows.out, columns.out),
        })
    }

    /// What the kernel's place (`row`, `column`) sees, (batch, rows out, columns out, channels).
    fn view(&self, row: usize, column: usize) -> Result<Tensor> {
        let (batch, height, width, channels) = self.padded.dims4()?;
        let step = self.stride;
        self.padded
            .reshape((batch, height / step, step, width / step, step, channels))?
            .narrow(2, row % step, 1)?
            .narrow(4, column % step, 1)?
            .squeeze(4)?
            .squeeze(2)?
            .narrow(1, row / step, self.out.0)?
            .narrow(2, column / step, self.out.1)
    }
}

/// A full convolution: neighbours side by side as channels, then a product. For few input channels.
#[derive(Debug, Clone)]
pub struct Full {
    product: Pointwise,
    kernel: usize,
    stride: usize,
}

impl Full {
    /// From (outputs, inputs, kernel, kernel) and a bias.
    pub fn new(kernel: &Tensor, bias: Tensor, stride: usize, after: After) -> Result<Self> {
        let side = kernel.dim(3)?;
        let matrix = kernel.permute((0, 2, 3, 1))?.flatten_from(1)?;
        Ok(Self {
            product: Pointwise::new(&matrix, bias, after)?,
            kernel: side,
            stride,
        })
    }

    /// (batch, height, width, inputs) to (batch, rows, columns, outputs).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let taps = Taps::new(x, self.kernel, self.stride)?;
        let views = (0..self.kernel * self.kernel)
            .map(|at| taps.view(at / self.kernel, at % self.kernel)?.contiguous())
            .collect::<Result<Vec<_>>>()?;
        self.product.forward(&Tensor::cat(&views, 3)?)
    }
}

/// A convolution of each channel by itself, followed by ReLU6.
#[derive(Debug, Clone)]
pub struct Depthwise {
    /// (kernel * kernel, channels).
    kernels: Tensor,
    bias: Tensor,
    kernel: usize,
    stride: usize,
}

impl Depthwise {
    /// From (channels, 1, kernel, kernel) and a bias.
    pub fn new(kernel: &Tensor, bias: Tensor, stride: usize) -> Result<Self> {
        let side = kernel.dim(3)?;
        Ok(Self {
            kernels: kernel.flatten_from(1)?.t()?.contiguous()?,
            bias,
            kernel: side,
            stride,
        })
    }

    /// (batch, height, width, channels) to (batch, rows, columns, channels).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.device().is_cpu() && x.dtype() == DType::F32 {
            let direct = Direct {
                kernel: self.kernel,
                stride: self.stride,
            };
            return x
                .contiguous()?
                .apply_op3_no_bwd(&self.kernels, &self.bias, &direct);
        }
        self.basic(x)
    }

    /// The same of basic operations, for any device and type.
    pub fn basic(&self, x: &Tensor) -> Result<Tensor> {
        let taps = Taps::new(x, self.kernel, self.stride)?;
        let mut sum: Option<Tensor> = None;
        for at in 0..self.kernel * self.kernel {
            let view = taps.view(at / self.kernel, at % self.kernel)?;
            let product = view.broadcast_mul(&self.kernels.get(at)?)?;
            sum = Some(match sum {
                None => product,
                Some(sum) => (sum + product)?,
            });
        }
        let sum = sum.expect("a kernel has at least one place");
        finish(&sum, &self.bias, After::Relu6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use focus_nn::Device;

    /// Numbers without a pattern that a wrong index would keep.
    fn drawn(shape: &[usize], seed: u64) -> Tensor {
        focus_nn::weights::random(seed, &Device::Cpu, DType::F32, |w| {
            w.get("x", shape, focus_nn::Init::Normal(1.0))
        })
        .unwrap()
    }

    fn difference(a: &Tensor, b: &Tensor) -> f32 {
        assert_eq!(a.dims(), b.dims());
        (a - b)
            .unwrap()
            .abs()
            .unwrap()
            .max_all()
            .unwrap()
            .to_scalar()
            .unwrap()
    }

    /// candle's own convolution of a picture padded by hand.
    fn reference(x: &Tensor, kernel: &Tensor, bias: &Tensor, stride: usize) -> Tensor {
        let (groups, side) = (
            x.dim(3).unwrap() / kernel.dim(1).unwrap(),
            kernel.dim(3).unwrap(),
        );
        let pad = |len: usize| {
            let side = Side::same(len, side, stride);
            let end = (side.out - 1) * stride + kernel.dim(3).unwrap();
            (side.before, end.saturating_sub(side.before + len))
        };
        let (rows, columns) = (pad(x.dim(1).unwrap()), pad(x.dim(2).unwrap()));
        let y = x
            .permute((0, 3, 1, 2))
            .unwrap()
            .pad_with_zeros(2, rows.0, rows.1)
            .unwrap()
            .pad_with_zeros(3, columns.0, columns.1)
            .unwrap()
            .conv2d(kernel, 0, stride, 1, groups)
            .unwrap();
        y.permute((0, 2, 3, 1))
            .unwrap()
            .broadcast_add(bias)
            .unwrap()
            .clamp(0.0_f64, 6.0_f64)
            .unwrap()
    }

    #[test]
    fn depthwise_forms_agree_with_the_general_convolution() {
        for (height, width, channels, kernel, stride) in [
            (8, 8, 40, 3, 1),
            (8, 8, 5, 3, 2),
            (7, 9, 33, 5, 2),
            (5, 6, 64, 5, 1),
            (2, 2, 3, 5, 2),
            (1, 3, 32, 5, 1),
            (1, 1, 1, 3, 2),
        ] {
            let x = drawn(&[2, height, width, channels], 1);
            let kernels = drawn(&[channels, 1, kernel, kernel], 2);
            let bias = drawn(&[channels], 3);
            let layer = Depthwise::new(&kernels, bias.clone(), stride).unwrap();
            let wanted = reference(&x, &kernels, &bias, stride);
            let case = (height, width, channels, kernel, stride);
            assert!(
                difference(&layer.forward(&x).unwrap(), &wanted) < 1e-5,
                "{case:?}"
            );
            assert!(
                difference(&layer.basic(&x).unwrap(), &wanted) < 1e-5,
                "{case:?}"
            );
        }
    }

    #[test]
    fn the_full_convolution_agrees_with_the_general_one() {
        for (height, width, stride) in [(8, 8, 2), (7, 9, 2), (5, 4, 1)] {
            let x = drawn(&[2, height, width, 3], 1);
            let kernels = drawn(&[6, 3, 3, 3], 2);
            let bias = drawn(&[6], 3);
            let layer = Full::new(&kernels, bias.clone(), stride, After::Relu6).unwrap();
            let wanted = reference(&x, &kernels, &bias, stride);
            assert!(difference(&layer.forward(&x).unwrap(), &wanted) < 1e-5);
        }
    }

    #[test]
    fn an_odd_row_of_padding_goes_to_the_end() {
        // 224 under a kernel of 3 and a step of 2 lacks one row: none before, one after.
        assert_eq!(
            Side::same(224, 3, 2),
            Side {
                out: 112,
                before: 0
            }
        );
        assert_eq!(Side::same(56, 5, 2), Side { out: 28, before: 1 });
        assert_eq!(Side::same(7, 3, 1), Side { out: 7, before: 1 });
        assert_eq!(Side::same(7, 3, 2), Side { out: 4, before: 1 });
    }
}
