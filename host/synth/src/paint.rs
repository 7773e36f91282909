//! From layers to the light that the retina sends back. Knows nothing of labels and cameras; grade and ratio reach it only
//! as marks and as the cup's shape.
//!
//! Colours are display RGB in 0..1. Blood absorbs green and blue far more than red, so a red lesion or a vessel multiplies
//! the channels unequally; deposits mix towards pale yellow.

use crate::anatomy::Anatomy;
use crate::canvas::Noise;
use crate::cohort::Case;
use crate::optic::Optic;
use crate::stamp::Stamps;
use crate::vessels::Tree;

// Single precision: a picture has 8 bits, and twice as many values fit a register.
type Colour = [f32; 3];

/// Red, green and blue, row-major.
pub type Planes = [Vec<f32>; 3];

// Fundus at the posterior pole, from light to dark.
const LIGHT: Colour = [0.87, 0.48, 0.26];
const MEDIUM: Colour = [0.78, 0.39, 0.19];
const DARK: Colour = [0.58, 0.27, 0.125];
const HALO: Colour = [0.98, 0.72, 0.42];
const RIM: Colour = [0.98, 0.70, 0.43];
const CUP: Colour = [1.0, 0.93, 0.75];
const SCLERA: Colour = [0.97, 0.86, 0.64];
const YELLOW: Colour = [0.99, 0.92, 0.55];
const PALE: Colour = [0.97, 0.88, 0.70];
const DRUSEN: Colour = [0.95, 0.79, 0.47];
const CHOROID: Colour = [0.94, 0.54, 0.31];
const REFLEX: Colour = [0.95, 0.62, 0.42];

// What full coverage leaves of each channel.
const ARTERY: Colour = [0.92, 0.60, 0.58];
const VEIN: Colour = [0.74, 0.42, 0.46];
const BLOOD: Colour = [0.62, 0.22, 0.25];
const SPECK: Colour = [0.62, 0.55, 0.55];

// What an eye looks like apart from its structures; drawn once, in this order.
struct Look {
    ground: Colour,
    mottle: [(Noise, f64); 3],
    // Two nets of the choroid's vessels, each a coarse and a fine noise.
    choroid: [[Noise; 2]; 2],
    tessellation: f32,
    cup: f32,
    rim: f32,
    reflex: f32,
}

impl Look {
    fn draw(case: &Case, anatomy: &Anatomy) -> Self {
        let mut random = case.stream(40);
        let unit = anatomy.unit;
        let mut noise = |cell: f64| Noise::new(&mut random, unit * cell, anatomy.size);
        let [a, b, c] = [noise(0.35), noise(0.10), noise(0.035)];
        let choroid = [[noise(0.15), noise(0.06)], [noise(0.19), noise(0.075)]];
        let mottling = random.range(0.6, 1.3);
        let young = ((42.0 - f64::from(case.age)) / 20.0).clamp(0.0, 1.0);
        let hue = random.range(-0.03, 0.03);
        Self {
            ground: ground(case.pigment as f32, hue as f32),
            mottle: [
                (a, 0.05 * mottling),
                (b, 0.035 * mottling),
                (c, 0.02 * mottling),
            ],
            choroid,
            tessellation: if case.tessellation > 0.05 {
                case.tessellation as f32
            } else {
                0.0
            },
            cup: (random.range(0.45, 0.95) * case.cup_effect).min(1.0) as f32,
            rim: random.range(0.74, 1.0) as f32,
            reflex: (young * random.range(0.1, 0.3)) as f32,
        }
    }
}

fn ground(pigment: f32, hue: f32) -> Colour {
    std::array::from_fn(|c| {
        let value = if pigment < 0.5 {
            lerp(LIGHT[c], MEDIUM[c], 2.0 * pigment)
        } else {
            lerp(MEDIUM[c], DARK[c], 2.0 * pigment - 1.0)
        };
        value * (1.0 + hue * [0.5, -0.5, -1.0][c])
    })
}

/// Paints the retina; black where the field cannot be.
pub fn paint(
    case: &Case,
    anatomy: &Anatomy,
    optic: &Optic,
    tree: &Tree,
    stamps: &Stamps,
) -> Planes {
    let size = anatomy.size;
    let look = Look::draw(case, anatomy);
    let scene = Scene {
        anatomy,
        optic,
        tree,
        stamps,
        look: &look,
    };
    let mut planes: Planes = std::array::from_fn(|_| vec![0.0_f32; size * size]);
    let mut texture = vec![0.0_f32; size];
    let mut nets = [vec![0.0_f32; size], vec![0.0_f32; size]];
    for y in 0..size {
        texture.fill(0.0);
        for (noise, strength) in &look.mottle {
            noise.add_row(y, *strength, &mut texture);
        }
        if look.tessellation > 0.0 {
            for (net, [coarse, fine]) in nets.iter_mut().zip(&look.choroid) {
                net.fill(0.0);
                coarse.add_row(y, 1.0, net);
                fine.add_row(y, 0.35, net);
            }
        }
        for x in 0..size {
            let (px, py) = (x as f64, y as f64);
            if !anatomy.visible(px, py, -3.0) {
                continue;
            }
            // Bright bands where a net's noise is near 0, dark islands elsewhere: -1 to 1.
            let ridge = |net: &[f32]| 1.0 - 3.6 * net[x].abs();
            let bands = ridge(&nets[0]).max(ridge(&nets[1])).max(-1.0);
            let colour = scene.behind((px, py), texture[x], bands);
            let colour = scene.before(colour, y * size + x, (px, py));
            for (plane, value) in planes.iter_mut().zip(colour) {
                plane[y * size + x] = value;
            }
        }
    }
    planes
}

