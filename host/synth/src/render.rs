//! From layers to pixels: what everything looks like. Knows nothing of labels; grade and ratio reach it only as marks and
//! as the cup's size.
//!
//! Colours are display RGB in 0..1. Blood absorbs green and blue far more than red, so a red lesion or a vessel multiplies
//! the channels unequally; deposits mix towards pale yellow.

use crate::anatomy::Anatomy;
use crate::canvas::{Layer, Noise, Stroke, blur, disc_coverage};
use crate::cohort::Case;
use crate::lesions::Mark;
use crate::maths::{cos, exp, lerp, sin, smoothstep};
use crate::random::Random;
use crate::truth::{LesionKind, Quality};
use crate::vessels::Tree;
use std::f64::consts::TAU;

type Colour = [f64; 3];

// Light and dark fundus at the posterior pole.
const LIGHT: Colour = [0.86, 0.49, 0.28];
const DARK: Colour = [0.66, 0.33, 0.16];
const RIM: Colour = [0.97, 0.73, 0.46];
const CUP: Colour = [1.0, 0.91, 0.72];
const YELLOW: Colour = [0.98, 0.90, 0.55];
const PALE: Colour = [0.96, 0.86, 0.68];
const DRUSEN: Colour = [0.95, 0.78, 0.48];

// What full coverage leaves of each channel.
const ARTERY: Colour = [0.93, 0.68, 0.68];
const VEIN: Colour = [0.80, 0.48, 0.52];
const BLOOD: Colour = [0.66, 0.26, 0.30];
const SPECK: Colour = [0.62, 0.55, 0.55];

struct Lesions {
    blood: Layer,
    yellow: Layer,
    pale: Layer,
    drusen: Layer,
    speck: Layer,
}

/// Renders to `size * size * 3` bytes.
pub fn render(case: &Case, anatomy: &Anatomy, tree: &Tree, marks: &[Mark]) -> Vec<u8> {
    let mut random = case.stream(40);
    let lesions = stamp(anatomy, marks);
    let mut planes = paint(case, anatomy, tree, &lesions, &mut random);
    expose(case, anatomy, &mut planes, &mut random)
}

fn stamp(anatomy: &Anatomy, marks: &[Mark]) -> Lesions {
    let layer = || Layer::new(anatomy.size);
    let mut all = Lesions {
        blood: layer(),
        yellow: layer(),
        pale: layer(),
        drusen: layer(),
        speck: layer(),
    };
    for mark in marks {
        let (target, softness) = match mark.kind {
            LesionKind::Microaneurysm | LesionKind::Haemorrhage => (&mut all.blood, 0.35),
            LesionKind::HardExudate => (&mut all.yellow, 0.25),
            LesionKind::SoftExudate => (&mut all.pale, 1.0),
            LesionKind::Drusen => (&mut all.drusen, 0.8),
            LesionKind::Speck => (&mut all.speck, 0.5),
            LesionKind::Neovascularisation => {
                tuft(&mut all.blood, mark);
                continue;
            }
        };
        blob(target, mark, softness);
    }
    all
}

// An ellipse with an irregular outline; `softness` is the width of its edge in units of its short axis.
fn blob(layer: &mut Layer, mark: &Mark, softness: f64) {
    let (s, c) = (sin(mark.angle), cos(mark.angle));
    let mut random = Random::stream(mark.outline, &[]);
    let ragged = if mark.kind == LesionKind::Haemorrhage {
        0.22
    } else {
        0.08
    };
    let (p, q) = (random.range(-ragged, ragged), random.range(-ragged, ragged));
    let edge = (softness * mark.short).max(0.5);
    layer.raise(mark.x, mark.y, mark.extent() + edge + 1.0, |x, y| {
        let (dx, dy) = (x - mark.x, y - mark.y);
        let (u, v) = (
            (c * dx + s * dy) / mark.long,
            (c * dy - s * dx) / mark.short,
        );
        let r2 = u * u + v * v;
        // Waves of the outline, as polynomials of the direction: no angle needed.
        let wave = if r2 > 1e-9 {
            (p * (u * u - v * v) + q * (2.0 * u * v) * (u - v) / r2.sqrt()) / r2
        } else {
            0.0
        };
        let inside = (1.0 + wave - r2.sqrt()) * mark.short;
        mark.strength * smoothstep(-edge, edge, inside) * (2.0 * mark.short).min(1.0)
    });
}

