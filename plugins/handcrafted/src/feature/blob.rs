//! Red and bright lesions: multi-scale responses to dark and bright spots, with vessels held down.
//!
//! Dark: microaneurysms at the fine scales, haemorrhages at the coarse ones (Niemeijer et al. 2005; Walter et al. 2007).
//! Bright: exudates and cotton-wool spots (Walter et al. 2002). A spot curves both ways, a vessel one way (Frangi et al.
//! 1998); the smaller curvature is the response, so that vessels give little.

use crate::plane::{Curvature, Plane, curvature};
use crate::pyramid::{Level, SIGMA};
use crate::sink::Sink;
use crate::zone::{Zone, Zones};

// The two smoothings at each level of the pyramid: scales 1 to 12 pixels of the frame.
const SIGMAS: [f32; 2] = [SIGMA, 1.5];
// Responses, in contrast, from which a spot counts.
const STEPS: [f32; 5] = [0.012, 0.025, 0.045, 0.08, 0.14];
// The same in units of the picture's own spread of contrast.
const RELATIVE: [f32; 4] = [0.5, 1.0, 2.0, 3.5];
// Contrast from which area counts as bright, and as dark.
const AREA: [f32; 6] = [0.08, 0.13, 0.2, 0.3, 0.45, 0.7];
// Tail shares whose quantile is taken.
const TAILS: [f32; 3] = [0.02, 0.004, 0.0008];

/// Line response at a quarter of the frame, for finding the disc.
pub fn vessels(contrast: &Plane) -> Plane {
    curvature(&contrast.halved().halved().gaussian(1.0), 1.0).line
}

/// Adds the features; `spread` is the picture's own spread of contrast.
pub fn extract(levels: &[Level], spread: f32, sink: &mut Sink) {
    for (index, level) in levels.iter().enumerate() {
        let zones = &level.zones;
        let coarse = level
            .smooth
            .gaussian((SIGMAS[1] * SIGMAS[1] - SIGMAS[0] * SIGMAS[0]).sqrt());
        for (sigma, smooth) in SIGMAS.into_iter().zip([&level.smooth, &coarse]) {
            let Curvature { dark, bright, line } = curvature(smooth, sigma);
            let scale = sigma * (1_u32 << index) as f32;
            spots(&dark, zones, spread, &format!("dark{scale}"), sink);
            spots(&bright, zones, spread, &format!("bright{scale}"), sink);
            sink.push(
                format_args!("line{scale}.q5"),
                tails(&line, zones, [0.05])[0].log2(),
            );
        }
        if index == 0 || index == 2 {
            areas(&coarse, zones, &format!("area{index}"), sink);
        }
    }
}

fn spots(response: &Plane, zones: &Zones, spread: f32, name: &str, sink: &mut Sink) {
    let mut macula = [0.0_f32; STEPS.len()];
    let mut all = [0.0_f32; STEPS.len()];
    let mut relative = [0.0_f32; RELATIVE.len()];
    let floor = STEPS[0].min(RELATIVE[0] * spread);
    peaks(response, floor, |i, value| {
        let zone = zones.zone[i];
        if zone == Zone::Outside || zone == Zone::Disc {
            return;
        }
        for (k, &step) in STEPS.iter().enumerate() {
            if value > step {
                all[k] += 1.0;
                macula[k] += f32::from(u8::from(zone == Zone::Macula));
            }
        }
        for (k, &step) in RELATIVE.iter().enumerate() {
            relative[k] += f32::from(u8::from(value > step * spread));
        }
    });
    for k in 0..STEPS.len() {
        sink.push(format_args!("{name}.n{}", STEPS[k]), (1.0 + all[k]).log2());
        sink.push(
            format_args!("{name}.macula.n{}", STEPS[k]),
            (1.0 + macula[k]).log2(),
        );
    }
    for k in 0..RELATIVE.len() {
        sink.push(
            format_args!("{name}.z{}", RELATIVE[k]),
            (1.0 + relative[k]).log2(),
        );
    }
    for (share, quantile) in TAILS.into_iter().zip(tails(response, zones, TAILS)) {
        sink.push(format_args!("{name}.q{share}"), quantile.log2());
    }
}

// Calls `f` for each pixel above `floor` that none of its eight neighbours exceeds; of equal neighbours the first counts.
fn peaks(plane: &Plane, floor: f32, mut f: impl FnMut(usize, f32)) {
    let w = plane.width;
    for y in 1..plane.height.saturating_sub(1) {
        let (above, here, below) = (plane.row(y - 1), plane.row(y), plane.row(y + 1));
        for x in 1..w - 1 {
            let v = here[x];
            // The left and right neighbours first: they decide most often.
            if v <= floor || here[x - 1] >= v || here[x + 1] > v {
                continue;
            }
            let (a, b) = (&above[x - 1..x + 2], &below[x - 1..x + 2]);
            if a.iter().all(|&n| n < v) && b.iter().all(|&n| n <= v) {
                f(y * w + x, v);
            }
        }
    }
}

// The values that shares of the retina's pixels exceed, to a sixteenth of an octave, from a histogram of logarithms; at least
// 1e-4.
fn tails<const N: usize>(plane: &Plane, zones: &Zones, shares: [f32; N]) -> [f32; N] {
    const BINS: usize = 192;
    let first = 1e-4_f32.to_bits() as usize >> 19;
    let mut histogram = [0_u32; BINS];
    for (&v, zone) in plane.value.iter().zip(&zones.zone) {
        if matches!(zone, Zone::Macula | Zone::Periphery) {
            // The exponent and the first four bits of the mantissa: a logarithm for nothing.
            let bin = (v.max(1e-4).to_bits() >> 19) as usize;
            histogram[(bin - first).min(BINS - 1)] += 1;
        }
    }
    shares.map(|share| {
        let wanted = (share * zones.retina()).max(1.0);
        let mut above = 0.0;
        for bin in (0..BINS).rev() {
            above += histogram[bin] as f32;
            if above >= wanted {
                return f32::from_bits(((bin + first) << 19) as u32).max(1e-4);
            }
        }
        1e-4
    })
}

fn areas(smooth: &Plane, zones: &Zones, name: &str, sink: &mut Sink) {
    let mut count = [[[0.0_f32; AREA.len()]; 2]; 2];
    for (&v, zone) in smooth.value.iter().zip(&zones.zone) {
        let place = match zone {
            Zone::Macula => 0,
            Zone::Periphery => 1,
            Zone::Outside | Zone::Disc => continue,
        };
        let (sign, size) = (usize::from(v < 0.0), v.abs());
        if size > AREA[0] {
            for (k, &step) in AREA.iter().enumerate() {
                count[place][sign][k] += f32::from(u8::from(size > step));
            }
        }
    }
    for (place, place_name) in ["macula", "periphery"].into_iter().enumerate() {
        for (sign, sign_name) in ["bright", "dark"].into_iter().enumerate() {
            for (k, &step) in AREA.iter().enumerate() {
                let share = count[place][sign][k] / zones.area[place].max(1.0);
                sink.push(
                    format_args!("{name}.{place_name}.{sign_name}{step}"),
                    (share + 3e-5).log2(),
                );
            }
        }
    }
}
