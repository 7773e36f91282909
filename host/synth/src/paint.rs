//! From layers to the light that the retina sends back. Knows nothing of labels and cameras; grade and ratio reach it only
//! as marks and as the cup's shape.
//!
//! Colours are display RGB in 0..1. Blood absorbs green and blue far more than red, so a red lesion or a vessel multiplies
//! the channels unequally; deposits mix towards pale yellow.

use crate::anatomy::Anatomy;
use crate::canvas::Noise;
use crate::cohort::Case;
use crate::maths::{lerp, smoothstep};
use crate::optic::Optic;
use crate::stamp::Stamps;
use crate::vessels::Tree;

type Colour = [f64; 3];

/// Red, green and blue, row-major.
pub type Planes = [Vec<f32>; 3];

// Fundus at the posterior pole, from light to dark.
const LIGHT: Colour = [0.87, 0.48, 0.26];
const MEDIUM: Colour = [0.78, 0.39, 0.19];
const DARK: Colour = [0.58, 0.27, 0.125];
const RIM: Colour = [0.98, 0.70, 0.43];
const CUP: Colour = [1.0, 0.93, 0.75];
const SCLERA: Colour = [0.97, 0.86, 0.64];
const YELLOW: Colour = [0.99, 0.92, 0.55];
const PALE: Colour = [0.97, 0.88, 0.70];
const DRUSEN: Colour = [0.95, 0.79, 0.47];
const CHOROID: Colour = [0.93, 0.52, 0.30];

// What full coverage leaves of each channel.
const ARTERY: Colour = [0.92, 0.60, 0.58];
const VEIN: Colour = [0.74, 0.42, 0.46];
const BLOOD: Colour = [0.62, 0.22, 0.25];
const SPECK: Colour = [0.62, 0.55, 0.55];

// What an eye looks like apart from its structures; drawn once, in this order.
struct Look {
    mottle: [(Noise, f64); 3],
    choroid: [Noise; 3],
    cup: f64,
    rim: f64,
    hue: f64,
    reflex: f64,
}

impl Look {
    fn draw(case: &Case, anatomy: &Anatomy) -> Self {
        let mut random = case.stream(40);
        let unit = anatomy.unit;
        let mut noise = |cell: f64| Noise::new(&mut random, unit * cell);
        let mottle = [noise(0.35), noise(0.10), noise(0.035)];
        let choroid = [noise(0.13), noise(0.17), noise(0.25)];
        let mottling = random.range(0.6, 1.3);
        let young = ((42.0 - f64::from(case.age)) / 20.0).clamp(0.0, 1.0);
        Self {
            mottle: [
                (mottle[0], 0.05 * mottling),
                (mottle[1], 0.035 * mottling),
                (mottle[2], 0.02 * mottling),
            ],
            choroid,
            cup: (random.range(0.45, 0.95) * case.cup_effect).min(1.0),
            rim: random.range(0.74, 1.0),
            hue: random.range(-0.03, 0.03),
            reflex: young * random.range(0.1, 0.3),
        }
    }

    // Bright bands of the choroid's vessels between darker islands, -1 to 1.
    fn bands(&self, x: f64, y: f64, unit: f64) -> f64 {
        let bend = 0.09 * unit * self.choroid[2].at(x, y);
        let ridge = |noise: &Noise, u: f64, v: f64| 1.0 - 5.0 * noise.at(u, v).abs();
        ridge(&self.choroid[0], x + bend, 0.8 * y - bend)
            .max(ridge(&self.choroid[1], 0.8 * x - bend, y + bend))
            .clamp(-1.0, 1.0)
    }
}

/// Paints the retina; black where the field cannot be.
pub fn paint(case: &Case, anatomy: &Anatomy, optic: &Optic, tree: &Tree, stamps: &Stamps) -> Planes {
    let size = anatomy.size;
    let look = Look::draw(case, anatomy);
    let ground = ground(case.pigment);
    let mut planes: Planes = std::array::from_fn(|_| vec![0.0_f32; size * size]);
    let mut texture = vec![0.0_f32; size];
    for y in 0..size {
        texture.fill(0.0);
        for (noise, strength) in &look.mottle {
            noise.add_row(y, *strength, &mut texture);
        }
        for (x, texture) in texture.iter().enumerate() {
            let (px, py) = (x as f64, y as f64);
            if !anatomy.visible(px, py, -3.0) {
                continue;
            }
            let i = y * size + x;
            let colour = behind(case, anatomy, optic, &look, ground, (px, py), f64::from(*texture));
            let colour = before(colour, anatomy, optic, tree, stamps, i, (px, py));
            for (plane, value) in planes.iter_mut().zip(colour) {
                plane[i] = value as f32;
            }
        }
    }
    planes
}

fn ground(pigment: f64) -> Colour {
    std::array::from_fn(|c| {
        if pigment < 0.5 {
            lerp(LIGHT[c], MEDIUM[c], 2.0 * pigment)
        } else {
            lerp(MEDIUM[c], DARK[c], 2.0 * pigment - 1.0)
        }
    })
}

// A bell of width 1 without an exponential, 1 at 0 and 0 beyond 3.
fn bell(d: f64) -> f64 {
    let t = (1.0 - d * d / 9.0).max(0.0);
    let square = t * t;
    square * square
}

