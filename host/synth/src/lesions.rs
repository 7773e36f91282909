//! Where disease shows, by grade. Knows nothing of colour; what a kind looks like is `render`'s business.
//!
//! Counts follow the ICDR scale in outline: microaneurysms alone (1); some haemorrhages and exudates (2); many in all
//! quadrants (3); new vessels (4). Severities overlap, the faintest lesions lie near the noise, and grade 0 has drusen
//! and specks, so that telling grades apart takes more than counting spots.

use crate::anatomy::Anatomy;
use crate::cohort::Case;
use crate::maths::{cos, lerp, sin};
use crate::random::Random;
use crate::truth::LesionKind;
use std::f64::consts::{PI, TAU};

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
    random: Random,
    effect: f64,
    marks: Vec<Mark>,
}

/// Places all lesions of a case.
pub fn place(case: &Case, anatomy: &Anatomy) -> Vec<Mark> {
    let mut random = case.stream(30);
    // How plainly lesions show differs from eye to eye, whatever the grade: severities then overlap in a picture.
    let effect = case.effect * random.range(0.25, 1.0);
    let mut placer = Placer {
        anatomy,
        random,
        effect,
        marks: Vec::new(),
    };
    let level = case.within_grade;
    let many = |low: f64, high: f64| lerp(low, high, level);
    match case.grade {
        0 => {}
        1 => {
            placer.microaneurysms(many(1.5, 8.0), 0.9);
        }
        2 => {
            placer.microaneurysms(many(2.5, 12.0), 1.0);
            placer.haemorrhages(many(0.6, 7.0));
            if level > 0.45 || case.edema {
                placer.exudates(many(0.0, 2.2), case.edema);
            }
            placer.soft(many(0.0, 1.0));
        }
        3 => {
            placer.microaneurysms(many(8.0, 22.0), 1.0);
            placer.haemorrhages(many(8.0, 26.0));
            placer.exudates(many(1.0, 4.0), case.edema);
            placer.soft(many(0.5, 4.0));
        }
        _ => {
            placer.microaneurysms(many(6.0, 20.0), 1.0);
            placer.haemorrhages(many(6.0, 24.0));
            placer.exudates(many(0.5, 4.0), case.edema);
            placer.soft(many(0.0, 3.0));
            placer.new_vessels(many(1.0, 3.5));
        }
    }
    if case.edema {
        placer.macular_exudates();
    }
    placer.drusen(case.age);
    placer.specks();
    placer.marks
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

    fn add(
        &mut self,
        kind: LesionKind,
        (x, y): (f64, f64),
        (long, short): (f64, f64),
        angle: f64,
        strength: f64,
    ) {
        let outline = self.random.bits();
        let r = self.anatomy.radius;
        let strength = (strength * self.effect).clamp(0.0, 1.0);
        self.marks.push(Mark {
            kind,
            x,
            y,
            long: long * r,
            short: short * r,
            angle,
            strength,
            outline,
        });
    }

    fn microaneurysms(&mut self, mean: f64, within: f64) {
        for _ in 0..self.number(mean).max(1) {
            if let Some(at) = self.site(0.85 * within, 0.15) {
                let r = self.random.range(0.006, 0.0115);
                let strength = self.random.range(0.28, 0.8);
                self.add(LesionKind::Microaneurysm, at, (r, r), 0.0, strength);
            }
        }
    }

    fn haemorrhages(&mut self, mean: f64) {
        for _ in 0..self.number(mean).max(1) {
            let Some(at) = self.site(0.9, 0.3) else {
                continue;
            };
            let strength = self.random.range(0.35, 0.9);
            let r = self.random.range(0.011, 0.03);
            if self.random.chance(0.35) {
                // Flame: long along the nerve fibres, which leave the disc.
                let (dx, dy) = (at.0 - self.anatomy.disc.0, at.1 - self.anatomy.disc.1);
                let angle = direction(dx, dy);
                self.add(
                    LesionKind::Haemorrhage,
                    at,
                    (1.9 * r, 0.6 * r),
                    angle,
                    strength,
                );
            } else {
                let squeeze = self.random.range(0.7, 1.0);
                let angle = self.random.range(0.0, PI);
                self.add(
                    LesionKind::Haemorrhage,
                    at,
                    (r, r * squeeze),
                    angle,
                    strength,
                );
            }
        }
    }

    fn exudates(&mut self, clusters: f64, edema: bool) {
        for _ in 0..self.number(clusters) {
            // Clusters off the macula where there is no edema: its absence is exact.
            let Some(centre) = self.site(0.7, if edema { 0.3 } else { 1.6 }) else {
                continue;
            };
            self.cluster(centre, 0.10, if edema { 0.2 } else { 1.05 }, 9.0);
        }
    }

    fn macular_exudates(&mut self) {
        let unit = 2.0 * self.anatomy.disc_radius;
        let turn = self.random.range(0.0, TAU);
        let distance = self.random.range(0.35, 0.75) * unit;
        let centre = (
            self.anatomy.fovea.0 + distance * cos(turn),
            self.anatomy.fovea.1 + distance * sin(turn),
        );
        self.cluster(centre, 0.06, 0.15, 6.0);
        // At least one lies within one disc diameter whatever the draws above gave.
        let r = self.random.range(0.006, 0.01);
        let strength = self.random.range(0.4, 0.8);
        self.add(LesionKind::HardExudate, centre, (r, r), 0.0, strength);
    }

    fn cluster(&mut self, centre: (f64, f64), spread: f64, off_macula: f64, mean: f64) {
        let spread = spread * self.anatomy.radius * self.random.range(0.6, 1.2);
        let ring = self.random.chance(0.4);
        for _ in 0..self.number(mean) {
            let turn = self.random.range(0.0, TAU);
            let reach = spread
                * if ring {
                    self.random.range(0.8, 1.1)
                } else {
                    self.random.unit()
                };
            let at = (centre.0 + reach * cos(turn), centre.1 + reach * sin(turn));
            if self.fits(at.0, at.1) && self.anatomy.fovea_distance(at.0, at.1) > off_macula {
                let r = self.random.range(0.005, 0.015);
                let squeeze = self.random.range(0.6, 1.0);
                let angle = self.random.range(0.0, PI);
                let strength = self.random.range(0.3, 0.85);
                self.add(
                    LesionKind::HardExudate,
                    at,
                    (r, r * squeeze),
                    angle,
                    strength,
                );
            }
        }
    }

    fn soft(&mut self, mean: f64) {
        for _ in 0..self.number(mean) {
            if let Some(at) = self.site(0.75, 0.9) {
                let r = self.random.range(0.028, 0.05);
                let squeeze = self.random.range(0.6, 0.9);
                let angle = self.random.range(0.0, PI);
                let strength = self.random.range(0.25, 0.6);
                self.add(
                    LesionKind::SoftExudate,
                    at,
                    (r, r * squeeze),
                    angle,
                    strength,
                );
            }
        }
    }

    fn new_vessels(&mut self, mean: f64) {
        for _ in 0..self.number(mean).max(1) {
            let at = if self.random.chance(0.35) {
                let turn = self.random.range(0.0, TAU);
                let reach = self.anatomy.disc_radius * self.random.range(0.7, 1.1);
                (
                    self.anatomy.disc.0 + reach * cos(turn),
                    self.anatomy.disc.1 + reach * sin(turn),
                )
            } else {
                match self.site(0.75, 1.5) {
                    Some(at) => at,
                    None => continue,
                }
            };
            let r = self.random.range(0.07, 0.13);
            let strength = self.random.range(0.35, 0.75);
            self.add(LesionKind::Neovascularisation, at, (r, r), 0.0, strength);
        }
    }

    fn drusen(&mut self, age: u32) {
        let chance = ((f64::from(age) - 40.0) / 70.0).clamp(0.03, 0.6);
        if !self.random.chance(chance) {
            return;
        }
        for _ in 0..self.random.count(2, 14) {
            let turn = self.random.range(0.0, TAU);
            let reach = 2.0 * self.anatomy.disc_radius * self.random.range(0.1, 1.3);
            let at = (
                self.anatomy.fovea.0 + reach * cos(turn),
                self.anatomy.fovea.1 + reach * sin(turn),
            );
            if self.fits(at.0, at.1) {
                let r = self.random.range(0.006, 0.014);
                let strength = self.random.range(0.10, 0.45);
                self.marks_push_unscaled(LesionKind::Drusen, at, r, strength);
            }
        }
    }

    fn specks(&mut self) {
        for _ in 0..self.random.count(0, 6) {
            if let Some(at) = self.site(0.9, 0.2) {
                let r = self.random.range(0.005, 0.013);
                let strength = self.random.range(0.15, 0.6);
                self.marks_push_unscaled(LesionKind::Speck, at, r, strength);
            }
        }
    }

    // What is no sign of disease keeps its contrast whatever the effect size.
    fn marks_push_unscaled(&mut self, kind: LesionKind, at: (f64, f64), r: f64, strength: f64) {
        self.add(kind, at, (r, r), 0.0, strength);
        if let Some(mark) = self.marks.last_mut() {
            mark.strength = strength;
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
        let config = Config {
            patients: 200,
            ..Config::default()
        };
        for index in 0..config.images() {
            let case = cohort::case(&config, index);
            let anatomy = Anatomy::draw(&config, &case);
            let marks = place(&case, &anatomy);
            let has = |kind| marks.iter().any(|m| m.kind == kind);
            assert_eq!(
                has(LesionKind::Microaneurysm),
                case.grade >= 1,
                "eye {index}"
            );
            assert_eq!(has(LesionKind::Haemorrhage), case.grade >= 2);
            assert_eq!(has(LesionKind::Neovascularisation), case.grade >= 4);
            let near = marks.iter().any(|m| {
                m.kind == LesionKind::HardExudate && anatomy.fovea_distance(m.x, m.y) <= 1.0
            });
            assert_eq!(near, case.edema, "eye {index}");
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
