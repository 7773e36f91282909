//! A picture to its tiles: the base tile, then those of its resolution, row by row. Knows no network.

use crate::grid::{Size, best_resolution, fitted};
use crate::preprocess::Processor;
use focus_nn::candle;
use focus_nn::pixels::Normalisation;
use focus_nn::{DType, Device, Tensor};
use focus_resize::{PassOrder, ResizeError, Scaling, resize_into};

/// A picture that cannot be cut into tiles.
#[derive(Debug, thiserror::Error)]
pub enum TilesError {
    /// No pixels, or not as many as its sides say.
    #[error("Picture does not fit its size: expected {height} x {width} x 3 bytes, found {found}")]
    Bytes {
        /// Height in pixels.
        height: u32,
        /// Width in pixels.
        width: u32,
        /// Bytes.
        found: usize,
    },
    /// It cannot be resized.
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// The tensor library failed.
    #[error("Pixels could not be placed: {0}")]
    Compute(#[from] candle::Error),
}

/// A picture, ready for the tower.
#[derive(Debug, Clone)]
pub struct Tiles {
    /// (1 + tiles, 3, side, side), normalised.
    pub pixels: Tensor,
    /// Of the picture.
    pub original: Size,
    /// What it was brought to.
    pub resolution: Size,
}

/// Cut `rgb` of size `original`, oriented, row-major, channels interleaved, into tiles. The base tile is the whole picture, its aspect
/// ignored; the others are the picture as large as fits its best resolution, in the middle of black.
pub fn cut(
    processor: &Processor,
    rgb: &[u8],
    original: Size,
    device: &Device,
    dtype: DType,
) -> Result<Tiles, TilesError> {
    let Size { height, width } = original;
    let bytes = (height as usize)
        .checked_mul(width as usize)
        .and_then(|n| n.checked_mul(3));
    if rgb.is_empty() || bytes != Some(rgb.len()) {
        return Err(TilesError::Bytes {
            height,
            width,
            found: rgb.len(),
        });
    }
    let side = processor.side as usize;
    let resolution = best_resolution(original, &processor.pinpoints)
        .expect("a processor has resolutions: checked when read");
    let inside = fitted(original, resolution);
    let resize = |to: Size| -> Result<Vec<u8>, ResizeError> {
        let mut target = vec![0; to.height as usize * to.width as usize * 3];
        // The reference resizes with torchvision, which always has the horizontal pass first.
        let scaling = Scaling::new((width, height), (to.width, to.height), processor.filter)
            .with_order(PassOrder::HorizontalFirst);
        resize_into(rgb, &scaling, 3, &mut target)?;
        Ok(target)
    };
    let mut tiles = resize(Size::new(processor.side, processor.side))?;
    let fitted = resize(inside)?;
    let (rows, columns) = (
        resolution.height as usize / side,
        resolution.width as usize / side,
    );
    let tile_bytes = side * side * 3;
    tiles.resize((1 + rows * columns) * tile_bytes, 0);
    // Half of the padding, rounded down, is above and to the left.
    let top = (resolution.height - inside.height) as usize / 2;
    let left = (resolution.width - inside.width) as usize / 2;
    for (line, row) in fitted.chunks_exact(inside.width as usize * 3).enumerate() {
        let y = top + line;
        let mut from = 0;
        while from < inside.width as usize {
            let x = left + from;
            let count = (side - x % side).min(inside.width as usize - from);
            let tile = 1 + y / side * columns + x / side;
            let at = tile * tile_bytes + (y % side * side + x % side) * 3;
            tiles[at..at + count * 3].copy_from_slice(&row[from * 3..(from + count) * 3]);
            from += count;
        }
    }
    let normalisation = Normalisation {
        mean: processor.mean,
        std: processor.std,
    };
    Ok(Tiles {
        pixels: normalisation.planes(&tiles, side, side, device, dtype)?,
        original,
        resolution,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use focus_resize::Filter;

    fn processor(pinpoints: &[(u32, u32)]) -> Processor {
        Processor {
            side: 4,
            pinpoints: pinpoints.iter().map(|&(h, w)| Size::new(h, w)).collect(),
            filter: Filter::Bicubic,
            mean: [0.0; 3],
            std: [1.0 / 255.0; 3],
        }
    }

    /// Red is the row, green the column.
    fn picture(height: u8, width: u8) -> Vec<u8> {
        (0..height)
            .flat_map(|y| (0..width).flat_map(move |x| [y, x, 7]))
            .collect()
    }

    fn plane(tiles: &Tiles, tile: usize, channel: usize) -> Vec<Vec<f32>> {
        let plane = tiles.pixels.get(tile).unwrap().get(channel).unwrap();
        plane.round().unwrap().to_vec2().unwrap()
    }

    #[test]
    fn tiles_come_row_by_row_behind_the_base() {
        let tiles = cut(
            &processor(&[(4, 12), (8, 8)]),
            &picture(8, 8),
            Size::new(8, 8),
            &Device::Cpu,
            DType::F32,
        )
        .unwrap();
        assert_eq!(tiles.pixels.dims(), [5, 3, 4, 4]);
        assert_eq!(tiles.resolution, Size::new(8, 8));
        // Nothing is resized: the third tile after the base starts at row 4, column 0.
        assert_eq!(plane(&tiles, 3, 0)[0], [4.0; 4]);
        assert_eq!(plane(&tiles, 3, 1)[0], [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(plane(&tiles, 2, 1)[3], [4.0, 5.0, 6.0, 7.0]);
        assert_eq!(plane(&tiles, 2, 0)[3], [3.0; 4]);
    }

    #[test]
    fn a_picture_lies_in_the_middle_and_odd_padding_is_more_below() {
        // 5 x 8 in 8 x 8: 3 rows of padding, one of them above.
        let tiles = cut(
            &processor(&[(8, 8)]),
            &picture(5, 8),
            Size::new(5, 8),
            &Device::Cpu,
            DType::F32,
        )
        .unwrap();
        assert_eq!(
            plane(&tiles, 1, 2),
            [vec![0.0; 4], vec![7.0; 4], vec![7.0; 4], vec![7.0; 4]]
        );
        assert_eq!(plane(&tiles, 1, 0)[3], [2.0; 4]);
        assert_eq!(
            plane(&tiles, 4, 2),
            [vec![7.0; 4], vec![7.0; 4], vec![0.0; 4], vec![0.0; 4]]
        );
        // The base tile has no padding.
        assert!(plane(&tiles, 0, 2).concat().iter().all(|&v| v == 7.0));
    }

    #[test]
    fn senseless_pictures_are_refused() {
        let run = |rgb: &[u8], size| {
            cut(&processor(&[(8, 8)]), rgb, size, &Device::Cpu, DType::F32).map(|_| ())
        };
        let error = run(&[0; 11], Size::new(2, 2)).unwrap_err().to_string();
        assert!(
            error.contains("expected 2 x 2 x 3 bytes, found 11"),
            "{error}"
        );
        assert!(run(&[], Size::new(0, 3)).is_err());
        assert!(run(&[0; 3000], Size::new(1, 1000)).is_ok());
    }
}
