//! Layers of coverage and the strokes on them. Knows no anatomy and no colour.

use crate::random::{Random, mix};

/// One layer: coverage 0 to 1 at each pixel, row-major, square.
#[derive(Debug, Clone)]
pub struct Layer {
    pub size: usize,
    pub value: Vec<f32>,
}

/// A round-ended stroke from `a` to `b` whose half width goes linearly from `start` to `end`, in pixels.
#[derive(Debug, Clone, Copy)]
pub struct Stroke {
    pub a: (f64, f64),
    pub b: (f64, f64),
    pub start: f64,
    pub end: f64,
}

impl Layer {
    pub fn new(size: usize) -> Self {
        Self {
            size,
            value: vec![0.0; size * size],
        }
    }

    /// Draws a stroke with edges one pixel soft; thinner than a pixel, it fades instead of narrowing.
    pub fn stroke(&mut self, stroke: Stroke, strength: f64) {
        let Stroke { a, b, start, end } = stroke;
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let inverse = 1.0 / (dx * dx + dy * dy).max(1e-12);
        let reach = start.max(end) + 0.5;
        let size = self.size;
        for py in between(a.1, b.1, reach, size) {
            for px in between(a.0, b.0, reach, size) {
                let (x, y) = (px as f64 - a.0, py as f64 - a.1);
                let t = ((x * dx + y * dy) * inverse).clamp(0.0, 1.0);
                let (ex, ey) = (x - t * dx, y - t * dy);
                let square = ex * ex + ey * ey;
                if square >= reach * reach {
                    continue;
                }
                let half = start + (end - start) * t;
                let covered = strength * disc_coverage(square.sqrt(), half);
                let value = &mut self.value[py * size + px];
                *value = value.max(covered as f32);
            }
        }
    }
}

// The pixels of a line of `size` between `a` and `b` and up to `reach` beyond.
fn between(a: f64, b: f64, reach: f64, size: usize) -> std::ops::RangeInclusive<usize> {
    span(0.5 * (a + b), 0.5 * (a - b).abs() + reach, size)
}

/// The pixels of a line of `size` that lie within `reach` of `c`; the nearest one where none does.
pub fn span(c: f64, reach: f64, size: usize) -> std::ops::RangeInclusive<usize> {
    let last = size as f64 - 1.0;
    (c - reach).floor().clamp(0.0, last) as usize..=(c + reach).ceil().clamp(0.0, last) as usize
}

/// Coverage of a pixel at `distance` from the axis of something of half width `half`.
pub fn disc_coverage(distance: f64, half: f64) -> f64 {
    (half - distance + 0.5).clamp(0.0, (2.0 * half).min(1.0))
}

/// Near-Gaussian blur of a square layer in place, `sigma` in pixels: three running means in each direction, whose
/// fractional ends make the variance exact. Edges repeat.
pub fn blur(value: &mut [f32], size: usize, sigma: f64) {
    if sigma < 0.05 {
        return;
    }
    // A mean over 2r+1 pixels plus two end pixels of weight e has variance v; three passes give sigma^2 = 3 v.
    let target = sigma * sigma / 3.0;
    let mut radius = 0_usize;
    let variance = |r: f64, e: f64| {
        (r * (r + 1.0) * (2.0 * r + 1.0) / 3.0 + 2.0 * e * (r + 1.0) * (r + 1.0))
            / (2.0 * r + 1.0 + 2.0 * e)
    };
    while variance(radius as f64 + 1.0, 0.0) <= target {
        radius += 1;
    }
    let r = radius as f64;
    let inner = r * (r + 1.0) * (2.0 * r + 1.0) / 3.0;
    let edge = (target * (2.0 * r + 1.0) - inner) / (2.0 * ((r + 1.0) * (r + 1.0) - target));
    // Down the columns twice with a transposition between: whole rows are added, which the compiler vectorises.
    let mut other = vec![0.0; value.len()];
    for _ in 0..2 {
        for _ in 0..3 {
            mean_down(value, &mut other, size, radius, edge as f32);
            value.copy_from_slice(&other);
        }
        transpose(&other, value, size);
    }
}

