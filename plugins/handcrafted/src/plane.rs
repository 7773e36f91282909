//! One-channel pictures and the filters on them. Knows nothing of eyes.

use std::cell::RefCell;

/// A row-major picture of `f32`. Its memory goes back to a shelf of the thread when it is dropped: planes are megabytes, and
/// asking the system for each anew costs a fifth of the run in page faults.
#[derive(Debug)]
pub struct Plane {
    pub width: usize,
    pub height: usize,
    pub value: Vec<f32>,
}

thread_local! {
    static SHELF: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}
// Enough for every plane alive at once; more would only be kept.
const SHELF_SIZE: usize = 40;

impl Drop for Plane {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.value);
        // While the thread ends its shelf is gone already; the memory then just goes.
        let _ = SHELF.try_with(|shelf| {
            let mut shelf = shelf.borrow_mut();
            if shelf.len() < SHELF_SIZE {
                shelf.push(value);
            }
        });
    }
}

// An empty vector from the shelf: the smallest that holds `size`, else a new one.
fn take(size: usize) -> Vec<f32> {
    let found = SHELF.try_with(|shelf| {
        let mut shelf = shelf.borrow_mut();
        let fit = (0..shelf.len())
            .filter(|&i| shelf[i].capacity() >= size)
            .min_by_key(|&i| shelf[i].capacity());
        fit.map(|i| shelf.swap_remove(i))
    });
    let mut value = found
        .ok()
        .flatten()
        .unwrap_or_else(|| Vec::with_capacity(size));
    value.clear();
    value
}

impl Clone for Plane {
    fn clone(&self) -> Self {
        let mut value = take(self.value.len());
        value.extend_from_slice(&self.value);
        Self {
            width: self.width,
            height: self.height,
            value,
        }
    }
}

impl Plane {
    pub fn new(width: usize, height: usize) -> Self {
        let mut value = take(width * height);
        value.resize(width * height, 0.0);
        Self {
            width,
            height,
            value,
        }
    }

    pub fn row(&self, y: usize) -> &[f32] {
        &self.value[y * self.width..][..self.width]
    }

    /// Pixel by pixel out of two planes of one shape.
    pub fn zip(&self, other: &Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut value = take(self.value.len());
        value.extend(self.value.iter().zip(&other.value).map(|(&a, &b)| f(a, b)));
        Self {
            width: self.width,
            height: self.height,
            value,
        }
    }

    /// Half the size: means of blocks of four. An odd last row or column is left out.
    pub fn halved(&self) -> Self {
        let mut half = Self::new(self.width / 2, self.height / 2);
        let width = half.width;
        for y in 0..half.height {
            let (a, b) = (self.row(2 * y), self.row(2 * y + 1));
            let out = &mut half.value[y * width..][..width];
            for (x, out) in out.iter_mut().enumerate() {
                *out = 0.25 * (a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1]);
            }
        }
        half
    }

    /// Gaussian of `sigma` pixels, cut at three sigma; edges repeat.
    pub fn gaussian(&self, sigma: f32) -> Self {
        let radius = (3.0 * sigma).ceil().max(1.0) as usize;
        let mut taps: Vec<f32> = (0..=radius)
            .map(|i| (-0.5 * (i as f32 / sigma).powi(2)).exp())
            .collect();
        let sum = taps[0] + 2.0 * taps[1..].iter().sum::<f32>();
        for tap in &mut taps {
            *tap /= sum;
        }
        let mut across = Self::new(self.width, self.height);
        let mut padded = vec![0.0; self.width + 2 * radius];
        for y in 0..self.height {
            let row = self.row(y);
            padded[..radius].fill(row[0]);
            padded[radius..radius + self.width].copy_from_slice(row);
            padded[radius + self.width..].fill(row[self.width - 1]);
            let out = &mut across.value[y * self.width..][..self.width];
            accumulate(out, taps[0], &padded[radius..], None);
            for (i, &tap) in taps.iter().enumerate().skip(1) {
                accumulate(out, tap, &padded[radius - i..], Some(&padded[radius + i..]));
            }
        }
        let mut down = Self::new(self.width, self.height);
        let last = self.height - 1;
        for y in 0..self.height {
            let out = &mut down.value[y * self.width..][..self.width];
            accumulate(out, taps[0], across.row(y), None);
            for (i, &tap) in taps.iter().enumerate().skip(1) {
                accumulate(
                    out,
                    tap,
                    across.row(y.saturating_sub(i)),
                    Some(across.row((y + i).min(last))),
                );
            }
        }
        down
    }

    /// Sum over a square of side `2 * radius + 1`, cut at the edges. Kept in f64, so that running errors do not grow.
    pub fn window_sum(&self, radius: usize) -> Self {
        let mut across = Self::new(self.width, self.height);
        for y in 0..self.height {
            let row = self.row(y);
            let out = &mut across.value[y * self.width..][..self.width];
            let mut sum: f64 = row[..radius.min(self.width)]
                .iter()
                .map(|&v| f64::from(v))
                .sum();
            for x in 0..self.width {
                if x + radius < self.width {
                    sum += f64::from(row[x + radius]);
                }
                if x > radius {
                    sum -= f64::from(row[x - radius - 1]);
                }
                out[x] = sum as f32;
            }
        }
        let mut down = Self::new(self.width, self.height);
        let mut sums = vec![0.0_f64; self.width];
        for y in 0..self.height.min(radius) {
            sums.iter_mut()
                .zip(across.row(y))
                .for_each(|(s, &v)| *s += f64::from(v));
        }
        for y in 0..self.height {
            if y + radius < self.height {
                sums.iter_mut()
                    .zip(across.row(y + radius))
                    .for_each(|(s, &v)| *s += f64::from(v));
            }
            if y > radius {
                sums.iter_mut()
                    .zip(across.row(y - radius - 1))
                    .for_each(|(s, &v)| *s -= f64::from(v));
            }
            let out = &mut down.value[y * self.width..][..self.width];
            out.iter_mut().zip(&sums).for_each(|(o, &s)| *o = s as f32);
        }
        down
    }
}

