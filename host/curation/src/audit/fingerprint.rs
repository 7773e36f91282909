//! What a picture looks like, in 64 bits and 195 numbers, and how alike two pictures are. Knows no files and no search.
//!
//! The picture is brought to 32 x 32 (aspect ignored, bilinear with the support that shrinking needs, JPEG decoded at a reduced scale where that will do)
//! and to grey as `(299 R + 587 G + 114 B) / 1000`. Of its two-dimensional DCT-II (orthonormal, `u` across, `v` down):
//! * the hash has a bit for each `u`, `v` in 1 to 8, row by row from the lowest bit: set where the coefficient is above the median of the 64;
//! * the shape is the coefficients with `5 <= u + v < 20`, row by row, scaled to length 1.
//!
//! Photographs of the fundus are all a bright disc on black, so a hash of the lowest frequencies alone takes different eyes for one: in the 133,000 pairs
//! of IDRiD some hundred differ in 6 bits or fewer. The shape leaves the disc out, and decides. A mirrored, turned or cropped copy is not found.

use std::sync::LazyLock;

use focus_images::{Decode, Geometry, PrepareSpec, ResizeFilter};

/// Side of the small picture.
pub(super) const SIDE: usize = 32;
/// Coefficients in each direction that are computed.
const KEPT: usize = 20;
/// Coefficients of the shape: those with `u + v` from 5 to 19.
pub(super) const SHAPE: usize = 195;
/// Mean square, in grey levels, under which the shape is only rounding.
const FLAT: f64 = 0.05;

/// How the small picture is made.
pub(super) fn spec() -> PrepareSpec {
    PrepareSpec::new(
        SIDE as u32,
        SIDE as u32,
        Geometry::Squash,
        ResizeFilter::Bilinear,
    )
    .with_decode(Decode::Fast)
}

/// A picture's looks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fingerprint {
    pub(super) hash: u64,
    /// Of length 1; absent where the picture has no structure.
    pub(super) shape: Option<Box<[f32; SHAPE]>>,
}

/// `WAVES[u][x]`: orthonormal DCT-II.
static WAVES: LazyLock<[[f64; SIDE]; KEPT]> = LazyLock::new(|| {
    std::array::from_fn(|u| {
        let scale = libm::sqrt(if u == 0 { 1.0 } else { 2.0 } / SIDE as f64);
        std::array::from_fn(|x| {
            let angle = std::f64::consts::PI * (2 * x + 1) as f64 * u as f64 / (2 * SIDE) as f64;
            scale * libm::cos(angle)
        })
    })
});

impl Fingerprint {
    /// Of `SIDE * SIDE` RGB pixels.
    pub(super) fn of(rgb: &[u8]) -> Self {
        assert_eq!(rgb.len(), SIDE * SIDE * 3, "the small picture");
        let waves = &*WAVES;
        let mut across = [[0.0; KEPT]; SIDE];
        for (row, across) in rgb.chunks_exact(SIDE * 3).zip(&mut across) {
            let grey: [f64; SIDE] = std::array::from_fn(|x| {
                let [r, g, b] = [row[3 * x], row[3 * x + 1], row[3 * x + 2]].map(f64::from);
                (299.0 * r + 587.0 * g + 114.0 * b) / 1000.0
            });
            for (wave, sum) in waves.iter().zip(across) {
                *sum = wave.iter().zip(&grey).map(|(w, g)| w * g).sum();
            }
        }
        let mut coefficients = [[0.0; KEPT]; KEPT];
        for (wave, line) in waves.iter().zip(&mut coefficients) {
            for (weight, row) in wave.iter().zip(&across) {
                for (sum, value) in line.iter_mut().zip(row) {
                    *sum += weight * value;
                }
            }
        }
        let low: [f64; 64] = std::array::from_fn(|i| coefficients[1 + i / 8][1 + i % 8]);
        let mut sorted = low;
        sorted.sort_by(f64::total_cmp);
        let median = f64::midpoint(sorted[31], sorted[32]);
        let hash = low
            .iter()
            .enumerate()
            .fold(0, |hash, (i, value)| hash | u64::from(*value > median) << i);
        let mut values = [0.0; SHAPE];
        let places = (0..KEPT).flat_map(|v| (0..KEPT).map(move |u| (v, u)));
        let band = places.filter(|(v, u)| (5..20).contains(&(u + v)));
        for (value, (v, u)) in values.iter_mut().zip(band) {
            *value = coefficients[v][u];
        }
        let square: f64 = values.iter().map(|value| value * value).sum();
        let shape = (square / (SIDE * SIDE) as f64 >= FLAT).then(|| {
            let length = libm::sqrt(square);
            Box::new(values.map(|value| (value / length) as f32))
        });
        Self { hash, shape }
    }
}

/// Cosine of the angle between two shapes, at most about 1.
pub(super) fn similarity(a: &[f32; SHAPE], b: &[f32; SHAPE]) -> f32 {
    // Eight sums, so that the compiler may take eight products at a time.
    let mut sums = [0.0f32; 8];
    let (blocks_a, rest_a) = a.as_chunks::<8>();
    let (blocks_b, rest_b) = b.as_chunks::<8>();
    for (a, b) in blocks_a.iter().zip(blocks_b) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(at: impl Fn(usize, usize) -> u8) -> Vec<u8> {
        let pixels = (0..SIDE * SIDE).flat_map(|i| [at(i % SIDE, i / SIDE); 3]);
        pixels.collect()
    }

    #[test]
    fn a_single_wave_lights_its_own_bit() {
        // cos of u = 3 across, v = 2 down: one coefficient is large, the others are rounding.
        let waves = &*WAVES;
        let wave = picture(|x, y| (128.0 + 1000.0 * waves[3][x] * waves[2][y]) as u8);
        let found = Fingerprint::of(&wave);
        assert_ne!(found.hash & 1 << (8 + 2), 0, "bit of v = 2, u = 3");
        let shape = found.shape.expect("structure");
        let place = shape
            .iter()
            .position(|value| *value > 0.99)
            .expect("one value holds nearly all");
        // In row v = 2 the band starts at u = 3; rows 0 and 1 hold 15 values each.
        assert_eq!(place, 30);
    }

    #[test]
    fn flat_pictures_have_no_shape() {
        for value in [0, 77, 255] {
            assert_eq!(Fingerprint::of(&picture(|_, _| value)).shape, None);
        }
        // A lone bright half is a low frequency, but its edge is structure.
        assert!(
            Fingerprint::of(&picture(|x, _| if x < 16 { 0 } else { 255 }))
                .shape
                .is_some()
        );
    }

    #[test]
    fn brightness_and_contrast_change_little_and_noise_differs() {
        let noise = |seed: usize| {
            move |x: usize, y: usize| ((x * 37 + y * 101 + (x * y + seed) % 17 * seed) % 128) as u8
        };
        let a = Fingerprint::of(&picture(noise(5)));
        let brighter = Fingerprint::of(&picture(|x, y| noise(5)(x, y) + 40));
        let other = Fingerprint::of(&picture(noise(11)));
        let shape = |f: &Fingerprint| f.shape.clone().expect("structure");
        assert!((a.hash ^ brighter.hash).count_ones() <= 1);
        assert!(similarity(&shape(&a), &shape(&brighter)) > 0.9999);
        assert!(similarity(&shape(&a), &shape(&other)) < 0.9);
        assert!((similarity(&shape(&a), &shape(&a)) - 1.0).abs() < 1e-5);
    }
}
