//! The working frame: every photograph with its field at one size, so that a lesion's size in pixels means the same
//! everywhere. Knows geometry and light, not lesions.

use crate::field::Field;
use crate::plane::Plane;

/// Side of the square frame in pixels; divisible by 8 for three halvings.
pub const SIDE: usize = 640;
/// Radius of the field in the frame: near 1:1 for a 50 degree photograph of 768 pixels.
pub const RADIUS: f32 = 308.0;
/// Typical radius of the optic disc in the frame: about a seventh of the field.
pub const DISC_RADIUS: f32 = 0.14 * RADIUS;

/// A photograph in the frame.
pub struct Frame {
    /// Red, green, blue, 0 to 255; black outside the field.
    pub rgb: [Plane; 3],
    /// 1 where the retina is visible, else 0.
    pub mask: Plane,
    /// Green against its surroundings, `(g - background) / (background + 8)`, within [-1, 2]; 0 outside the field.
    pub contrast: Plane,
    /// Robust spread of `contrast` in the field.
    pub spread: f32,
}

impl Frame {
    /// Resamples (bilinear) and normalises.
    pub fn new(rgb: &[u8], width: usize, height: usize, field: &Field) -> Self {
        let mut mask = Plane::new(SIDE, SIDE);
        let mut planes = [
            Plane::new(SIDE, SIDE),
            Plane::new(SIDE, SIDE),
            Plane::new(SIDE, SIDE),
        ];
        let scale = field.radius / RADIUS;
        let middle = 0.5 * (SIDE as f32 - 1.0);
        // The rim is left out: it is dark and blurred, and its edge would ring through every filter.
        let inner = 0.965 * RADIUS;
        let margin = 0.015 * field.radius;
        let columns: Vec<(f32, usize, f32)> = (0..SIDE)
            .map(|x| {
                let sx = field.centre.0 + (x as f32 - middle) * scale;
                let (x0, tx) = split(sx, width);
                (sx, x0, tx)
            })
            .collect();
        for y in 0..SIDE {
            let sy = field.centre.1 + (y as f32 - middle) * scale;
            if sy < field.rows.0 + margin || sy > field.rows.1 - margin {
                continue;
            }
            let (y0, ty) = split(sy, height);
            let y1 = (y0 + 1).min(height - 1);
            for (x, &(sx, x0, tx)) in columns.iter().enumerate() {
                let (dx, dy) = (x as f32 - middle, y as f32 - middle);
                if dx * dx + dy * dy > inner * inner
                    || sx < field.columns.0 + margin
                    || sx > field.columns.1 - margin
                {
                    continue;
                }
                let x1 = (x0 + 1).min(width - 1);
                let corner = [
                    (y0 * width + x0) * 3,
                    (y0 * width + x1) * 3,
                    (y1 * width + x0) * 3,
                    (y1 * width + x1) * 3,
                ];
                mask.value[y * SIDE + x] = 1.0;
                for (channel, plane) in planes.iter_mut().enumerate() {
                    let [a, b, c, d] = corner.map(|i| f32::from(rgb[i + channel]));
                    let (top, bottom) = (a + (b - a) * tx, c + (d - c) * tx);
                    plane.value[y * SIDE + x] = top + (bottom - top) * ty;
                }
            }
        }
        let background = background(&planes[1], &mask);
        let mut contrast =
            planes[1].zip(&background, |g, b| ((g - b) / (b + 8.0)).clamp(-1.0, 2.0));
        contrast
            .value
            .iter_mut()
            .zip(&mask.value)
            .for_each(|(c, m)| *c *= m);
        let spread = spread(&contrast, &mask);
        Self {
            rgb: planes,
            mask,
            contrast,
            spread,
        }
    }
}

fn split(position: f32, size: usize) -> (usize, f32) {
    let position = position.clamp(0.0, size as f32 - 1.0);
    let whole = position as usize;
    (whole, position - whole as f32)
}

// Local mean inside the field at a quarter of the size, once more with what lies far from it clipped: vessels, lesions and
// the disc then hardly pull at it (the idea of background estimation in Foracchia et al. 2005, with means for medians).
fn background(green: &Plane, mask: &Plane) -> Plane {
    let (g, m) = (green.halved().halved(), mask.halved().halved());
    let window = (0.13 * RADIUS / 4.0) as usize;
    let weight = m.window_sum(window);
    let mean = |plane: &Plane| {
        plane
            .window_sum(window)
            .zip(&weight, |sum, n| if n > 0.01 { sum / n } else { 0.0 })
    };
    let first = mean(&g);
    // Outside the field the mask has made both sums 0, inside it pixels on the rim are partly black already.
    let square = g.zip(&m, |g, m| if m > 0.0 { g * g / m } else { 0.0 });
    let deviation = mean(&square).zip(&first, |square, mean| {
        (square - mean * mean).max(0.0).sqrt()
    });
    let mut clipped = g;
    for i in 0..clipped.value.len() {
        let (v, d) = (first.value[i], deviation.value[i]);
        clipped.value[i] = clipped.value[i].clamp(m.value[i] * (v - d), m.value[i] * (v + d));
    }
    enlarge(&mean(&clipped), green.width, green.height)
}

// Bilinear enlargement of a smooth plane by four.
fn enlarge(small: &Plane, width: usize, height: usize) -> Plane {
    let mut out = Plane::new(width, height);
    let columns: Vec<(usize, f32)> = (0..width)
        .map(|x| split((x as f32 - 1.5) / 4.0, small.width))
        .collect();
    for y in 0..height {
        let (y0, ty) = split((y as f32 - 1.5) / 4.0, small.height);
        let (a, b) = (small.row(y0), small.row((y0 + 1).min(small.height - 1)));
        let row = &mut out.value[y * width..][..width];
        for (out, &(x0, tx)) in row.iter_mut().zip(&columns) {
            let x1 = (x0 + 1).min(small.width - 1);
            let (left, right) = (a[x0] + (b[x0] - a[x0]) * ty, a[x1] + (b[x1] - a[x1]) * ty);
            *out = left + (right - left) * tx;
        }
    }
    out
}

// Mean absolute contrast, with what lies beyond three times its first value clipped.
fn spread(contrast: &Plane, mask: &Plane) -> f32 {
    let area = mask
        .value
        .iter()
        .map(|&m| f64::from(m))
        .sum::<f64>()
        .max(1.0);
    let first = contrast
        .value
        .iter()
        .map(|v| f64::from(v.abs()))
        .sum::<f64>()
        / area;
    let limit = 3.0 * first;
    let second = contrast
        .value
        .iter()
        .map(|v| f64::from(v.abs()).min(limit))
        .sum::<f64>()
        / area;
    (second as f32).max(0.004)
}
