//! Where disease shows, by grade. Knows nothing of colour; what a kind looks like is `render`'s business.
//!
//! Counts follow the ICDR scale in outline: microaneurysms alone (1); some haemorrhages and exudates (2); many in all
//! quadrants (3); new vessels (4). Severities overlap, the faintest lesions lie near the noise, and grade 0 has drusen
//! and specks, so that telling grades apart takes more than counting spots. Edema is exact: level 2 where a hard exudate's
//! centre lies within a third of a disc diameter of the fovea, level 1 where one lies within one, else 0.

use crate::anatomy::Anatomy;
use crate::cohort::Case;
use crate::maths::{cos, lerp, sin};
use crate::random::Random;
use crate::truth::{Lesion, LesionKind};
use std::f64::consts::{PI, TAU};

/// Edema reaches the centre up to this distance from the fovea, in disc diameters.
pub const CENTRAL: f64 = 1.0 / 3.0;

/// One lesion as drawn.
#[derive(Debug, Clone)]
pub struct Mark {
    pub kind: LesionKind,
    pub x: f64,
    pub y: f64,
    /// Half the long axis in pixels.
    pub long: f64,
    /// Half the short axis in pixels.
    pub short: f64,
    /// Direction of the long axis in radians.
    pub angle: f64,
    /// Contrast 0 to 1.
    pub strength: f64,
    /// Seed of the outline's irregularity.
    pub outline: u64,
}

impl Mark {
    /// Half the longest extent; the outline stays within it.
    pub fn extent(&self) -> f64 {
        self.long.max(self.short)
            * if self.kind == LesionKind::Haemorrhage {
                1.3
            } else {
                1.0
            }
    }
}

struct Placer<'a> {
    anatomy: &'a Anatomy,
    arcade: &'a [(f64, f64)],
    random: Random,
    effect: f64,
    edema: u8,
    marks: Vec<Mark>,
}

/// Places all lesions of a case; `arcade` as the vessels give it.
pub fn place(case: &Case, anatomy: &Anatomy, arcade: &[(f64, f64)]) -> Vec<Mark> {
    let mut random = case.stream(30);
    // How plainly lesions show differs from eye to eye, whatever the grade: severities then overlap in a picture.
    let effect = case.lesion_effect * random.range(0.35, 1.0);
    let mut placer = Placer {
        anatomy,
        arcade,
        random,
        effect,
        edema: case.labels.edema,
        marks: Vec::new(),
    };
    let level = case.within_grade;
    let many = |low: f64, high: f64| lerp(low, high, level);
    let edema = case.labels.edema > 0;
    match case.labels.grade {
        0 => {}
        1 => {
            placer.microaneurysms(many(1.5, 8.0), 0.9);
        }
        2 => {
            placer.microaneurysms(many(2.5, 12.0), 1.0);
            placer.haemorrhages(many(0.6, 7.0));
            if level > 0.45 || edema {
                placer.exudates(many(0.0, 2.2));
            }
            placer.soft(many(0.0, 1.0));
        }
        3 => {
            placer.microaneurysms(many(8.0, 22.0), 1.0);
            placer.haemorrhages(many(10.0, 28.0));
            placer.exudates(many(1.0, 4.0));
            placer.soft(many(0.8, 4.0));
        }
        _ => {
            placer.microaneurysms(many(6.0, 20.0), 1.0);
            placer.haemorrhages(many(6.0, 24.0));
            placer.exudates(many(0.5, 4.0));
            placer.soft(many(0.0, 3.0));
            placer.new_vessels(many(1.0, 3.0));
        }
    }
    if edema {
        placer.macular_exudates();
    }
    // Streams of their own: neither the grade nor the effect moves them.
    placer.effect = 1.0;
    placer.random = case.stream(31);
    if case.drusen {
        placer.drusen();
    }
    placer.random = case.stream(32);
    placer.specks();
    placer.marks
}

