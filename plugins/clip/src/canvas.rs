//! FLAIR's pixels: the whole picture in floating point, its long side brought to the canvas, zeros to the right and below.
//!
//! No mean is subtracted and nothing is divided by but 255. (The reference leaves out the division for a picture that is black all over,
//! which is the same.) The host has no such preparation: it resizes bytes and centres pictures that do not fill their canvas.

use focus_nn::candle::{Device, Tensor};
use focus_resize::{Filter, PassOrder, ResizeError, Scaling, resize_f32};

/// A picture that cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum CanvasError {
    /// Too long for its width, or no picture at all.
    #[error("Picture of {width} x {height} pixels vanishes on a canvas of {side}")]
    Vanishes {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Side of the canvas in pixels.
        side: u32,
    },
    /// It cannot be resized.
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// The tensor library failed.
    #[error("Pixels could not be placed: {0}")]
    Compute(#[from] focus_nn::candle::Error),
}

/// Size of the picture on the canvas, (width, height): both cut to whole pixels after a division in f64, as Python has it, which can lose
/// a pixel where the canvas is no power of two.
pub fn fitted((width, height): (u32, u32), side: u32) -> (u32, u32) {
    let scale = f64::from(width.max(height)) / f64::from(side);
    let cut = |length: u32| (f64::from(length) / scale) as u32;
    (cut(width), cut(height))
}

/// `rgb` of `size` (width, height), oriented, row-major, channels interleaved, to planes (3, side, side) from 0 to 1.
pub fn prepare(
    rgb: &[u8],
    size: (u32, u32),
    side: u32,
    device: &Device,
) -> Result<Tensor, CanvasError> {
    let (width, height) = size;
    let vanishes = CanvasError::Vanishes {
        width,
        height,
        side,
    };
    if width == 0 || height == 0 || side == 0 {
        return Err(vanishes);
    }
    let (across, down) = fitted(size, side);
    if across == 0 || down == 0 {
        return Err(vanishes);
    }
    let wide: Vec<f32> = rgb.iter().map(|&value| f32::from(value) / 255.0).collect();
    let scaling =
        Scaling::new(size, (across, down), Filter::Bilinear).with_order(PassOrder::HorizontalFirst);
    let resized = resize_f32(&wide, &scaling, 3)?;
    let (side, row) = (side as usize, across as usize * 3);
    let mut planes = vec![0.0_f32; 3 * side * side];
    for (y, line) in resized.chunks_exact(row).enumerate() {
        for (x, pixel) in line.chunks_exact(3).enumerate() {
            for (channel, &value) in pixel.iter().enumerate() {
                planes[(channel * side + y) * side + x] = value;
            }
        }
    }
    Ok(Tensor::from_vec(planes, (3, side, side), device)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_cut_and_not_rounded() {
        assert_eq!(fitted((1000, 999), 512), (512, 511));
        assert_eq!(fitted((2848, 4288), 512), (340, 512));
        assert_eq!(fitted((64, 64), 64), (64, 64));
        // 7 / (7 / 100) is a little less than 100. A canvas of a power of two loses nothing.
        assert_eq!(fitted((7, 7), 100), (99, 99));
    }

    #[test]
    fn senseless_pictures_are_refused() {
        let error = prepare(&[0; 3 * 600], (600, 1), 512, &Device::Cpu).unwrap_err();
        assert!(error.to_string().contains("600 x 1"), "{error}");
        assert!(prepare(&[], (0, 4), 64, &Device::Cpu).is_err());
        assert!(prepare(&[0; 5], (2, 2), 64, &Device::Cpu).is_err());
    }

    #[test]
    fn zeros_lie_to_the_right_and_below() {
        let planes = prepare(&[255; 3 * 8], (2, 4), 4, &Device::Cpu).unwrap();
        let rows: Vec<Vec<f32>> = planes.get(0).unwrap().to_vec2().unwrap();
        assert!(rows.iter().all(|row| row == &[1.0, 1.0, 0.0, 0.0]));
        let planes = prepare(&[255; 3 * 8], (4, 2), 4, &Device::Cpu).unwrap();
        let rows: Vec<Vec<f32>> = planes.get(2).unwrap().to_vec2().unwrap();
        assert_eq!(rows.concat(), [vec![1.0; 8], vec![0.0; 8]].concat());
    }
}
