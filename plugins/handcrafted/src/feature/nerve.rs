//! The optic disc: how far its pale centre reaches. A coarse stand-in for the cup-to-disc ratio, without segmentation.

use crate::disc::Landmarks;
use crate::frame::{DISC_RADIUS, Frame, SIDE};
use crate::sink::Sink;

const RINGS: usize = 10;
const LEVELS: [f32; 5] = [0.35, 0.5, 0.65, 0.8, 0.9];

/// Adds the features: radial profile and area above shares of the disc's own brightness, in green and in blue.
pub fn extract(frame: &Frame, landmarks: &Landmarks, sink: &mut Sink) {
    for (channel, name) in [(1, "green"), (2, "blue")] {
        let plane = &frame.rgb[channel];
        let reach = (1.6 * DISC_RADIUS) as usize;
        let span = |c: f32| {
            let c = (c.max(0.0) as usize).min(SIDE - 1);
            (c.saturating_sub(reach), (c + reach).min(SIDE - 1))
        };
        let ((x0, x1), (y0, y1)) = (span(landmarks.disc.0), span(landmarks.disc.1));
        let mut rings = [(0.0_f64, 0.0_f64); RINGS];
        let mut inside = Vec::new();
        for y in y0..=y1 {
            for x in x0..=x1 {
                let distance =
                    (x as f32 - landmarks.disc.0).hypot(y as f32 - landmarks.disc.1) / DISC_RADIUS;
                let value = plane.value[y * SIDE + x];
                if distance < 1.6 && frame.mask.value[y * SIDE + x] > 0.5 {
                    let ring =
                        &mut rings[((distance / 1.6 * RINGS as f32) as usize).min(RINGS - 1)];
                    *ring = (ring.0 + 1.0, ring.1 + f64::from(value));
                    if distance < 1.2 {
                        inside.push(value);
                    }
                }
            }
        }
        let mean = |ring: (f64, f64)| (ring.1 / ring.0.max(1.0)) as f32;
        let base = mean(rings[RINGS - 1]);
        inside.sort_unstable_by(f32::total_cmp);
        let quantile = |q: f32| {
            inside
                .get((q * inside.len() as f32) as usize)
                .copied()
                .unwrap_or(base)
        };
        let top = quantile(0.97);
        let range = (top - base).max(6.0);
        for (k, ring) in rings.into_iter().enumerate().take(RINGS - 1) {
            sink.push(
                format_args!("nerve.{name}.ring{k}"),
                (mean(ring) - base) / range,
            );
        }
        let n = inside.len().max(1) as f32;
        for level in LEVELS {
            let above = inside.len() - inside.partition_point(|&v| v < base + level * range);
            sink.push(
                format_args!("nerve.{name}.above{level}"),
                (above as f32 / n).sqrt(),
            );
        }
        sink.push(
            format_args!("nerve.{name}.range"),
            (range / (base + 10.0)).log2(),
        );
    }
}