/// What is told of the marks, with the first and last pixels of each.
pub fn told(marks: &[Mark], bounds: &[[u32; 4]]) -> Vec<Lesion> {
    let lesion = |(mark, &[left, top, right, bottom]): (&Mark, &[u32; 4])| Lesion {
        kind: mark.kind,
        x: mark.x + 0.5,
        y: mark.y + 0.5,
        bounds: [left, top, right + 1, bottom + 1],
        contrast: mark.strength,
    };
    marks.iter().zip(bounds).map(lesion).collect()
}

impl Placer<'_> {
    // A number around `mean`: between 70 and 130 % of it, rounded at random.
    fn number(&mut self, mean: f64) -> u32 {
        (mean * self.random.range(0.7, 1.3) + self.random.unit()) as u32
    }

    // A visible place off the disc; within `within` field radii of the field's centre and off the fovea where asked.
    fn site(&mut self, within: f64, off_macula: f64) -> Option<(f64, f64)> {
        for _ in 0..60 {
            let (u, v) = (self.random.range(-1.0, 1.0), self.random.range(-1.0, 1.0));
            if u * u + v * v > 1.0 {
                continue;
            }
            let (x, y) = (
                self.anatomy.field.0 + u * within * self.anatomy.radius,
                self.anatomy.field.1 + v * within * self.anatomy.radius,
            );
            if self.fits(x, y) && self.anatomy.fovea_distance(x, y) > off_macula {
                return Some((x, y));
            }
        }
        None
    }

    fn fits(&self, x: f64, y: f64) -> bool {
        self.anatomy.visible(x, y, 0.06 * self.anatomy.radius)
            && self.anatomy.disc_distance(x, y) > 1.35
    }

    // `long` and `short` in the retina's unit.
    fn add(
        &mut self,
        kind: LesionKind,
        (x, y): (f64, f64),
        (long, short): (f64, f64),
        angle: f64,
        strength: f64,
    ) {
        let outline = self.random.bits();
        let unit = self.anatomy.unit;
        let strength = (strength * self.effect).clamp(0.0, 1.0);
        self.marks.push(Mark {
            kind,
            x,
            y,
            long: long * unit,
            short: short * unit,
            angle,
            strength,
            outline,
        });
    }

    // A lesion of random slant whose short axis is `squeeze` of its long one at least.
    fn blot(&mut self, kind: LesionKind, at: (f64, f64), r: f64, squeeze: f64, strength: f64) {
        let short = r * self.random.range(squeeze, 1.0);
        let angle = self.random.range(0.0, PI);
        self.add(kind, at, (r, short), angle, strength);
    }

    fn microaneurysms(&mut self, mean: f64, within: f64) {
        for _ in 0..self.number(mean).max(1) {
            if let Some(at) = self.site(0.85 * within, 0.15) {
                let r = self.random.range(0.006, 0.0115);
                let strength = self.random.range(0.32, 0.85);
                self.add(LesionKind::Microaneurysm, at, (r, r), 0.0, strength);
            }
        }
    }

    fn haemorrhages(&mut self, mean: f64) {
        let kind = LesionKind::Haemorrhage;
        for _ in 0..self.number(mean).max(1) {
            let Some(at) = self.site(0.9, 0.3) else {
                continue;
            };
            let strength = self.random.range(0.4, 0.95);
            let shape = self.random.unit();
            if shape < 0.4 {
                let r = self.random.range(0.010, 0.015);
                self.blot(kind, at, r, 0.8, strength);
            } else if shape < 0.7 {
                let r = self.random.range(0.018, 0.036);
                self.blot(kind, at, r, 0.6, strength);
            } else {
                // Flame: long along the nerve fibres, which leave the disc.
                let r = self.random.range(0.016, 0.034);
                let (dx, dy) = (at.0 - self.anatomy.disc.0, at.1 - self.anatomy.disc.1);
                let angle = direction(dx, dy) + self.random.range(-0.3, 0.3);
                self.add(kind, at, (1.7 * r, 0.45 * r), angle, strength);
            }
        }
    }

    // How close to the fovea a hard exudate may lie: exact by the level of edema.
    fn exudate_limit(&self) -> f64 {
        match self.edema {
            0 => 1.05,
            1 => CENTRAL + 0.03,
            _ => 0.1,
        }
    }

    // Clusters around the macula, where leaking vessels are.
    fn exudates(&mut self, clusters: f64) {
        let limit = self.exudate_limit();
        for _ in 0..self.number(clusters) {
            let Some(centre) = self.site(0.62, limit + 0.25) else {
                continue;
            };
            self.cluster(centre, 0.09, 9.0);
        }
    }

    fn macular_exudates(&mut self) {
        let diameter = 2.0 * self.anatomy.disc_radius;
        let turn = self.random.range(0.0, TAU);
        let distance = if self.edema == 2 {
            self.random.range(0.16, 0.30)
        } else {
            self.random.range(0.5, 0.85)
        };
        let centre = (
            self.anatomy.fovea.0 + distance * diameter * cos(turn),
            self.anatomy.fovea.1 + distance * diameter * sin(turn),
        );
        self.cluster(centre, 0.06, 8.0);
        // At least one lies where the level says whatever the draws above gave.
        let r = self.random.range(0.006, 0.01);
        let strength = self.random.range(0.45, 0.85);
        self.add(LesionKind::HardExudate, centre, (r, r), 0.0, strength);
    }

    fn cluster(&mut self, centre: (f64, f64), spread: f64, mean: f64) {
        let spread = spread * self.anatomy.unit * self.random.range(0.6, 1.2);
        let limit = self.exudate_limit();
        let ring = self.random.chance(0.4);
        for _ in 0..self.number(mean) {
            let turn = self.random.range(0.0, TAU);
            let reach = spread
                * if ring {
                    self.random.range(0.85, 1.1)
                } else {
                    self.random.unit()
                };
            let at = (centre.0 + reach * cos(turn), centre.1 + reach * sin(turn));
            if self.fits(at.0, at.1) && self.anatomy.fovea_distance(at.0, at.1) > limit {
                let r = self.random.range(0.005, 0.015);
                let strength = self.random.range(0.4, 0.95);
                self.blot(LesionKind::HardExudate, at, r, 0.6, strength);
            }
        }
    }

    // Beside the arcades, where the nerve fibres are thick.
    fn soft(&mut self, mean: f64) {
        for _ in 0..self.number(mean) {
            if let Some(at) = self.beside_arcade(0.05, 0.14, 0.9) {
                let r = self.random.range(0.026, 0.05);
                let strength = self.random.range(0.3, 0.7);
                self.blot(LesionKind::SoftExudate, at, r, 0.6, strength);
            }
        }
    }

    // A place between `near` and `far` units off the arcades.
    fn beside_arcade(&mut self, near: f64, far: f64, off_macula: f64) -> Option<(f64, f64)> {
        for _ in 0..40 {
            let last = self.arcade.len().checked_sub(1)? as u32;
            let (x, y) = self.arcade[self.random.count(0, last) as usize];
            let turn = self.random.range(0.0, TAU);
            let reach = self.anatomy.unit * self.random.range(near, far);
            let at = (x + reach * cos(turn), y + reach * sin(turn));
            let clear = self.anatomy.fovea_distance(at.0, at.1) > off_macula;
            if clear && self.fits(at.0, at.1) {
                return Some(at);
            }
        }
        None
    }

    fn new_vessels(&mut self, mean: f64) {
        for _ in 0..self.number(mean).max(1) {
            let away = if self.random.chance(0.6) {
                self.beside_arcade(0.0, 0.05, 1.0)
            } else {
                None
            };
            let at = away.unwrap_or_else(|| {
                let turn = self.random.range(0.0, TAU);
                let reach = self.anatomy.disc_radius * self.random.range(0.7, 1.1);
                (
                    self.anatomy.disc.0 + reach * cos(turn),
                    self.anatomy.disc.1 + reach * sin(turn),
                )
            });
            let r = self.random.range(0.07, 0.13);
            let strength = self.random.range(0.5, 0.9);
            self.add(LesionKind::Neovascularisation, at, (r, r), 0.0, strength);
        }
    }

    fn drusen(&mut self) {
        // One at least, within the arcades.
        let mut left = self.random.count(3, 22);
        let (spread, faint) = (self.random.range(0.5, 1.3), self.random.range(0.5, 1.0));
        for _ in 0..200 {
            let turn = self.random.range(0.0, TAU);
            let reach = 2.0 * self.anatomy.disc_radius * self.random.range(0.1, spread);
            let at = (
                self.anatomy.fovea.0 + reach * cos(turn),
                self.anatomy.fovea.1 + reach * sin(turn),
            );
            let r = self.random.range(0.006, 0.017);
            let strength = faint * self.random.range(0.3, 0.75);
            if self.fits(at.0, at.1) {
                self.add(LesionKind::Drusen, at, (r, r), 0.0, strength);
                left -= 1;
            }
            if left == 0 {
                return;
            }
        }
    }

    fn specks(&mut self) {
        for _ in 0..self.random.count(0, 5) {
            if let Some(at) = self.site(0.9, 0.2) {
                let r = self.random.range(0.005, 0.012);
                let strength = self.random.range(0.15, 0.5);
                self.add(LesionKind::Speck, at, (r, r), 0.0, strength);
            }
        }
    }
}