fn lerp(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}

fn smoothstep(low: f32, high: f32, x: f32) -> f32 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

// A bell of width 1 without an exponential, 1 at 0 and 0 beyond 3.
fn bell(d: f32) -> f32 {
    let t = (1.0 - d * d * (1.0 / 9.0)).max(0.0);
    let square = t * t;
    square * square
}

struct Scene<'a> {
    anatomy: &'a Anatomy,
    optic: &'a Optic,
    tree: &'a Tree,
    stamps: &'a Stamps,
    look: &'a Look,
}

impl Scene<'_> {
    // Everything that lies behind the vessels: pigment, choroid, macula, disc.
    fn behind(&self, (x, y): (f64, f64), texture: f32, bands: f32) -> Colour {
        let Self { anatomy, look, .. } = self;
        let fovea = anatomy.fovea_distance(x, y) as f32;
        let disc = anatomy.disc_distance(x, y) as f32;
        let mut colour: Colour =
            std::array::from_fn(|c| look.ground[c] * (1.0 + texture * [0.8, 1.2, 1.2][c]));
        if look.tessellation > 0.0 && fovea > 0.4 && disc > 1.1 {
            let bands = bands
                * look.tessellation
                * smoothstep(0.4, 1.8, fovea)
                * smoothstep(1.1, 2.2, disc);
            for (c, value) in colour.iter_mut().enumerate() {
                *value = if bands > 0.0 {
                    lerp(*value, CHOROID[c], 0.42 * bands)
                } else {
                    *value * (1.0 + bands * [0.11, 0.19, 0.19][c])
                };
            }
        }
        if fovea < 2.25 {
            let (macula, pit) = (bell(fovea / 0.75), bell(fovea / 0.14));
            let reflex = look.reflex * bell(fovea / 0.028);
            for (c, value) in colour.iter_mut().enumerate() {
                *value *= 1.0 - macula * [0.10, 0.22, 0.24][c] - pit * [0.05, 0.10, 0.09][c];
                *value = lerp(*value, YELLOW[c], reflex);
            }
        }
        if disc < 5.0 {
            self.near_disc(&mut colour, disc, (x, y));
        }
        colour
    }

    fn near_disc(&self, colour: &mut Colour, disc: f32, (x, y): (f64, f64)) {
        let Self {
            anatomy,
            optic,
            look,
            ..
        } = self;
        let halo = 0.10 * bell((disc - 1.0).max(0.0) / 1.33);
        let crescent = if disc < 3.2 {
            optic.crescent(x, y) as f32
        } else {
            0.0
        };
        for (c, value) in colour.iter_mut().enumerate() {
            *value = lerp(*value, HALO[c], halo);
            *value = lerp(*value, SCLERA[c], 0.8 * crescent);
        }
        if disc > 1.3 {
            return;
        }
        let rim = smoothstep(1.05, 0.95, disc);
        let cup = optic.cup(x, y) as f32 * look.cup;
        let edge = bell((disc - 1.08) / 0.045);
        // The temporal rim is thinner and paler.
        let aside = anatomy.temporal * (x - anatomy.disc.0) / anatomy.disc_radius;
        let pallor = 0.5 + 0.5 * aside as f32;
        for (c, value) in colour.iter_mut().enumerate() {
            *value *= 1.0 - edge * [0.10, 0.16, 0.16][c];
            let tissue = lerp(RIM[c], SCLERA[c], 0.35 * pallor);
            *value = lerp(*value, tissue, rim * look.rim);
            *value = lerp(*value, CUP[c], cup * rim);
        }
    }

    // Vessels and lesions over it.
    fn before(&self, mut colour: Colour, i: usize, (x, y): (f64, f64)) -> Colour {
        let Self { stamps, tree, .. } = self;
        let (drusen, pale, blood, yellow, speck) = (
            stamps.drusen.value[i],
            stamps.pale.value[i],
            stamps.blood.value[i],
            stamps.yellow.value[i],
            stamps.speck.value[i],
        );
        let (mut artery, mut vein) = (tree.artery.value[i], tree.vein.value[i]);
        if drusen + pale + blood + yellow + speck + artery + vein == 0.0 {
            return colour;
        }
        if self.anatomy.disc_distance(x, y) < 1.0 {
            // Vessels dive at the cup's edge: fainter on its floor.
            let dive = 1.0 - 0.5 * self.optic.cup(x, y) as f32;
            (artery, vein) = (artery * dive, vein * dive);
        }
        vein *= 1.0 - artery;
        let reflex = 0.35 * tree.reflex.value[i] * artery;
        for (c, value) in colour.iter_mut().enumerate() {
            *value = lerp(*value, DRUSEN[c], drusen);
            *value *= 1.0 - vein * (1.0 - VEIN[c]);
            *value *= 1.0 - artery * (1.0 - ARTERY[c]);
            *value = lerp(*value, REFLEX[c], reflex);
            *value = lerp(*value, PALE[c], 0.8 * pale);
            *value *= 1.0 - blood * (1.0 - BLOOD[c]);
            *value = lerp(*value, YELLOW[c], yellow);
            *value *= 1.0 - speck * (1.0 - SPECK[c]);
        }
        colour
    }
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
                (
                    truth.fovea.0 + 1.9 * temporal * truth.disc_radius,
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
