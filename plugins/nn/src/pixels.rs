//! Pixels of pictures, bytes or floats, to what a model is fed. Must not know files or sizes.

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

    /// f32 RGB values in units of value / 255, laid out as above; each is normalised in f64.
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
                    let value = f64::from(pixel[channel]);
                    planes[channel * area + at] =
                        ((value - self.mean[channel]) / self.std[channel]) as f32;
                }
            }
        }
        let images = rgb.len() / (area * 3);
        Tensor::from_vec(planes, (images, 3, height, width), device)?.to_dtype(dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_the_floats_they_stand_for_become_the_same() {
        let normalisation = Normalisation {
            mean: [0.485, 0.456, 0.406],
            std: [0.229, 0.224, 0.225],
        };
        let bytes: Vec<u8> = (0..2 * 5 * 3 * 3).map(|i| (i * 29 % 256) as u8).collect();
        let floats: Vec<f32> = bytes.iter().map(|&v| f32::from(v) / 255.0).collect();
        let values = |tensor: Tensor| -> Vec<f32> {
            assert_eq!(tensor.dims(), [2, 3, 3, 5]);
            tensor.flatten_all().unwrap().to_vec1().unwrap()
        };
        let from_bytes = values(
            normalisation
                .planes(&bytes, 5, 3, &Device::Cpu, DType::F32)
                .unwrap(),
        );
        let from_floats = values(
            normalisation
                .float_planes(&floats, 5, 3, &Device::Cpu, DType::F32)
                .unwrap(),
        );
        for (a, b) in from_bytes.iter().zip(&from_floats) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        // Channels are told apart: the first green value is that of the second byte.
        let green = (f64::from(bytes[1]) / 255.0 - 0.456) / 0.224;
        assert!((f64::from(from_floats[15]) - green).abs() < 1e-6);
    }
}
