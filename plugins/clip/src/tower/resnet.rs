//! ResNet v1.5: bottleneck blocks whose stride is in the 3 x 3 convolution, torchvision's names. For inference: each batch norm is folded
//! into its convolution when weights are loaded.

use crate::config::ResNet as ResNetConfig;
use focus_nn::candle::Result;
use focus_nn::{DType, Init, LoadError, Tensor, Weights};

/// Added to variances, PyTorch's default.
const EPS: f64 = 1e-5;
/// Channels that leave a block, in units of those inside.
const EXPANSION: usize = 4;

/// A ResNet up to its pooled features.
#[derive(Debug, Clone)]
pub struct ResNet {
    stem: Convolution,
    blocks: Vec<Bottleneck>,
}

/// A convolution with its batch norm.
#[derive(Debug, Clone)]
struct Convolution {
    /// (out, in, size, size).
    weight: Tensor,
    /// (1, out, 1, 1).
    bias: Tensor,
    padding: usize,
    stride: usize,
}

#[derive(Debug, Clone)]
struct Bottleneck {
    first: Convolution,
    second: Convolution,
    third: Convolution,
    shortcut: Option<Convolution>,
}

impl ResNet {
    /// Claim the weights at a place.
    pub fn load(config: &ResNetConfig, at: &Weights) -> std::result::Result<Self, LoadError> {
        let stem = Convolution::load(at, "conv1", "bn1", (3, config.stem, 7), 2)?;
        let mut blocks = Vec::new();
        let mut inputs = config.stem;
        for (stage, (&planes, &count)) in config.planes.iter().zip(&config.blocks).enumerate() {
            let layer = at.at(format!("layer{}", stage + 1));
            for number in 0..count {
                let stride = if stage > 0 && number == 0 { 2 } else { 1 };
                blocks.push(Bottleneck::load(
                    &layer.at(number),
                    inputs,
                    planes,
                    stride,
                    number == 0,
                )?);
                inputs = planes * EXPANSION;
            }
        }
        Ok(Self { stem, blocks })
    }

    /// Pictures (batch, 3, height, width) to features (batch, 4 * last planes).
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let x = self.stem.forward(pixels)?.relu()?;
        // Nothing is below zero here, so zeros around are as good as the nothing that the reference's pooling sees there.
        let x = x.pad_with_zeros(2, 1, 1)?.pad_with_zeros(3, 1, 1)?;
        let x = x.max_pool2d_with_stride(3, 2)?;
        let x = self
            .blocks
            .iter()
            .try_fold(x, |x, block| block.forward(&x))?;
        x.flatten_from(2)?.mean(2)
    }
}

impl Bottleneck {
    fn load(
        at: &Weights,
        inputs: usize,
        planes: usize,
        stride: usize,
        first: bool,
    ) -> std::result::Result<Self, LoadError> {
        let outputs = planes * EXPANSION;
        let load = |conv: &str, norm: &str, shape, stride| {
            Convolution::load(at, conv, norm, shape, stride)
        };
        Ok(Self {
            first: load("conv1", "bn1", (inputs, planes, 1), 1)?,
            second: load("conv2", "bn2", (planes, planes, 3), stride)?,
            third: load("conv3", "bn3", (planes, outputs, 1), 1)?,
            shortcut: first
                .then(|| load("downsample.0", "downsample.1", (inputs, outputs, 1), stride))
                .transpose()?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let branch = self.first.forward(x)?.relu()?;
        let branch = self.second.forward(&branch)?.relu()?;
        let branch = self.third.forward(&branch)?;
        match &self.shortcut {
            Some(shortcut) => branch + shortcut.forward(x)?,
            None => branch + x,
        }?
        .relu()
    }
}

impl Convolution {
    /// `shape` is (in, out, side).
    fn load(
        at: &Weights,
        conv: &str,
        norm: &str,
        (inputs, outputs, side): (usize, usize, usize),
        stride: usize,
    ) -> std::result::Result<Self, LoadError> {
        // Folded in f32, whatever the model runs in. Drawn weights keep the variance of what passes a rectifier.
        let draw = Init::Normal((2.0 / (side * side * inputs) as f32).sqrt());
        let shape = [outputs, inputs, side, side];
        let weight = at.get_as(&format!("{conv}.weight"), &shape, draw, DType::F32)?;
        let norm = at.at(norm);
        let value = |name: &str, init| norm.get_as(name, &[outputs], init, DType::F32);
        let mean = value("running_mean", Init::Zeros)?;
        let variance = value("running_var", Init::Ones)?;
        let scale = (value("weight", Init::Ones)? / (variance + EPS)?.sqrt()?)?;
        let bias = (value("bias", Init::Zeros)? - (mean * &scale)?)?;
        let weight = weight.broadcast_mul(&scale.reshape((outputs, 1, 1, 1))?)?;
        Ok(Self {
            weight: weight.to_dtype(at.dtype())?,
            bias: bias.reshape((1, outputs, 1, 1))?.to_dtype(at.dtype())?,
            padding: side / 2,
            stride,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let kind = x.dtype();
        // candle has no convolutions of half types on the CPU.
        let widen = x.device().is_cpu() && kind != DType::F32;
        let run = |x: &Tensor, weight: &Tensor| x.conv2d(weight, self.padding, self.stride, 1, 1);
        let y = if widen {
            run(&x.to_dtype(DType::F32)?, &self.weight.to_dtype(DType::F32)?)?.to_dtype(kind)?
        } else {
            run(x, &self.weight)?
        };
        y.broadcast_add(&self.bias)
    }
}