// New vessels: fine loops out of one foot.
fn tuft(layer: &mut Layer, mark: &Mark) {
    let mut random = Random::stream(mark.outline, &[]);
    for _ in 0..random.count(5, 9) {
        let mut heading = random.range(0.0, TAU);
        let curl = random.range(-0.5, 0.5);
        let mut at = (mark.x, mark.y);
        let step = mark.long * 0.11;
        for _ in 0..random.count(6, 14) {
            heading += curl + random.range(-0.45, 0.45);
            let next = (at.0 + step * cos(heading), at.1 + step * sin(heading));
            let far = ((next.0 - mark.x) * (next.0 - mark.x)
                + (next.1 - mark.y) * (next.1 - mark.y))
                .sqrt();
            if far > mark.long - 1.0 {
                heading += 1.6;
                continue;
            }
            layer.stroke(
                Stroke {
                    a: at,
                    b: next,
                    start: mark.long * 0.035,
                    end: mark.long * 0.03,
                },
                mark.strength,
            );
            at = next;
        }
    }
}

fn paint(
    case: &Case,
    anatomy: &Anatomy,
    tree: &Tree,
    lesions: &Lesions,
    random: &mut Random,
) -> [Vec<f64>; 3] {
    let size = anatomy.size;
    let r = anatomy.radius;
    let mottle = [
        Noise::new(random, r * 0.35),
        Noise::new(random, r * 0.10),
        Noise::new(random, r * 0.035),
    ];
    let mottling = random.range(0.6, 1.3);
    let cup_strength = (random.range(0.35, 0.95) * case.effect).min(1.0);
    let rim_glow = random.range(0.72, 1.0);
    let hue = random.range(-0.03, 0.03);
    let cup = Cup::of(case, anatomy);
    let mut planes = [
        vec![0.0; size * size],
        vec![0.0; size * size],
        vec![0.0; size * size],
    ];
    for i in 0..size * size {
        let (x, y) = ((i % size) as f64, (i / size) as f64);
        if !anatomy.visible(x, y, -3.0) {
            continue;
        }
        let texture = mottling
            * (0.06 * mottle[0].at(x, y) + 0.04 * mottle[1].at(x, y) + 0.022 * mottle[2].at(x, y));
        let fovea = anatomy.fovea_distance(x, y);
        let macula = if fovea < 3.0 {
            exp(-fovea * fovea / 0.55)
        } else {
            0.0
        };
        // Each exponential only where it shows: they are a third of the drawing's cost.
        let pit = if fovea < 0.7 {
            exp(-fovea * fovea / 0.03)
        } else {
            0.0
        };
        let disc = anatomy.disc_distance(x, y);
        let rim = smoothstep(1.06, 0.94, disc) * rim_glow;
        let halo = if disc < 7.0 {
            exp(-(disc - 1.0).max(0.0) * 1.6) * 0.08
        } else {
            0.0
        };
        let hollow = cup.coverage(x, y) * cup_strength;
        // Vessels dive at the cup's edge: fainter on its floor.
        let dive = 1.0 - 0.55 * cup.coverage(x, y);
        let (artery, vein) = (tree.artery.value[i] * dive, tree.vein.value[i] * dive);
        for (channel, plane) in planes.iter_mut().enumerate() {
            let mut value = lerp(LIGHT[channel], DARK[channel], case.pigment);
            value *= 1.0 + texture * [0.8, 1.2, 1.2][channel] + hue * [0.5, -0.5, -1.0][channel];
            value *= 1.0 - macula * [0.10, 0.20, 0.22][channel] - pit * [0.03, 0.08, 0.08][channel];
            value = lerp(value, YELLOW[channel], halo);
            value = lerp(value, DRUSEN[channel], lesions.drusen.value[i]);
            value = lerp(value, RIM[channel], rim);
            value = lerp(value, CUP[channel], hollow * rim);
            value = lerp(value, PALE[channel], 0.8 * lesions.pale.value[i]);
            value *= 1.0 - artery * (1.0 - ARTERY[channel]);
            value *= 1.0 - vein * (1.0 - VEIN[channel]);
            value *= 1.0 - lesions.blood.value[i] * (1.0 - BLOOD[channel]);
            value = lerp(value, YELLOW[channel], lesions.yellow.value[i]);
            value *= 1.0 - lesions.speck.value[i] * (1.0 - SPECK[channel]);
            plane[i] = value;
        }
    }
    planes
}

// The cup: an ellipse of the chosen vertical ratio, moved a little to the temporal side.
struct Cup {
    centre: (f64, f64),
    half: (f64, f64),
}

impl Cup {
    fn of(case: &Case, anatomy: &Anatomy) -> Self {
        let half = (
            anatomy.disc_radius * anatomy.disc_aspect * case.cup_to_disc * 0.97,
            anatomy.disc_radius * case.cup_to_disc,
        );
        let shift = 0.12 * (1.0 - case.cup_to_disc) * anatomy.disc_radius;
        Self {
            centre: (anatomy.disc.0 + anatomy.temporal * shift, anatomy.disc.1),
            half,
        }
    }

