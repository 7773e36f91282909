//! What the camera makes of the retina's light: illumination, blur, resolution, colour response, noise, field stop,
//! quantisation. Knows nothing of disease.

use crate::anatomy::Anatomy;
use crate::camera::Camera;
use crate::canvas::{blur, resize};
use crate::cohort::Case;
use crate::maths::{cos, sin};
use crate::paint::Planes;
use crate::truth::Quality;
use std::f64::consts::TAU;

// The field's edge fades over 0.018 of its radius.
const FADE: f32 = 1.0 / 0.018;

// What one exposure is like; drawn once, in this order, so that every camera sees the same moment.
struct Exposure {
    gain: f64,
    sigma: f64,
    haze: f64,
    grain: f64,
    vignette: f64,
    tilt: (f64, f64),
    glare: (f64, f64),
    tint: [f64; 3],
}

impl Exposure {
    fn draw(case: &Case, camera: &Camera) -> Self {
        let mut random = case.stream(50);
        let poor = case.quality == Quality::Poor;
        // Both drawn, whichever counts.
        let mut either = |good: (f64, f64), bad: (f64, f64)| {
            let (g, b) = (random.range(good.0, good.1), random.range(bad.0, bad.1));
            if poor { b } else { g }
        };
        let gain = either((0.88, 1.08), (0.50, 0.74));
        let soft = either((0.5, 1.7), (0.8, 1.5));
        let defocus = either((0.0, 0.0), (0.008, 0.016));
        let haze = either((0.0, 0.03), (0.06, 0.18));
        let grain = camera.noise * either((0.75, 1.35), (1.0, 1.7));
        let vignette = camera.vignette * random.range(0.75, 1.25);
        let (slope, turn) = (random.unit().sqrt(), random.range(0.0, TAU));
        let tilt = camera.unevenness * slope;
        let side = random.range(0.0, TAU);
        // The ageing lens lets less blue and green through.
        let lens = (f64::from(case.age) - 45.0).max(0.0) / 45.0;
        let age = [1.0, 1.0 - 0.08 * lens, 1.0 - 0.22 * lens];
        let sharp = camera.blur * soft / 1000.0;
        Self {
            gain,
            sigma: (sharp * sharp + defocus * defocus).sqrt(),
            haze,
            grain,
            vignette: vignette.min(0.95),
            tilt: (tilt * cos(turn), tilt * sin(turn)),
            glare: (cos(side), sin(side)),
            tint: std::array::from_fn(|c| camera.tint[c] * age[c]),
        }
    }
}

/// Exposes to `size * size * 3` bytes.
pub fn expose(case: &Case, anatomy: &Anatomy, camera: &Camera, mut planes: Planes) -> Vec<u8> {
    let exposure = Exposure::draw(case, camera);
    let size = anatomy.size;
    for plane in &mut planes {
        blur(plane, size, exposure.sigma * anatomy.radius);
    }
    // The sensor may be coarser than the picture, which is then enlarged.
    let sensor = ((size as f64 * camera.resolution + 0.5) as usize).clamp(16, size);
    if sensor < size {
        planes = planes.map(|plane| resize(&plane, size, sensor));
    }
    sense(case, anatomy, camera, &exposure, &mut planes, sensor);
    if sensor < size {
        planes = planes.map(|plane| resize(&plane, sensor, size));
    }
    let [red, green, blue] = planes;
    let mut bytes = Vec::with_capacity(size * size * 3);
    for ((r, g), b) in red.iter().zip(&green).zip(&blue) {
        bytes.extend([*r, *g, *b].map(|v| (v.clamp(0.0, 1.0) * 255.0 + 0.5) as u8));
    }
    bytes
}

