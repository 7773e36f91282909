//! Lesions onto layers, with the mask and the box of each. Knows nothing of colour.
//!
//! A pixel belongs to a lesion's mask where the outline covers at least half of it, whatever the lesion's contrast, and the
//! pixel at its centre always does; nothing outside the field does.

use crate::anatomy::Anatomy;
use crate::canvas::{Layer, Stroke, disc_coverage, span};
use crate::lesions::Mark;
use crate::maths::{cos, sin, smoothstep};
use crate::random::Random;
use crate::truth::LesionKind;
use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// First and last pixel of a box: left, top, right, bottom, all included.
pub type Bounds = [u32; 4];

/// What lesions cover.
pub struct Stamps {
    pub blood: Layer,
    pub yellow: Layer,
    pub pale: Layer,
    pub drusen: Layer,
    pub speck: Layer,
    /// 1 in the mask, 0 outside, for each kind that occurs.
    pub masks: BTreeMap<LesionKind, Vec<u8>>,
    /// Of each mark, in its order.
    pub bounds: Vec<Bounds>,
}

struct Trace<'a> {
    anatomy: &'a Anatomy,
    mask: &'a mut [u8],
    bounds: Bounds,
}

impl Trace<'_> {
    fn take(&mut self, x: usize, y: usize) {
        if !self.anatomy.visible(x as f64, y as f64, 0.0) {
            return;
        }
        self.mask[y * self.anatomy.size + x] = 1;
        let (x, y) = (x as u32, y as u32);
        let [left, top, right, bottom] = self.bounds;
        self.bounds = [left.min(x), top.min(y), right.max(x), bottom.max(y)];
    }
}

/// Stamps all marks.
pub fn stamp(anatomy: &Anatomy, marks: &[Mark]) -> Stamps {
    let layer = || Layer::new(anatomy.size);
    let mut all = Stamps {
        blood: layer(),
        yellow: layer(),
        pale: layer(),
        drusen: layer(),
        speck: layer(),
        masks: BTreeMap::new(),
        bounds: Vec::with_capacity(marks.len()),
    };
    let pixels = anatomy.size * anatomy.size;
    for mark in marks {
        let mask = all
            .masks
            .entry(mark.kind)
            .or_insert_with(|| vec![0; pixels]);
        let mut trace = Trace {
            anatomy,
            mask,
            bounds: [u32::MAX, u32::MAX, 0, 0],
        };
        let nearest = |v: f64| (v + 0.5).clamp(0.0, anatomy.size as f64 - 1.0) as usize;
        trace.take(nearest(mark.x), nearest(mark.y));
        match mark.kind {
            LesionKind::Microaneurysm | LesionKind::Haemorrhage => {
                blob(&mut all.blood, &mut trace, mark, 0.35);
            }
            LesionKind::HardExudate => blob(&mut all.yellow, &mut trace, mark, 0.25),
            LesionKind::SoftExudate => blob(&mut all.pale, &mut trace, mark, 0.9),
            LesionKind::Drusen => blob(&mut all.drusen, &mut trace, mark, 0.7),
            LesionKind::Speck => blob(&mut all.speck, &mut trace, mark, 0.5),
            LesionKind::Neovascularisation => tuft(&mut all.blood, &mut trace, mark),
        }
        all.bounds.push(trace.bounds);
    }
    all
}

// An ellipse with an irregular outline; `softness` is the width of its edge in units of its short axis.
fn blob(layer: &mut Layer, trace: &mut Trace<'_>, mark: &Mark, softness: f64) {
    let (s, c) = (sin(mark.angle), cos(mark.angle));
    let mut random = Random::stream(mark.outline, &[]);
    let ragged = if mark.kind == LesionKind::Haemorrhage {
        0.22
    } else {
        0.08
    };
    let (p, q) = (random.range(-ragged, ragged), random.range(-ragged, ragged));
    let edge = (softness * mark.short).max(0.5);
    let reach = mark.extent() + edge + 1.0;
    let size = layer.size;
    let strength = mark.strength * (2.0 * mark.short).min(1.0);
    for py in span(mark.y, reach, size) {
        for px in span(mark.x, reach, size) {
            let (dx, dy) = (px as f64 - mark.x, py as f64 - mark.y);
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
            let value = &mut layer.value[py * size + px];
            *value = value.max((strength * smoothstep(-edge, edge, inside)) as f32);
            if inside >= 0.0 {
                trace.take(px, py);
            }
        }
    }
}

// New vessels: fine loops out of one foot.
fn tuft(layer: &mut Layer, trace: &mut Trace<'_>, mark: &Mark) {
    let mut random = Random::stream(mark.outline, &[]);
    for _ in 0..random.count(6, 10) {
        let mut heading = random.range(0.0, TAU);
        let curl = random.range(-0.6, 0.6);
        let mut at = (mark.x, mark.y);
        let step = mark.long * 0.11;
        for _ in 0..random.count(6, 14) {
            heading += curl + random.range(-0.45, 0.45);
            let next = (at.0 + step * cos(heading), at.1 + step * sin(heading));
            let (dx, dy) = (next.0 - mark.x, next.1 - mark.y);
            if (dx * dx + dy * dy).sqrt() > mark.long - 1.0 {
                heading += 1.6;
                continue;
            }
            let stroke = Stroke {
                a: at,
                b: next,
                start: mark.long * 0.038,
                end: mark.long * 0.032,
            };
            layer.stroke(stroke, mark.strength);
            cover(trace, stroke, layer.size);
            at = next;
        }
    }
}

// The pixels of a stroke; of one thinner than a pixel those nearest to its axis.
fn cover(trace: &mut Trace<'_>, stroke: Stroke, size: usize) {
    let Stroke { a, b, start, end } = stroke;
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let square = (dx * dx + dy * dy).max(1e-12);
    let half = 0.5 * (start + end);
    let reach = 0.5 * square.sqrt() + half + 1.5;
    for py in span(0.5 * (a.1 + b.1), reach, size) {
        for px in span(0.5 * (a.0 + b.0), reach, size) {
            let (x, y) = (px as f64 - a.0, py as f64 - a.1);
            let t = ((x * dx + y * dy) / square).clamp(0.0, 1.0);
            let (ex, ey) = (x - t * dx, y - t * dy);
            let most = (2.0 * half).min(1.0);
            if disc_coverage((ex * ex + ey * ey).sqrt(), half) >= 0.5 * most {
                trace.take(px, py);
            }
        }
    }
}
