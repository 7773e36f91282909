//! The vessel tree: four arcades of an artery and a vein each, with branches. Knows nothing of disease or colour.
//!
//! A trunk follows a guide curve from the disc (temporal ones arch around the macula, nasal ones leave straight); branches
//! grow from it by a steered walk that bends away from the fovea, so that the centre stays free of vessels. In severe
//! retinopathy the veins are beaded.

use crate::anatomy::Anatomy;
use crate::canvas::{Layer, Stroke};
use crate::cohort::Case;
use crate::maths::{cos, sin};
use crate::random::Random;
use std::f64::consts::TAU;

/// Coverage by arteries and by veins.
pub struct Tree {
    pub artery: Layer,
    pub vein: Layer,
    /// The bright line along the wider arteries.
    pub reflex: Layer,
    /// Points along the temporal arcades, within the field.
    pub arcade: Vec<(f64, f64)>,
}

// Vessels end this far from the fovea, in disc diameters (the foveal avascular zone, drawn large).
const FOVEA_CLEARANCE: f64 = 0.42;

// Where strokes go.
struct Pen<'a> {
    anatomy: &'a Anatomy,
    layer: &'a mut Layer,
    reflex: Option<&'a mut Layer>,
    /// Amplitude of the swellings along a trunk.
    beading: f64,
}

impl Pen<'_> {
    fn stroke(&mut self, stroke: Stroke) {
        self.layer.stroke(stroke, 1.0);
        if let Some(reflex) = &mut self.reflex
            && stroke.start > 0.9
        {
            let (start, end) = (stroke.start * 0.28, stroke.end * 0.28);
            reflex.stroke(
                Stroke {
                    start,
                    end,
                    ..stroke
                },
                1.0,
            );
        }
    }
}

/// Whether the veins of a case are beaded.
pub fn beaded(case: &Case) -> bool {
    case.labels.grade >= 3
}

/// Grows and draws the tree.
pub fn draw(case: &Case, anatomy: &Anatomy) -> Tree {
    let mut random = case.stream(20);
    let mut tree = Tree {
        artery: Layer::new(anatomy.size),
        vein: Layer::new(anatomy.size),
        reflex: Layer::new(anatomy.size),
        arcade: Vec::new(),
    };
    // Vessels narrow with age; the vein is a third wider than its artery.
    let width = anatomy.unit * 0.0125 * (1.0 - 0.003 * (f64::from(case.age) - 50.0));
    // Veins first: where they cross, the artery lies above.
    for (vein, offset) in [(true, 0.12), (false, -0.10)] {
        for up in [-1.0, 1.0] {
            let half = width * if vein { 1.2 } else { 0.8 } * random.range(0.92, 1.08);
            let mut pen = Pen {
                anatomy,
                layer: if vein {
                    &mut tree.vein
                } else {
                    &mut tree.artery
                },
                reflex: if vein { None } else { Some(&mut tree.reflex) },
                beading: if vein && beaded(case) { 0.22 } else { 0.0 },
            };
            let reach = random.range(1.75, 2.15) + offset;
            let points = trunk(&mut pen, &mut random, half, |t| {
                temporal_guide(t, up, reach, offset)
            });
            if vein {
                tree.arcade.extend(points);
            }
            let spread = random.range(0.75, 1.3) + 2.0 * offset;
            trunk(&mut pen, &mut random, half * 0.66, |t| {
                (
                    -0.10 - 2.6 * t * (0.35 + 0.65 * t) + offset * 0.4,
                    up * (0.06 + spread * (2.0 * t - 0.7 * t * t)),
                )
            });
        }
    }
    tree
}

// Leaves the disc upwards (or downwards), arches over the macula and comes down again beyond it; disc diameters.
fn temporal_guide(t: f64, up: f64, reach: f64, offset: f64) -> (f64, f64) {
    let along = 5.4 * t * (0.32 + 0.68 * t) - 0.08 + offset * 0.3;
    let rise = 1.0 - (1.0 - t) * (1.0 - t) * (1.0 - t);
    let fall = if t > 0.62 {
        0.9 * (t - 0.62) * (t - 0.62) / 0.1444
    } else {
        0.0
    };
    (along, up * (0.12 + reach * (rise - 0.55 * fall)))
}