// Everything that lies behind the vessels: pigment, choroid, macula, disc.
fn behind(
    case: &Case,
    anatomy: &Anatomy,
    optic: &Optic,
    look: &Look,
    ground: Colour,
    (x, y): (f64, f64),
    texture: f64,
) -> Colour {
    let fovea = anatomy.fovea_distance(x, y);
    let disc = anatomy.disc_distance(x, y);
    let macula = bell(fovea / 0.75);
    let pit = bell(fovea / 0.14);
    let reflex = look.reflex * bell(fovea / 0.028);
    let mut bands = 0.0;
    if case.tessellation > 0.05 {
        let weight = case.tessellation * smoothstep(0.4, 1.8, fovea) * smoothstep(1.1, 2.2, disc);
        if weight > 0.01 {
            bands = weight * look.bands(x, y, anatomy.unit);
        }
    }
    let halo = 0.10 / (1.0 + 2.2 * (disc - 1.0).max(0.0) * (disc - 1.0).max(0.0));
    let near = disc < 3.2;
    let crescent = if near { optic.crescent(x, y) } else { 0.0 };
    let (mut rim, mut cup, mut edge, mut pallor) = (0.0, 0.0, 0.0, 0.0);
    if disc < 1.3 {
        rim = smoothstep(1.05, 0.95, disc);
        cup = optic.cup(x, y) * look.cup;
        edge = bell((disc - 1.08) / 0.045);
        // The temporal rim is thinner and paler.
        pallor = 0.5 + 0.5 * anatomy.temporal * (x - anatomy.disc.0) / anatomy.disc_radius;
    }
    std::array::from_fn(|c| {
        let mut value = ground[c];
        value *= 1.0 + texture * [0.8, 1.2, 1.2][c] + look.hue * [0.5, -0.5, -1.0][c];
        if bands > 0.0 {
            value = lerp(value, CHOROID[c], 0.45 * bands);
        } else {
            value *= 1.0 + bands * [0.16, 0.26, 0.26][c];
        }
        value *= 1.0 - macula * [0.10, 0.22, 0.24][c] - pit * [0.05, 0.10, 0.09][c];
        value = lerp(value, YELLOW[c], reflex);
        value = lerp(value, [0.98, 0.72, 0.42][c], halo);
        value = lerp(value, SCLERA[c], 0.8 * crescent);
        value *= 1.0 - edge * [0.10, 0.16, 0.16][c];
        let tissue = lerp(RIM[c], SCLERA[c], 0.35 * pallor);
        value = lerp(value, tissue, rim * look.rim);
        lerp(value, CUP[c], cup * rim)
    })
}

// Vessels and lesions over it.
fn before(
    mut colour: Colour,
    anatomy: &Anatomy,
    optic: &Optic,
    tree: &Tree,
    stamps: &Stamps,
    i: usize,
    (x, y): (f64, f64),
) -> Colour {
    let at = |layer: &crate::canvas::Layer| f64::from(layer.value[i]);
    let (drusen, pale, blood, yellow, speck) = (
        at(&stamps.drusen),
        at(&stamps.pale),
        at(&stamps.blood),
        at(&stamps.yellow),
        at(&stamps.speck),
    );
    let (mut artery, mut vein, reflex) = (at(&tree.artery), at(&tree.vein), at(&tree.reflex));
    if drusen + pale + blood + yellow + speck + artery + vein == 0.0 {
        return colour;
    }
    if anatomy.disc_distance(x, y) < 1.0 {
        // Vessels dive at the cup's edge: fainter on its floor.
        let dive = 1.0 - 0.5 * optic.cup(x, y);
        (artery, vein) = (artery * dive, vein * dive);
    }
    vein *= 1.0 - artery;
    for (c, value) in colour.iter_mut().enumerate() {
        *value = lerp(*value, DRUSEN[c], drusen);
        *value *= 1.0 - vein * (1.0 - VEIN[c]);
        *value *= 1.0 - artery * (1.0 - ARTERY[c]);
        *value = lerp(*value, [0.95, 0.62, 0.42][c], 0.35 * reflex * artery);
        *value = lerp(*value, PALE[c], 0.8 * pale);
        *value *= 1.0 - blood * (1.0 - BLOOD[c]);
        *value = lerp(*value, YELLOW[c], yellow);
        *value *= 1.0 - speck * (1.0 - SPECK[c]);
    }
    colour
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
        for index in 0..24 {
            let eye = generate(&config, index);
            let truth = &eye.truth;
            let (disc, fovea) = (mean(&eye, truth.disc, 6), mean(&eye, truth.fovea, 3));
            let temporal = (truth.fovea.0 - truth.disc.0).signum();
            let beside = mean(
                &eye,
                (truth.fovea.0 + 1.9 * temporal * truth.disc_radius, truth.fovea.1),
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

    #[test]
    fn a_dark_population_is_darker() {
        let green = |pigment: f64| {
            let mut config = Config::default();
            config.populations.truncate(1);
            config.populations[0].pigment = pigment;
            (0..8)
                .map(|i| {
                    let eye = generate(&config, i);
                    mean(&eye, eye.truth.field, 40)[1]
                })
                .sum::<f64>()
        };
        assert!(green(0.95) < 0.75 * green(0.05));
    }
}
