//! Texture: local binary patterns (Ojala, Pietikäinen, Mäenpää 2002) and the energy and asymmetry of each frequency band.

use crate::plane::Plane;
use crate::pyramid::Level;
use crate::sink::Sink;
use crate::zone::{Zone, Zones};

const CODES: usize = 10;

/// Adds the features.
pub fn extract(levels: &[Level], sink: &mut Sink) {
    for (
        index,
        Level {
            plane,
            smooth,
            zones,
        },
    ) in levels.iter().enumerate()
    {
        let band = plane.zip(smooth, |a, b| a - b);
        energy(&band, zones, &format!("band{index}"), sink);
        binary_patterns(smooth, zones, &format!("lbp{index}"), sink);
    }
}

// Size of the band, how peaked it is and whether it leans to dark or bright: few strong lesions make it peaked.
fn energy(band: &Plane, zones: &Zones, name: &str, sink: &mut Sink) {
    for (zone, zone_name) in [(Zone::Macula, "macula"), (Zone::Periphery, "periphery")] {
        let mut sums = [0.0_f64; 4];
        for (&v, _) in band
            .value
            .iter()
            .zip(&zones.zone)
            .filter(|(_, z)| **z == zone)
        {
            let v = f64::from(v);
            sums.iter_mut()
                .zip([1.0, v.abs(), v * v, v * v * v])
                .for_each(|(s, p)| *s += p);
        }
        let n = sums[0].max(1.0);
        let (size, square, cube) = (sums[1] / n, sums[2] / n, sums[3] / n);
        sink.push(
            format_args!("{name}.{zone_name}.size"),
            (size + 1e-5).log2() as f32,
        );
        sink.push(
            format_args!("{name}.{zone_name}.peak"),
            (square.sqrt() / (size + 1e-6)) as f32,
        );
        sink.push(
            format_args!("{name}.{zone_name}.lean"),
            (cube / (square.powf(1.5) + 1e-9)) as f32,
        );
    }
}

// Rotation-invariant uniform patterns of eight neighbours (riu2): codes 0 to 8 count the brighter ones of a pattern with at
// most two changes around the circle, code 9 is the rest. Once plain, once weighted by local contrast, which flat and noisy
// regions do not dominate.
fn binary_patterns(plane: &Plane, zones: &Zones, name: &str, sink: &mut Sink) {
    let table = riu2();
    let w = plane.width;
    let mut plain = [0.0_f32; CODES];
    let mut weighted = [0.0_f64; CODES];
    for y in 1..plane.height - 1 {
        for x in 1..w - 1 {
            let i = y * w + x;
            if matches!(zones.zone[i], Zone::Outside | Zone::Disc) {
                continue;
            }
            let centre = plane.value[i];
            let around = [
                i - w - 1,
                i - w,
                i - w + 1,
                i + 1,
                i + w + 1,
                i + w,
                i + w - 1,
                i - 1,
            ]
            .map(|j| plane.value[j] - centre);
            let mut bits = 0_usize;
            let mut size = 0.0;
            for (k, d) in around.into_iter().enumerate() {
                bits |= usize::from(d >= 0.0) << k;
                size += d.abs();
            }
            let code = usize::from(table[bits]);
            plain[code] += 1.0;
            weighted[code] += f64::from(size);
        }
    }
    let (n, total) = (
        plain.iter().sum::<f32>().max(1.0),
        weighted.iter().sum::<f64>().max(1e-9),
    );
    for code in 0..CODES {
        sink.push(format_args!("{name}.{code}"), (plain[code] / n).sqrt());
        sink.push(
            format_args!("{name}.w{code}"),
            (weighted[code] / total).sqrt() as f32,
        );
    }
}

fn riu2() -> [u8; 256] {
    std::array::from_fn(|bits| {
        let bits = bits as u8;
        let changes = (bits ^ bits.rotate_left(1)).count_ones();
        if changes <= 2 {
            bits.count_ones() as u8
        } else {
            9
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_the_paper() {
        let table = riu2();
        // 58 uniform patterns of 256 (Ojala et al.): two flat ones and seven lengths in eight rotations.
        assert_eq!(table.iter().filter(|code| **code < 9).count(), 58);
        assert_eq!(
            (table[0], table[255], table[0b0000_0111], table[0b0101_0101]),
            (0, 8, 3, 9)
        );
        for bits in 0..=255_u8 {
            assert_eq!(
                table[usize::from(bits)],
                table[usize::from(bits.rotate_left(3))],
                "rotation {bits}"
            );
        }
    }
}