fn accumulate(out: &mut [f32], tap: f32, a: &[f32], b: Option<&[f32]>) {
    let n = out.len();
    match b {
        None => out
            .iter_mut()
            .zip(&a[..n])
            .for_each(|(o, &a)| *o += tap * a),
        Some(b) => out
            .iter_mut()
            .zip(&a[..n])
            .zip(&b[..n])
            .for_each(|((o, &a), &b)| *o += tap * (a + b)),
    }
}

/// Curvature of a plane: what is round and what is long, dark and bright. Responses are contrast times pixels squared
/// over sigma squared, that is comparable between scales.
pub struct Curvature {
    /// Both curvatures upward: a dark spot. The smaller of the two, so that a line gives little.
    pub dark: Plane,
    /// Both curvatures downward: a bright spot.
    pub bright: Plane,
    /// One strong upward curvature only: a dark line.
    pub line: Plane,
}

/// Eigenvalues of the Hessian of an already smoothed plane, scale-normalised by `sigma` (Lindeberg 1998; the split into
/// round and long after Frangi et al. 1998). The border of one pixel is 0.
pub fn curvature(plane: &Plane, sigma: f32) -> Curvature {
    let (w, h) = (plane.width, plane.height);
    let mut out = Curvature {
        dark: Plane::new(w, h),
        bright: Plane::new(w, h),
        line: Plane::new(w, h),
    };
    if w < 3 || h < 3 {
        return out;
    }
    let s2 = sigma * sigma;
    for y in 1..h - 1 {
        let (above, here, below) = (plane.row(y - 1), plane.row(y), plane.row(y + 1));
        let span = y * w + 1..(y + 1) * w - 1;
        let dark = &mut out.dark.value[span.clone()];
        let bright = &mut out.bright.value[span.clone()];
        let line = &mut out.line.value[span];
        for x in 0..w - 2 {
            let xx = here[x] - 2.0 * here[x + 1] + here[x + 2];
            let yy = above[x + 1] - 2.0 * here[x + 1] + below[x + 1];
            let xy = 0.25 * (above[x] - above[x + 2] - below[x] + below[x + 2]);
            let (mean, gap) = (0.5 * (xx + yy), 0.5 * (xx - yy));
            let root = (gap * gap + xy * xy).sqrt();
            let (low, high) = (s2 * (mean - root), s2 * (mean + root));
            dark[x] = low.max(0.0);
            bright[x] = (-high).max(0.0);
            line[x] = (high - 2.0 * low.abs()).max(0.0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(sign: f32) -> Plane {
        let mut plane = Plane::new(41, 41);
        for (i, v) in plane.value.iter_mut().enumerate() {
            let (dx, dy) = ((i % 41) as f32 - 20.0, (i / 41) as f32 - 20.0);
            *v = sign * (-(dx * dx + dy * dy) / 18.0).exp();
        }
        plane
    }

    #[test]
    fn gaussian_keeps_constants_and_adds_variance() {
        let flat = Plane {
            width: 9,
            height: 7,
            value: vec![3.0; 63],
        };
        assert!(
            flat.gaussian(2.0)
                .value
                .iter()
                .all(|v| (v - 3.0).abs() < 1e-5)
        );
        let mut dot = Plane::new(61, 61);
        dot.value[30 * 61 + 30] = 1.0;
        let soft = dot.gaussian(2.5);
        let variance: f32 = soft
            .value
            .iter()
            .enumerate()
            .map(|(i, v)| v * ((i % 61) as f32 - 30.0).powi(2))
            .sum();
        assert!((variance / 6.25 - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn window_sum_is_the_plain_sum() {
        let plane = Plane {
            width: 6,
            height: 5,
            value: (0..30_u8).map(f32::from).collect(),
        };
        let sums = plane.window_sum(2);
        for y in 0..5_usize {
            for x in 0..6_usize {
                let mut expected = 0.0;
                for j in y.saturating_sub(2)..=(y + 2).min(4) {
                    for i in x.saturating_sub(2)..=(x + 2).min(5) {
                        expected += plane.value[j * 6 + i];
                    }
                }
                assert_eq!(sums.value[y * 6 + x], expected, "{x} {y}");
            }
        }
        assert!(plane.window_sum(50).value.iter().all(|v| *v == 435.0));
    }

    #[test]
    fn curvature_tells_dark_bright_and_line_apart() {
        let centre = 20 * 41 + 20;
        let dark = curvature(&spot(-1.0), 3.0);
        assert!(
            dark.dark.value[centre] > 0.5
                && dark.bright.value[centre] == 0.0
                && dark.line.value[centre] == 0.0
        );
        let bright = curvature(&spot(1.0), 3.0);
        assert!(bright.bright.value[centre] > 0.5 && bright.dark.value[centre] == 0.0);
        let mut bar = Plane::new(41, 41);
        for (i, v) in bar.value.iter_mut().enumerate() {
            *v = -(-((i % 41) as f32 - 20.0).powi(2) / 18.0).exp();
        }
        let line = curvature(&bar, 3.0);
        assert!(line.line.value[centre] > 0.5 && line.dark.value[centre] < 1e-4);
        // Too small to have curvature.
        assert!(
            curvature(&Plane::new(2, 2), 1.0)
                .dark
                .value
                .iter()
                .all(|v| *v == 0.0)
        );
    }
}
