//! A convolution without a bias and the batch norm after it, as one convolution with a bias. Knows names and shapes.

use crate::config::EPSILON;
use focus_nn::{DType, Init, LoadError, Tensor, Weights};

/// Claims `{convolution}.weight` of `shape` (output channels first) and the four tensors of `norm`; gives weights of the same shape and
/// a bias, one value for each output channel. The arithmetic is f64.
pub fn folded(
    weights: &Weights,
    convolution: &str,
    norm: &str,
    shape: [usize; 4],
) -> Result<(Tensor, Tensor), LoadError> {
    let [out, inputs, height, width] = shape;
    // Keeps the scale of what passes through, halved by a ReLU, when weights are drawn.
    let deviation = (2.0 / (inputs * height * width) as f32).sqrt();
    let kernel =
        weights
            .at(convolution)
            .get_as("weight", &shape, Init::Normal(deviation), DType::F64)?;
    let norm = weights.at(norm);
    let vector = |name: &str, init| norm.get_as(name, &[out], init, DType::F64);
    let scale = vector("weight", Init::Ones)?;
    let shift = vector("bias", Init::Zeros)?;
    let mean = vector("running_mean", Init::Zeros)?;
    let variance = vector("running_var", Init::Ones)?;
    let gain = (scale / (variance + EPSILON)?.sqrt()?)?;
    let bias = (shift - (mean * &gain)?)?;
    let kernel = kernel.broadcast_mul(&gain.reshape((out, 1, 1, 1))?)?;
    Ok((
        kernel.to_dtype(weights.dtype())?,
        bias.to_dtype(weights.dtype())?,
    ))
}

/// The tensor that a batch norm's checkpoint holds besides: a count of training steps, of no use here.
pub fn counter(norm: &str) -> String {
    format!("{norm}.num_batches_tracked")
}
