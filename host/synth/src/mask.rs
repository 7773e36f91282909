//! Masks of what was drawn, and what can be measured on them. Knows nothing of colour.

use crate::anatomy::Anatomy;
use crate::optic::Optic;
use crate::stamp::Stamps;
use crate::vessels::Tree;

/// The pixels of one structure or of one kind of lesion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// What it shows: one of [`MASK_KINDS`].
    pub what: &'static str,
    /// 1 inside, 0 outside, a byte a pixel, row-major, of the picture's size.
    pub pixels: Vec<u8>,
}

/// What masks may show, in the order in which they are given. The disc's includes the cup; arteries and veins are drawn
/// whole, where they cross both masks hold the pixel.
pub const MASK_KINDS: [&str; 12] = [
    "optic_disc",
    "optic_cup",
    "crescent",
    "artery",
    "vein",
    "microaneurysm",
    "haemorrhage",
    "hard_exudate",
    "soft_exudate",
    "neovascularisation",
    "drusen",
    "speck",
];

impl Mask {
    /// Number of pixels inside.
    pub fn area(&self) -> usize {
        self.pixels.iter().filter(|p| **p != 0).count()
    }

    /// Mean position of the pixels inside, for pictures of side `size`; the top left pixel's centre is (0.5, 0.5).
    pub fn centroid(&self, size: u32) -> Option<(f64, f64)> {
        let (mut n, mut sx, mut sy) = (0.0, 0.0, 0.0);
        for (i, _) in self.pixels.iter().enumerate().filter(|(_, p)| **p != 0) {
            sx += (i % size as usize) as f64 + 0.5;
            sy += (i / size as usize) as f64 + 0.5;
            n += 1.0;
        }
        (n > 0.0).then(|| (sx / n, sy / n))
    }

    /// Rows from the first pixel inside to the last.
    pub fn rows(&self, size: u32) -> u32 {
        let first = self.pixels.iter().position(|p| *p != 0);
        let last = self.pixels.iter().rposition(|p| *p != 0);
        match (first, last) {
            (Some(first), Some(last)) => (last / size as usize - first / size as usize) as u32 + 1,
            _ => 0,
        }
    }
}

/// All masks that are not empty, in the order of [`MASK_KINDS`].
pub fn masks(anatomy: &Anatomy, optic: &Optic, tree: &Tree, stamps: Stamps) -> Vec<Mask> {
    let size = anatomy.size;
    let seen = |i: usize| anatomy.visible((i % size) as f64, (i / size) as f64, 0.0);
    let mut all: Vec<Mask> = Vec::new();
    let mut keep = |what, pixels: Vec<u8>| {
        if pixels.contains(&1) {
            all.push(Mask { what, pixels });
        }
    };
    let (mut disc, mut cup, mut crescent) = (
        vec![0; size * size],
        vec![0; size * size],
        vec![0; size * size],
    );
    for y in 0..size {
        for x in 0..size {
            let (px, py) = (x as f64, y as f64);
            let distance = anatomy.disc_distance(px, py);
            if distance > 3.2 || !seen(y * size + x) {
                continue;
            }
            let i = y * size + x;
            disc[i] = u8::from(distance <= 1.0);
            cup[i] = u8::from(distance <= 1.0 && optic.cup_distance(px, py) <= 1.0);
            crescent[i] = u8::from(distance > 1.0 && optic.crescent(px, py) >= 0.5);
        }
    }
    keep(MASK_KINDS[0], disc);
    keep(MASK_KINDS[1], cup);
    keep(MASK_KINDS[2], crescent);
    for (what, layer) in [(MASK_KINDS[3], &tree.artery), (MASK_KINDS[4], &tree.vein)] {
        let inside = |(i, v): (usize, &f32)| u8::from(*v >= 0.5 && seen(i));
        keep(what, layer.value.iter().enumerate().map(inside).collect());
    }
    for (kind, pixels) in stamps.masks {
        keep(kind.as_str(), pixels);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_of_a_small_mask() {
        let mask = Mask {
            what: "optic_cup",
            pixels: vec![0, 0, 0, 0, 1, 1, 0, 1, 1],
        };
        assert_eq!(mask.area(), 4);
        assert_eq!(mask.centroid(3), Some((2.0, 2.0)));
        assert_eq!(mask.rows(3), 2);
        let empty = Mask {
            what: "vein",
            pixels: vec![0; 9],
        };
        assert_eq!((empty.centroid(3), empty.rows(3)), (None, 0));
    }
}