    fn coverage(&self, x: f64, y: f64) -> f64 {
        let (u, v) = (
            (x - self.centre.0) / self.half.0,
            (y - self.centre.1) / self.half.1,
        );
        let d = (u * u + v * v).sqrt();
        smoothstep(1.12, 0.88, d)
    }
}

// Camera: illumination, haze, blur, noise, field stop, quantisation.
fn expose(
    case: &Case,
    anatomy: &Anatomy,
    planes: &mut [Vec<f64>; 3],
    random: &mut Random,
) -> Vec<u8> {
    let size = anatomy.size;
    let r = anatomy.radius;
    let poor = case.quality == Quality::Poor;
    let gain = if poor {
        random.range(0.45, 0.72)
    } else {
        random.range(0.86, 1.08)
    };
    let sigma = r * if poor {
        random.range(0.009, 0.018)
    } else {
        random.range(0.001, 0.0042)
    };
    let haze = if poor {
        random.range(0.06, 0.16)
    } else {
        random.range(0.0, 0.03)
    };
    // The ageing lens lets less blue and green through.
    let lens = (f64::from(case.age) - 45.0).max(0.0) / 45.0;
    let tint = [1.0, 1.0 - 0.08 * lens, 1.0 - 0.22 * lens];
    let grain = random.range(0.007, 0.016) * if poor { 1.3 } else { 1.0 };
    let vignette = random.range(0.22, 0.5);
    let (tilt_x, tilt_y) = (random.range(-0.14, 0.14), random.range(-0.14, 0.14));
    for plane in planes.iter_mut() {
        blur(plane, size, sigma);
    }
    let mut bytes = Vec::with_capacity(size * size * 3);
    for i in 0..size * size {
        let (x, y) = ((i % size) as f64, (i / size) as f64);
        let (u, v) = ((x - anatomy.field.0) / r, (y - anatomy.field.1) / r);
        let d = (u * u + v * v).sqrt();
        let stop = disc_coverage(d * r, r - 0.5)
            * (y - anatomy.crop.0).clamp(0.0, 1.0)
            * (anatomy.crop.1 - y).clamp(0.0, 1.0);
        if stop == 0.0 {
            // A nearly black surround, as sensors leave it.
            let dark = (2.3 + 0.35 * random.grain() + 0.5) as u8;
            bytes.extend([dark, dark, dark]);
            continue;
        }
        let light = gain * (1.0 - vignette * d * d * d) * (1.0 + tilt_x * u + tilt_y * v);
        // Shared luminance noise and a weaker one for each channel.
        let common = grain * random.grain();
        for (channel, plane) in planes.iter().enumerate() {
            let own = 0.5 * grain * random.grain();
            let value = lerp(
                plane[i] * light * tint[channel],
                [0.5, 0.42, 0.36][channel] * gain,
                haze,
            ) + common
                + own;
            let value = value * stop + 0.009 + 0.2 * own;
            bytes.push((value.clamp(0.0, 1.0) * 255.0 + 0.5) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use crate::{Config, generate};

    fn mean(eye: &crate::Eye, (x, y): (f64, f64), reach: i32) -> [f64; 3] {
        let size = eye.truth.width as i32;
        let mut sum = [0.0; 3];
        for dy in -reach..=reach {
            for dx in -reach..=reach {
                let (px, py) = (
                    (x as i32 + dx).clamp(0, size - 1),
                    (y as i32 + dy).clamp(0, size - 1),
                );
                for (channel, total) in sum.iter_mut().enumerate() {
                    *total += f64::from(eye.rgb[((py * size + px) * 3) as usize + channel]);
                }
            }
        }
        sum.map(|s| s / f64::from((2 * reach + 1) * (2 * reach + 1)))
    }

    #[test]
    fn a_fundus_is_orange_its_disc_bright_its_fovea_dark_and_its_surround_black() {
        let config = Config::default();
        for index in 0..16 {
            let eye = generate(&config, index);
            let truth = &eye.truth;
            let (disc, fovea) = (mean(&eye, truth.disc, 6), mean(&eye, truth.fovea, 3));
            let beside = mean(
                &eye,
                (
                    truth.fovea.0
                        + 1.9 * (truth.fovea.0 - truth.disc.0).signum() * truth.disc_radius,
                    truth.fovea.1,
                ),
                6,
            );
            assert!(
                beside[0] > beside[1] && beside[1] > beside[2],
                "orange {index} {beside:?}"
            );
            assert!(
                disc[1] > beside[1] * 1.15,
                "disc {index} {disc:?} {beside:?}"
            );
            assert!(fovea[1] < beside[1], "fovea {index} {fovea:?} {beside:?}");
            assert!(mean(&eye, (3.0, 3.0), 2).iter().all(|v| *v < 8.0));
        }
    }
}