// The angle of a direction modulo pi, by bisection on `sin` and `cos` of this crate: no platform arc tangent.
fn direction(dx: f64, dy: f64) -> f64 {
    let (dx, dy) = if dy < 0.0 { (-dx, -dy) } else { (dx, dy) };
    let (mut low, mut high) = (0.0, PI);
    for _ in 0..40 {
        let mid = 0.5 * (low + high);
        if dx * sin(mid) - dy * cos(mid) < 0.0 {
            low = mid;
        } else {
            high = mid;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, cohort};

    #[test]
    fn lesions_follow_the_grade_and_edema_is_exact() {
        let preset = |name| crate::Camera::preset(name).unwrap();
        let config = Config {
            patients: 200,
            cameras: crate::Camera::PRESETS.map(preset).to_vec(),
            ..Config::default()
        };
        for index in 0..config.images() {
            let case = cohort::case(&config, index);
            let anatomy = Anatomy::draw(&config, &case);
            let arcade = crate::vessels::draw(&case, &anatomy).arcade;
            let marks = place(&case, &anatomy, &arcade);
            let has = |kind| marks.iter().any(|m| m.kind == kind);
            let grade = case.labels.grade;
            assert_eq!(has(LesionKind::Microaneurysm), grade >= 1, "eye {index}");
            assert_eq!(has(LesionKind::Haemorrhage), grade >= 2);
            assert_eq!(has(LesionKind::Neovascularisation), grade >= 4);
            assert_eq!(has(LesionKind::Drusen), case.drusen);
            let nearest = marks
                .iter()
                .filter(|m| m.kind == LesionKind::HardExudate)
                .map(|m| anatomy.fovea_distance(m.x, m.y))
                .fold(f64::MAX, f64::min);
            let level = match nearest {
                d if d <= CENTRAL => 2,
                d if d <= 1.0 => 1,
                _ => 0,
            };
            assert_eq!(level, case.labels.edema, "eye {index}");
            for mark in &marks {
                assert!(
                    (0.0..=1.0).contains(&mark.strength)
                        && mark.short > 0.0
                        && mark.short <= mark.long
                );
                assert!(anatomy.visible(mark.x, mark.y, 0.0), "eye {index} {mark:?}");
            }
        }
    }

    #[test]
    fn direction_is_the_arc_tangent_modulo_pi() {
        for (dx, dy) in [(1.0, 1.0), (-1.0, 2.0), (-3.0, -0.5), (0.2, -5.0)] {
            let (a, b) = (
                direction(dx, dy),
                f64::atan2(dy, dx).rem_euclid(std::f64::consts::PI),
            );
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
    }
}
