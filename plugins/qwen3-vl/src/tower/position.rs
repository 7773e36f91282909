//! Places of patches: the learnt table resampled to a picture's grid, and rotary angles by row and column. Both in the order of patches,
//! merged square by merged square.

use crate::config::VisionConfig;
use focus_nn::candle::{Result, Tensor};
use focus_nn::position::Rotary;
use focus_nn::{DType, Device};

/// Row and column of every patch.
fn order(grid: (usize, usize), merge: usize) -> impl Iterator<Item = (usize, usize)> {
    let squares = (grid.0 / merge, grid.1 / merge);
    (0..squares.0).flat_map(move |square_row| {
        (0..squares.1).flat_map(move |square_column| {
            (0..merge).flat_map(move |row| {
                (0..merge)
                    .map(move |column| (square_row * merge + row, square_column * merge + column))
            })
        })
    })
}

/// `count` numbers from 0 to `last` at equal distance, as `torch.linspace` computes them in f32: from both ends to the middle.
fn spaced(last: usize, count: usize) -> Vec<f32> {
    if count < 2 {
        return vec![0.0; count];
    }
    let end = last as f32;
    let step = end / (count - 1) as f32;
    (0..count)
        .map(|i| {
            if i < count / 2 {
                step * i as f32
            } else {
                end - step * (count - 1 - i) as f32
            }
        })
        .collect()
}

/// The four neighbours' weights are computed by hand in the reference: corners of table and grid lie on each other, no half-pixel shift.
pub(super) fn interpolate(
    table: &Tensor,
    config: &VisionConfig,
    grid: (usize, usize),
) -> Result<Tensor> {
    let side = config.table_side;
    let (down, across) = (spaced(side - 1, grid.0), spaced(side - 1, grid.1));
    let count = grid.0 * grid.1;
    let mut corners: [(Vec<u32>, Vec<f32>); 4] = Default::default();
    for (row, column) in order(grid, config.merge) {
        let (y, x) = (down[row], across[column]);
        let (top, left) = (y as usize, x as usize);
        let (bottom, right) = ((top + 1).min(side - 1), (left + 1).min(side - 1));
        let (dy, dx) = (y - top as f32, x - left as f32);
        let four = [
            (top, left, (1.0 - dy) * (1.0 - dx)),
            (top, right, (1.0 - dy) * dx),
            (bottom, left, dy * (1.0 - dx)),
            (bottom, right, dy * dx),
        ];
        for ((places, weights), (row, column, weight)) in corners.iter_mut().zip(four) {
            places.push((row * side + column) as u32);
            weights.push(weight);
        }
    }
    let device = table.device();
    let wide = table.to_dtype(DType::F32)?;
    let mut sum: Option<Tensor> = None;
    for (places, weights) in corners {
        let rows = wide.index_select(&Tensor::from_vec(places, count, device)?, 0)?;
        let part = rows.broadcast_mul(&Tensor::from_vec(weights, (count, 1), device)?)?;
        sum = Some(match sum {
            None => part,
            Some(sum) => (sum + part)?,
        });
    }
    sum.expect("a patch has four corners")
        .to_dtype(table.dtype())
}

/// Angles `place * theta^(-4k / head_dim)` for k below `head_dim / 4`, first of the row, then of the column, all of it twice.
pub(super) fn rotary(
    config: &VisionConfig,
    grid: (usize, usize),
    device: &Device,
) -> Result<Rotary> {
    let width = config.head_dim();
    let inverse: Vec<f32> = (0..width / 4)
        .map(|k| config.theta.powf(-4.0 * k as f64 / width as f64) as f32)
        .collect();
    let count = grid.0 * grid.1;
    let mut cos = Vec::with_capacity(count * width);
    let mut sin = Vec::with_capacity(count * width);
    for (row, column) in order(grid, config.merge) {
        for _ in 0..2 {
            for place in [row, column] {
                for inverse in &inverse {
                    let angle = f64::from(place as f32 * inverse);
                    cos.push(angle.cos() as f32);
                    sin.push(angle.sin() as f32);
                }
            }
        }
    }
    let shape = (count, width);
    Ok(Rotary::from_tables(
        Tensor::from_vec(cos, shape, device)?,
        Tensor::from_vec(sin, shape, device)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_come_square_by_square() {
        let order: Vec<_> = order((2, 4), 2).collect();
        assert_eq!(order[..4], [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(order[4..], [(0, 2), (0, 3), (1, 2), (1, 3)]);
    }

    #[test]
    fn distances_are_equal_and_both_ends_exact() {
        let values = spaced(47, 31);
        assert_eq!((values[0], values[30], values[15]), (0.0, 47.0, 23.5));
        assert!(
            values
                .windows(2)
                .all(|w| (w[1] - w[0] - 47.0 / 30.0).abs() < 1e-5)
        );
        assert_eq!(spaced(4, 1), [0.0]);
        assert_eq!(
            spaced(47, 48),
            (0..48).map(|i| i as f32).collect::<Vec<_>>()
        );
    }
}