// All columns at once, row by row, so that memory is read in order.
fn mean_down(source: &[f32], out: &mut [f32], size: usize, radius: usize, edge: f32) {
    let last = size as isize - 1;
    let row = |i: isize| {
        let start = i.clamp(0, last) as usize * size;
        &source[start..start + size]
    };
    let r = radius as isize;
    let norm = 1.0 / (2.0 * radius as f32 + 1.0 + 2.0 * edge);
    let mut sum = vec![0.0_f32; size];
    for i in -r..=r {
        sum.iter_mut().zip(row(i)).for_each(|(s, v)| *s += v);
    }
    for (i, out) in out.chunks_exact_mut(size).enumerate() {
        let i = i as isize;
        let (before, first, after) = (row(i - r - 1), row(i - r), row(i + r + 1));
        for x in 0..size {
            out[x] = (sum[x] + edge * (before[x] + after[x])) * norm;
            sum[x] += after[x] - first[x];
        }
    }
}

fn transpose(source: &[f32], out: &mut [f32], size: usize) {
    const TILE: usize = 16;
    for top in (0..size).step_by(TILE) {
        for left in (0..size).step_by(TILE) {
            for y in top..(top + TILE).min(size) {
                for x in left..(left + TILE).min(size) {
                    out[x * size + y] = source[y * size + x];
                }
            }
        }
    }
}

/// A square plane of side `from` at the side `to`: each new pixel is the mean over its area of the piecewise constant old
/// one where it shrinks, linear between centres where it grows.
pub fn resize(plane: &[f32], from: usize, to: usize) -> Vec<f32> {
    let step = from as f64 / to as f64;
    let taps: Vec<Vec<(usize, f32)>> = (0..to)
        .map(|i| {
            if step >= 1.0 {
                let (low, high) = (i as f64 * step, (i as f64 + 1.0) * step);
                (low as usize..=(high as usize).min(from - 1))
                    .map(|k| {
                        let part = high.min(k as f64 + 1.0) - low.max(k as f64);
                        (k, (part.max(0.0) / step) as f32)
                    })
                    .collect()
            } else {
                let at = ((i as f64 + 0.5) * step - 0.5).clamp(0.0, from as f64 - 1.0);
                let (k, t) = (at as usize, at - at as usize as f64);
                vec![(k, (1.0 - t) as f32), ((k + 1).min(from - 1), t as f32)]
            }
        })
        .collect();
    let mut rows = vec![0.0; to * from];
    for (out, taps) in rows.chunks_exact_mut(from).zip(&taps) {
        for &(k, weight) in taps {
            let row = &plane[k * from..(k + 1) * from];
            out.iter_mut().zip(row).for_each(|(o, v)| *o += weight * v);
        }
    }
    let mut out = Vec::with_capacity(to * to);
    for row in rows.chunks_exact(from) {
        out.extend(
            taps.iter()
                .map(|taps| taps.iter().map(|&(k, w)| w * row[k]).sum::<f32>()),
        );
    }
    out
}

/// Smooth noise in [-1, 1] on a lattice of the given cell size in pixels.
#[derive(Debug, Clone)]
pub struct Noise {
    key: u64,
    cell: f64,
    // Cell of each column and how far across it the column lies, eased.
    columns: Vec<(u32, f32)>,
}

impl Noise {
    pub fn new(random: &mut Random, cell: f64, size: usize) -> Self {
        let column = |x: usize| {
            let u = x as f64 / cell;
            (u as u32, ease(u - f64::from(u as u32)) as f32)
        };
        Self {
            key: random.bits(),
            cell,
            columns: (0..size).map(column).collect(),
        }
    }

    /// Adds `strength` times the noise of row `y` to `out`, pixel by pixel from column 0.
    pub fn add_row(&self, y: usize, strength: f64, out: &mut [f32]) {
        let v = y as f64 / self.cell;
        let j = v as i64;
        let t = ease(v - j as f64);
        let at = |i: u32| {
            let (i, next) = (i64::from(i), j + 1);
            let (top, bottom) = (lattice(self.key, i, j), lattice(self.key, i, next));
            (strength * (top + (bottom - top) * t)) as f32
        };
        let (mut cell, mut left, mut step) = (0, at(0), at(1) - at(0));
        for (out, &(i, t)) in out.iter_mut().zip(&self.columns) {
            if i != cell {
                (cell, left) = (i, at(i));
                step = at(i + 1) - left;
            }
            *out += left + step * t;
        }
    }
}

