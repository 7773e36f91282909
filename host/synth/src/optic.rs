//! The shape of the optic nerve head: disc, cup with or without a notch, myopic crescent. Knows nothing of colour.

use crate::anatomy::Anatomy;
use crate::cohort::Case;
use crate::maths::{cos, sin, smoothstep};
use std::f64::consts::TAU;

/// Geometry of the nerve head, in pixels.
#[derive(Debug, Clone)]
pub struct Optic {
    centre: (f64, f64),
    /// Half diameters of the cup along its axes, before the notch.
    half: (f64, f64),
    /// Direction and depth of the notch; depth 0 where there is none.
    notch: ((f64, f64), f64),
    /// Centre and half diameters of the ellipse whose part outside the disc is the crescent.
    crescent: Option<((f64, f64), (f64, f64))>,
}

const DIRECTIONS: u32 = 180;

impl Optic {
    /// Shapes the cup so that its vertical extent, the notch included, is the asked share of the disc's, and that all of it
    /// lies within the disc.
    pub fn draw(case: &Case, anatomy: &Anatomy) -> Self {
        let mut random = case.stream(25);
        let disc = (
            anatomy.disc_radius * anatomy.disc_aspect,
            anatomy.disc_radius,
        );
        let notched = random.chance(0.5) && case.labels.gon && case.cup_to_disc < 0.84;
        let down = if random.chance(0.7) { 1.0 } else { -1.0 };
        let slant = random.range(0.9, 1.25);
        let mut depth = if notched {
            random.range(0.25, 0.42)
        } else {
            0.0
        };
        let mut width = random.range(0.92, 1.02);
        let rim = (1.0 - case.cup_to_disc) * disc.1;
        let rise = if notched {
            0.3 * down
        } else {
            random.range(-0.12, 0.12)
        } * rim;
        let mut aside = 0.12 * rim;
        let direction = (anatomy.temporal * cos(slant), down * sin(slant));
        loop {
            let mut optic = Self {
                centre: (0.0, 0.0),
                half: (disc.0 / disc.1 * width, 1.0),
                notch: (direction, depth),
                crescent: None,
            };
            let (mut top, mut bottom) = (0.0_f64, 0.0_f64);
            for (c, s) in directions() {
                let y = s * optic.boundary(c, s);
                (top, bottom) = (top.min(y), bottom.max(y));
            }
            let scale = 2.0 * case.cup_to_disc * disc.1 / (bottom - top);
            optic.half = (optic.half.0 * scale, scale);
            optic.centre = (
                anatomy.disc.0 + anatomy.temporal * aside,
                anatomy.disc.1 + rise - 0.5 * scale * (top + bottom),
            );
            let within = directions().all(|(c, s)| {
                let reach = optic.boundary(c, s);
                let (x, y) = (optic.centre.0 + c * reach, optic.centre.1 + s * reach);
                anatomy.disc_distance(x, y) < 0.985
            });
            if within || width < 0.5 {
                if case.crescent > 0.0 {
                    let w = case.crescent;
                    let shift = anatomy.temporal * disc.0 * 0.5 * w;
                    optic.crescent = Some((
                        (anatomy.disc.0 + shift, anatomy.disc.1),
                        (disc.0 * (1.0 + 0.5 * w), disc.1 * (1.0 + 0.12 * w)),
                    ));
                }
                return optic;
            }
            (width, depth, aside) = (width * 0.96, depth * 0.9, aside * 0.8);
        }
    }

    /// Whether the rim has a notch.
    pub fn notched(&self) -> bool {
        self.notch.1 > 0.0
    }

    // Distance from the cup's centre to its edge in the direction of a unit vector.
    fn boundary(&self, c: f64, s: f64) -> f64 {
        let (u, v) = (c / self.half.0, s / self.half.1);
        let ((nx, ny), depth) = self.notch;
        let along = (c * nx + s * ny).max(0.0);
        let square = along * along;
        (1.0 + depth * square * square * square) / (u * u + v * v).sqrt()
    }

    /// Distance from the cup's centre as a share of the way to its edge: below 1 in the cup.
    pub fn cup_distance(&self, x: f64, y: f64) -> f64 {
        let (dx, dy) = (x - self.centre.0, y - self.centre.1);
        let reach = (dx * dx + dy * dy).sqrt();
        if reach < 1e-9 {
            return 0.0;
        }
        reach / self.boundary(dx / reach, dy / reach)
    }

    /// Depth of the cup at a point, 0 to 1; one half at its edge.
    pub fn cup(&self, x: f64, y: f64) -> f64 {
        smoothstep(1.18, 0.82, self.cup_distance(x, y))
    }

    /// Coverage by the crescent's ellipse, disc included, 0 to 1; one half at its edge.
    pub fn crescent(&self, x: f64, y: f64) -> f64 {
        let Some((centre, half)) = self.crescent else {
            return 0.0;
        };
        let (u, v) = ((x - centre.0) / half.0, (y - centre.1) / half.1);
        smoothstep(1.06, 0.94, (u * u + v * v).sqrt())
    }
}

fn directions() -> impl Iterator<Item = (f64, f64)> {
    (0..DIRECTIONS).map(|k| {
        let turn = f64::from(k) * TAU / f64::from(DIRECTIONS);
        (cos(turn), sin(turn))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, cohort};

    #[test]
    fn the_cup_has_the_vertical_extent_asked_for_and_lies_in_the_disc() {
        let config = Config {
            gon: 0.6,
            size: 400,
            ..Config::default()
        };
        let mut notches = 0;
        for index in 0..config.images() {
            let case = cohort::case(&config, index);
            let anatomy = Anatomy::draw(&config, &case);
            let optic = Optic::draw(&case, &anatomy);
            notches += u32::from(optic.notched());
            assert!(!optic.notched() || case.labels.gon);
            let ends: Vec<f64> = (0..2000)
                .map(|k| {
                    let (s, c) = (f64::from(k) * TAU / 2000.0).sin_cos();
                    let reach = optic.boundary(c, s);
                    let at = (optic.centre.0 + c * reach, optic.centre.1 + s * reach);
                    assert!(anatomy.disc_distance(at.0, at.1) < 1.0, "eye {index}");
                    at.1
                })
                .collect();
            let (low, high) = ends
                .iter()
                .fold((f64::MAX, f64::MIN), |(l, h), y| (l.min(*y), h.max(*y)));
            let ratio = (high - low) / (2.0 * anatomy.disc_radius);
            assert!((ratio - case.cup_to_disc).abs() < 1e-3, "{ratio}");
            let (dx, dy) = (optic.centre.0 + 0.3, optic.centre.1);
            assert!(optic.cup_distance(dx, dy) < 1.0 && optic.cup(dx, dy) > 0.9);
        }
        assert!((30..100).contains(&notches), "{notches}");
    }
}
