//! Colour and light by zone: what the retina looks like away from its lesions, and how the picture was taken.

use crate::disc::Landmarks;
use crate::frame::{DISC_RADIUS, Frame, RADIUS, SIDE};
use crate::sink::Sink;

/// Adds the features.
pub fn extract(frame: &Frame, landmarks: &Landmarks, sink: &mut Sink) {
    const ZONES: [&str; 5] = ["centre", "ring", "edge", "macula", "disc"];
    let mut sums = [[0.0_f64; 8]; ZONES.len()];
    let middle = 0.5 * (SIDE as f32 - 1.0);
    let (r, g, b) = (
        &frame.rgb[0].value,
        &frame.rgb[1].value,
        &frame.rgb[2].value,
    );
    // Every second pixel of every second row: means need no more.
    for y in (0..SIDE).step_by(2) {
        for x in (0..SIDE).step_by(2) {
            let i = y * SIDE + x;
            if frame.mask.value[i] < 0.5 {
                continue;
            }
            let distance = |(cx, cy): (f32, f32)| (x as f32 - cx).hypot(y as f32 - cy);
            let from_middle = distance((middle, middle)) / RADIUS;
            let zone = if distance(landmarks.disc) < DISC_RADIUS {
                4
            } else if from_middle < 0.45 {
                0
            } else if from_middle < 0.75 {
                1
            } else {
                2
            };
            let sum = (r[i] + g[i] + b[i]).max(3.0);
            let pixel = [
                1.0,
                sum / 3.0,
                r[i] / sum,
                g[i] / sum,
                (sum / 3.0).powi(2),
                (r[i] / sum).powi(2),
                (g[i] / sum).powi(2),
                frame.contrast.value[i].powi(2),
            ];
            let mut add = |zone: usize| {
                sums[zone]
                    .iter_mut()
                    .zip(pixel)
                    .for_each(|(s, p)| *s += f64::from(p));
            };
            add(zone);
            if distance(landmarks.fovea) < 2.0 * DISC_RADIUS {
                add(3);
            }
        }
    }
    for (name, sums) in ZONES.iter().zip(sums) {
        let n = sums[0].max(1.0);
        let mean = |k: usize| sums[k] / n;
        let deviation = |k: usize| (mean(k + 3) - mean(k) * mean(k)).max(0.0).sqrt();
        sink.push(format_args!("colour.{name}.light"), mean(1) as f32);
        sink.push(format_args!("colour.{name}.red"), mean(2) as f32);
        sink.push(format_args!("colour.{name}.green"), mean(3) as f32);
        sink.push(
            format_args!("colour.{name}.light.spread"),
            (deviation(1) / (mean(1) + 4.0)) as f32,
        );
        sink.push(
            format_args!("colour.{name}.red.spread"),
            deviation(2) as f32,
        );
        sink.push(
            format_args!("colour.{name}.green.spread"),
            deviation(3) as f32,
        );
        sink.push(
            format_args!("colour.{name}.contrast"),
            (mean(7).sqrt() + 1e-3).log2() as f32,
        );
    }
    sink.push(format_args!("colour.spread"), frame.spread.log2());
    sink.push(
        format_args!("disc.x"),
        (landmarks.disc.0 - middle).abs() / RADIUS,
    );
    sink.push(format_args!("disc.y"), (landmarks.disc.1 - middle) / RADIUS);
}