fn ease(t: f64) -> f64 {
    t * t * (3.0 - 2.0 * t)
}

fn lattice(key: u64, i: i64, j: i64) -> f64 {
    let bits =
        mix(key ^ mix((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (j as u64).rotate_left(32)));
    (bits >> 11) as f64 * (2.0 / 9_007_199_254_740_992.0) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blur_has_the_variance_asked_for_and_keeps_the_sum() {
        for sigma in [0.3, 0.8, 1.7, 4.2] {
            let mut layer = Layer::new(65);
            layer.value[32 * 65 + 32] = 1.0;
            blur(&mut layer.value, 65, sigma);
            let sum: f64 = layer.value.iter().map(|v| f64::from(*v)).sum();
            let along = |f: fn(usize) -> usize| -> f64 {
                let square = |i| (f(i) as f64 - 32.0) * (f(i) as f64 - 32.0);
                (0..65 * 65)
                    .map(|i| f64::from(layer.value[i]) * square(i))
                    .sum()
            };
            assert!((sum - 1.0).abs() < 1e-4, "{sigma} {sum}");
            for second in [along(|i| i % 65), along(|i| i / 65)] {
                assert!(
                    (second - sigma * sigma).abs() < 2e-3 * sigma.max(1.0),
                    "{sigma} {second}"
                );
            }
        }
    }

    #[test]
    fn stroke_covers_its_axis_only() {
        let mut layer = Layer::new(20);
        layer.stroke(
            Stroke {
                a: (4.0, 10.0),
                b: (15.0, 10.0),
                start: 1.0,
                end: 1.0,
            },
            1.0,
        );
        assert_eq!(layer.value[10 * 20 + 8], 1.0);
        assert_eq!(layer.value[13 * 20 + 8], 0.0);
        // A stroke outside the picture is clipped, not a panic.
        layer.stroke(
            Stroke {
                a: (-40.0, -10.0),
                b: (55.0, 90.0),
                start: 1.0,
                end: 9.0,
            },
            1.0,
        );
        assert!(layer.value.iter().all(|v| (0.0..=1.0).contains(v)));
    }

    #[test]
    fn noise_is_smooth_bounded_and_not_constant() {
        let noise = Noise::new(&mut Random::stream(3, &[]), 7.0, 80);
        let rows: Vec<Vec<f32>> = (0..60)
            .map(|y| {
                let mut row = vec![0.25; 80];
                noise.add_row(y, 2.0, &mut row);
                row.iter().map(|v| (v - 0.25) / 2.0).collect()
            })
            .collect();
        let all = || rows.iter().flatten();
        assert!(all().all(|v| v.abs() <= 1.0));
        assert!(all().fold(0.0_f32, |m, v| m.max(v.abs())) > 0.5);
        let smooth = |a: f32, b: f32| (a - b).abs() < 0.45;
        assert!(
            rows.iter()
                .all(|row| row.windows(2).all(|w| smooth(w[0], w[1])))
        );
        assert!(
            rows.windows(2)
                .all(|w| (0..80).all(|x| smooth(w[0][x], w[1][x])))
        );
    }

    #[test]
    fn resize_keeps_a_constant_and_the_mean() {
        let plane: Vec<f32> = (0..100).map(|i| (i % 10 + i / 10) as f32).collect();
        for to in [3, 7, 10, 23] {
            assert!(
                resize(&[2.0; 100], 10, to)
                    .iter()
                    .all(|v| (v - 2.0).abs() < 1e-5)
            );
            let mean = resize(&plane, 10, to).iter().sum::<f32>() / (to * to) as f32;
            assert!((mean - 9.0).abs() < 1e-3, "{to} {mean}");
        }
        assert_eq!(resize(&plane, 10, 10), plane);
    }
}
