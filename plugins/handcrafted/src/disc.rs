//! Finds the optic disc and guesses the fovea from it. Knows nothing of lesions.

use crate::frame::{DISC_RADIUS, Frame, RADIUS, SIDE};
use crate::plane::Plane;

/// Landmarks in frame pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Landmarks {
    /// Centre of the optic disc.
    pub disc: (f32, f32),
    /// Centre of the fovea: two and a half disc diameters from the disc towards the middle of the field.
    pub fovea: (f32, f32),
}

/// The brightest round patch of the disc's size over which dark lines run: brightness alone falls for exudates, lines alone
/// for the arcades (both cues as in Hoover and Goldbaum 2003 and Niemeijer et al. 2009, simplified). `line` is the line
/// response at a quarter of the frame.
pub fn locate(frame: &Frame, line: &Plane) -> Landmarks {
    let quarter = |plane: &Plane| plane.halved().halved();
    let mask = quarter(&frame.mask);
    let (red, green) = (quarter(&frame.rgb[0]), quarter(&frame.rgb[1]));
    let light = red.zip(&green, |r, g| 0.35 * r + g);
    let r = DISC_RADIUS / 4.0;
    let (inner, outer) = ((0.8 * r) as usize, (2.4 * r) as usize);
    let centre = local_mean(&light, &mask, inner);
    let around = local_mean(&light, &mask, outer);
    let vessels = local_mean(line, &mask, (1.1 * r) as usize);
    let side = SIDE / 4;
    let middle = 0.5 * (side as f32 - 1.0);
    let mut best = (0.0_f32, middle, middle);
    for y in 0..side {
        for x in 0..side {
            let i = y * side + x;
            let (dx, dy) = (x as f32 - middle, y as f32 - middle);
            let reach = (dx * dx + dy * dy).sqrt() * 4.0 / RADIUS;
            if mask.value[i] < 0.5 || reach > 0.9 {
                continue;
            }
            // A disc lies level with the middle of most photographs; far up or down is rarely it.
            let level = 1.0 - 0.6 * (dy * 4.0 / RADIUS).powi(2);
            let glow = ((centre.value[i] - around.value[i]) / (around.value[i] + 8.0)).max(0.0);
            let score = level * glow * vessels.value[i].max(0.0).sqrt();
            if score > best.0 {
                best = (score, x as f32, y as f32);
            }
        }
    }
    let disc = (best.1 * 4.0 + 1.5, best.2 * 4.0 + 1.5);
    let centre = 0.5 * (SIDE as f32 - 1.0);
    let toward = if disc.0 > centre { -1.0 } else { 1.0 };
    Landmarks {
        disc,
        fovea: (
            disc.0 + toward * 5.0 * DISC_RADIUS,
            disc.1 + 0.6 * DISC_RADIUS,
        ),
    }
}

fn local_mean(plane: &Plane, mask: &Plane, radius: usize) -> Plane {
    // Two passes of a square window: rounder than one.
    let weight = mask.window_sum(radius).window_sum(radius);
    plane
        .window_sum(radius)
        .window_sum(radius)
        .zip(&weight, |sum, n| if n > 1.0 { sum / n } else { 0.0 })
}