fn sense(
    case: &Case,
    anatomy: &Anatomy,
    camera: &Camera,
    exposure: &Exposure,
    planes: &mut Planes,
    sensor: usize,
) {
    let mut random = case.stream(51);
    let (r, scale) = (anatomy.radius, anatomy.size as f64 / sensor as f64);
    // From here on in single precision, as the planes are.
    let steep = 4.0 * (camera.contrast - 1.0) as f32;
    let gain = exposure.gain as f32;
    let vignette = exposure.vignette as f32;
    let tilt = (exposure.tilt.0 as f32, exposure.tilt.1 as f32);
    let side = (exposure.glare.0 as f32, exposure.glare.1 as f32);
    let (glaring, haze, grain) = (
        0.5 * camera.glare as f32,
        exposure.haze as f32,
        exposure.grain as f32,
    );
    let tint = exposure.tint.map(|t| t as f32);
    let veil = [0.5, 0.42, 0.36].map(|v| v * gain);
    for row in 0..sensor {
        let y = (row as f64 + 0.5) * scale - 0.5;
        let v = ((y - anatomy.field.1) / r) as f32;
        let cut = (y - anatomy.crop.0).clamp(0.0, 1.0) * (anatomy.crop.1 - y).clamp(0.0, 1.0);
        let cut = cut as f32;
        let (first, step) = ((0.5 * scale - 0.5 - anatomy.field.0) / r, scale / r);
        for column in 0..sensor {
            let i = row * sensor + column;
            let u = (first + column as f64 * step) as f32;
            let square = u * u + v * v;
            let (common, own) = random.pixel();
            // A nearly black surround, as sensors leave it.
            let dark = 0.009 + 0.0014 * own[0];
            if square > 1.0 || cut == 0.0 {
                for plane in planes.iter_mut() {
                    plane[i] = dark;
                }
                continue;
            }
            let d = square.sqrt();
            let rim = ((1.0 - d) * FADE).min(1.0);
            let stop = rim * (2.0 - rim) * cut;
            let light = gain * (1.0 - vignette * square * d) * (1.0 + tilt.0 * u + tilt.1 * v);
            let lit = (u * side.0 + v * side.1 - 0.2).max(0.0);
            let glare = glaring * lit * lit;
            for (c, plane) in planes.iter_mut().enumerate() {
                let value = plane[i] * light * tint[c];
                let value = value + (veil[c] - value) * haze;
                let value = value + ([0.95, 0.86, 0.74][c] - value) * glare;
                let t = value.clamp(0.0, 1.0);
                let toned = value + steep * t * (1.0 - t) * (t - 0.5);
                // Luminance noise, and a weaker one of each channel.
                let noisy = toned + grain * (common + 0.5 * own[c]);
                plane[i] = noisy * stop + dark;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Camera, Config, generate};

    fn shot(camera: Camera, index: u32) -> crate::Eye {
        let config = Config {
            cameras: vec![camera],
            poor_quality: 0.0,
            ..Config::default()
        };
        generate(&config, index)
    }

    fn a() -> Camera {
        Camera::preset("A").unwrap()
    }

    // Mean of each channel, and mean absolute difference of neighbours, over the middle of the picture.
    fn looks(eye: &crate::Eye) -> ([f64; 3], f64) {
        let size = eye.truth.width as usize;
        let (low, high) = (size / 4, size * 3 / 4);
        let (mut sum, mut step, mut n) = ([0.0; 3], 0.0, 0.0);
        for y in low..high {
            for x in low..high {
                let p = (y * size + x) * 3;
                for (c, s) in sum.iter_mut().enumerate() {
                    *s += f64::from(eye.rgb[p + c]);
                }
                step += f64::from(eye.rgb[p + 1].abs_diff(eye.rgb[p + 4]));
                n += 1.0;
            }
        }
        (sum.map(|s| s / n), step / n)
    }

    #[test]
    fn each_property_of_a_camera_shows_and_leaves_the_eye_alone() {
        for index in [0, 5] {
            let plain = shot(a(), index);
            let (colour, step) = looks(&plain);
            let tinted = looks(&shot(
                Camera {
                    tint: [1.0, 1.2, 0.7],
                    ..a()
                },
                index,
            ))
            .0;
            assert!(tinted[1] > colour[1] * 1.1 && tinted[2] < colour[2] * 0.8);
            assert!((tinted[0] - colour[0]).abs() < 1.0);
            assert!(looks(&shot(Camera { noise: 0.05, ..a() }, index)).1 > step * 1.5);
            assert!(
                looks(&shot(
                    Camera {
                        blur: 12.0,
                        noise: 0.0,
                        ..a()
                    },
                    index
                ))
                .1 < step
            );
            assert!(
                looks(&shot(
                    Camera {
                        resolution: 0.3,
                        ..a()
                    },
                    index
                ))
                .1 < step
            );
            let lit = |eye: &crate::Eye| eye.rgb.iter().filter(|v| **v > 30).count();
            assert!(lit(&shot(Camera { cut: 0.3, ..a() }, index)) < lit(&plain));
            assert!(lit(&shot(Camera { fill: 0.75, ..a() }, index)) < lit(&plain));
            assert!(
                lit(&shot(
                    Camera {
                        vignette: 0.9,
                        ..a()
                    },
                    index
                )) < lit(&plain)
            );
            let wide = shot(Camera { field: 60.0, ..a() }, index);
            assert!(wide.truth.disc_radius < plain.truth.disc_radius * 0.8);
            for name in Camera::PRESETS {
                let other = shot(Camera::preset(name).unwrap(), index);
                assert_ne!(name == "A", other.rgb != plain.rgb);
                assert_eq!(other.truth.labels, plain.truth.labels);
                assert_eq!(other.truth.cup_to_disc, plain.truth.cup_to_disc);
                assert_eq!(other.truth.age, plain.truth.age);
            }
        }
    }
}
