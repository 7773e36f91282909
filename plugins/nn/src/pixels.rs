//! Bytes of pictures to what a model is fed. Must not know files or sizes.

use candle_core::{DType, Device, Result, Tensor};

/// Mean and standard deviation per channel, in units of value / 255.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    /// Subtracted.
    pub mean: [f64; 3],
    /// Divided by.
    pub std: [f64; 3],
}

impl Normalisation {
    /// u8 RGB pictures of one size, row-major, channels interleaved, to (images, 3, height, width). Each of a channel's 256 values is
    /// computed once, in f64.
    pub fn planes(
        &self,
        rgb: &[u8],
        width: usize,
        height: usize,
        device: &Device,
        dtype: DType,
    ) -> Result<Tensor> {
        let table: [[f32; 256]; 3] = std::array::from_fn(|channel| {
            std::array::from_fn(|level| {
                ((level as f64 / 255.0 - self.mean[channel]) / self.std[channel]) as f32
            })
        });
        let area = width * height;
        let mut planes = vec![0.0_f32; rgb.len()];
        for (image, planes) in rgb
            .chunks_exact(area * 3)
            .zip(planes.chunks_exact_mut(area * 3))
        {
            let (red, rest) = planes.split_at_mut(area);
            let (green, blue) = rest.split_at_mut(area);
            for (at, pixel) in image.chunks_exact(3).enumerate() {
                red[at] = table[0][usize::from(pixel[0])];
                green[at] = table[1][usize::from(pixel[1])];
                blue[at] = table[2][usize::from(pixel[2])];
            }
        }
        let images = rgb.len() / (area * 3);
        Tensor::from_vec(planes, (images, 3, height, width), device)?.to_dtype(dtype)
    }

    /// f32 RGB values from 0 to 255, laid out as above.
    pub fn float_planes(
        &self,
        rgb: &[f32],
        width: usize,
        height: usize,
        device: &Device,
        dtype: DType,
    ) -> Result<Tensor> {
        let area = width * height;
        let mut planes = vec![0.0_f32; rgb.len()];
        for (image, planes) in rgb
            .chunks_exact(area * 3)
            .zip(planes.chunks_exact_mut(area * 3))
        {
            for (at, pixel) in image.chunks_exact(3).enumerate() {
                for channel in 0..3 {
                    let value = f64::from(pixel[channel]) / 255.0;
                    planes[channel * area + at] =
                        ((value - self.mean[channel]) / self.std[channel]) as f32;
                }
            }
        }
        let images = rgb.len() / (area * 3);
        Tensor::from_vec(planes, (images, 3, height, width), device)?.to_dtype(dtype)
    }
}