// Draws a trunk with its branches and gives the points of the trunk that lie in the field.
fn trunk(
    pen: &mut Pen<'_>,
    random: &mut Random,
    half: f64,
    guide: impl Fn(f64) -> (f64, f64),
) -> Vec<(f64, f64)> {
    let anatomy = pen.anatomy;
    let steps = 90_u32;
    // The tortuosity of a vessel: two slow waves of its own.
    let (phase, tempo, sway) = (
        random.range(0.0, TAU),
        random.range(9.0, 16.0),
        random.range(0.02, 0.06),
    );
    let point = |t: f64| {
        let (u, v) = guide(t);
        let wave = sway
            * (t * 6.0).min(1.0)
            * (sin(phase + tempo * t) + 0.6 * sin(2.3 * phase + 2.1 * tempo * t));
        anatomy.beside_disc(u - wave * 0.4, v + wave)
    };
    let beading = pen.beading;
    let taper = |t: f64| {
        let swell = if beading > 0.0 && t > 0.12 {
            1.0 + beading * sin(phase + 140.0 * t)
        } else {
            1.0
        };
        half * (1.0 - 0.8 * t) * swell
    };
    let mut points = Vec::new();
    let mut next_branch = random.range(0.08, 0.16);
    let mut side = if random.chance(0.5) { 1.0 } else { -1.0 };
    for step in 0..steps {
        let (t0, t1) = (
            f64::from(step) / f64::from(steps),
            f64::from(step + 1) / f64::from(steps),
        );
        let (a, b) = (point(t0), point(t1));
        pen.stroke(Stroke {
            a,
            b,
            start: taper(t0),
            end: taper(t1),
        });
        if !anatomy.visible(b.0, b.1, -4.0) {
            break;
        }
        if anatomy.disc_distance(b.0, b.1) > 1.5 {
            points.push(b);
        }
        if t1 > next_branch {
            next_branch += random.range(0.07, 0.16);
            // Branches leave to one side and the other in turn, with slips.
            if random.chance(0.8) {
                side = -side;
            }
            let heading = turn(unit(b.0 - a.0, b.1 - a.1), side * random.range(0.5, 1.0));
            let length = anatomy.unit * random.range(0.3, 0.8);
            let child = half * (1.0 - 0.8 * t1) * random.range(0.45, 0.7);
            branch(pen, random, b, heading, child, length, 3);
        }
    }
    points
}

fn branch(
    pen: &mut Pen<'_>,
    random: &mut Random,
    mut at: (f64, f64),
    mut heading: (f64, f64),
    half: f64,
    length: f64,
    depth: u32,
) {
    let anatomy = pen.anatomy;
    let step = anatomy.unit * 0.016;
    let steps = (length / step) as u32;
    let mut bend = random.range(-0.06, 0.06);
    for k in 0..steps {
        bend = 0.85 * bend + random.range(-0.035, 0.035);
        heading = turn(heading, bend);
        let near = anatomy.fovea_distance(at.0, at.1);
        let away = unit(at.0 - anatomy.fovea.0, at.1 - anatomy.fovea.1);
        if near < 1.1 {
            // Bend off the fovea the more, the closer it is.
            let push = 0.10 * (1.1 - near);
            heading = unit(heading.0 + push * away.0, heading.1 + push * away.1);
        } else if near < 2.2 {
            // Twigs of the arcades' inner side turn towards the macula.
            heading = unit(heading.0 - 0.012 * away.0, heading.1 - 0.012 * away.1);
        }
        let next = (at.0 + step * heading.0, at.1 + step * heading.1);
        if anatomy.fovea_distance(next.0, next.1) < FOVEA_CLEARANCE
            || !anatomy.visible(next.0, next.1, -4.0)
        {
            return;
        }
        if k > 3 && anatomy.disc_distance(next.0, next.1) < 1.0 {
            return;
        }
        let taper = |k: u32| half * (1.0 - 0.6 * f64::from(k) / f64::from(steps.max(1)));
        pen.stroke(Stroke {
            a: at,
            b: next,
            start: taper(k),
            end: taper(k + 1),
        });
        at = next;
        if depth > 0 && k > 2 && random.chance(0.07) {
            let side = if random.chance(0.5) { 1.0 } else { -1.0 };
            let fork = turn(heading, side * random.range(0.45, 0.9));
            let rest = length * (1.0 - f64::from(k) / f64::from(steps)) * random.range(0.5, 0.9);
            branch(pen, random, at, fork, taper(k) * 0.68, rest, depth - 1);
        }
    }
}

fn unit(x: f64, y: f64) -> (f64, f64) {
    let norm = (x * x + y * y).sqrt().max(1e-12);
    (x / norm, y / norm)
}

fn turn((x, y): (f64, f64), angle: f64) -> (f64, f64) {
    let (s, c) = (sin(angle), cos(angle));
    (c * x - s * y, s * x + c * y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, cohort};

    #[test]
    fn arcades_run_above_and_below_a_fovea_without_vessels() {
        let config = Config::default();
        for index in 0..12 {
            let case = cohort::case(&config, index);
            let anatomy = Anatomy::draw(&config, &case);
            let tree = draw(&case, &anatomy);
            let covered = |x: f64, y: f64| {
                let i = (y.round().clamp(0.0, 319.0) as usize) * 320
                    + x.round().clamp(0.0, 319.0) as usize;
                tree.artery.value[i].max(tree.vein.value[i])
            };
            assert!(
                tree.arcade.len() > 60
                    && tree.arcade.iter().all(|p| anatomy.visible(p.0, p.1, -4.0))
            );
            let (fx, fy) = anatomy.fovea;
            let diameter = 2.0 * anatomy.disc_radius;
            let up =
                (0..100).any(|k| covered(fx, fy - diameter * (1.0 + f64::from(k) * 0.015)) > 0.5);
            let down =
                (0..100).any(|k| covered(fx, fy + diameter * (1.0 + f64::from(k) * 0.015)) > 0.5);
            assert!(up && down, "eye {index}");
            for k in -10..=10 {
                assert!(
                    covered(fx + f64::from(k) * 0.02 * diameter, fy) < 0.5,
                    "eye {index}"
                );
            }
            let share =
                tree.vein.value.iter().filter(|v| **v > 0.5).count() as f64 / (320.0 * 320.0);
            assert!((0.01..0.12).contains(&share), "{share}");
        }
    }
}
