//! Measures of what a mask marks: area, box, centre, height, and the cup-to-disc ratio. Pixels; knows no files.

use super::LabelMask;
use crate::PixelBox;

impl LabelMask {
    /// Whether the pixel at `index` has one of `labels`.
    fn pixels(&self, labels: &[u8]) -> impl Iterator<Item = (u32, u32)> {
        let mut marked = [false; 256];
        for &label in labels {
            marked[usize::from(label)] = true;
        }
        let width = self.width as usize;
        let places = self.labels.iter().enumerate();
        places
            .filter(move |(_, label)| marked[usize::from(**label)])
            .map(move |(at, _)| ((at % width) as u32, (at / width) as u32))
    }

    /// Pixels of each label, 0 to 255.
    pub fn areas(&self) -> [u64; 256] {
        let mut areas = [0; 256];
        for &label in &self.labels {
            areas[usize::from(label)] += 1;
        }
        areas
    }

    /// Pixels that have one of `labels`.
    pub fn area(&self, labels: &[u8]) -> u64 {
        self.pixels(labels).count() as u64
    }

    /// The smallest box around all pixels that have one of `labels`; `None` where there is none.
    pub fn bounding_box(&self, labels: &[u8]) -> Option<PixelBox> {
        let mut reach: Option<[u32; 4]> = None;
        for (x, y) in self.pixels(labels) {
            let [left, top, right, bottom] = reach.unwrap_or([x, y, x, y]);
            reach = Some([left.min(x), top.min(y), right.max(x), bottom.max(y)]);
        }
        reach.map(|[left, top, right, bottom]| PixelBox {
            x: left,
            y: top,
            width: right - left + 1,
            height: bottom - top + 1,
        })
    }

    /// Mean column and row of all pixels that have one of `labels`, the middle of the first pixel being 0, 0; `None` where there is none.
    pub fn centroid(&self, labels: &[u8]) -> Option<(f64, f64)> {
        let (mut count, mut columns, mut rows) = (0_u64, 0_u64, 0_u64);
        for (x, y) in self.pixels(labels) {
            count += 1;
            columns += u64::from(x);
            rows += u64::from(y);
        }
        (count > 0).then(|| (columns as f64 / count as f64, rows as f64 / count as f64))
    }

    /// Rows from the first to the last pixel that has one of `labels`, both counted: the vertical diameter in pixels; 0 where there is none.
    pub fn vertical_diameter(&self, labels: &[u8]) -> u32 {
        self.bounding_box(labels).map_or(0, |found| found.height)
    }
}

/// Vertical cup-to-disc ratio: the cup's vertical diameter over the disc's. Each is a mask with the labels that count as it, since some data sets keep both
/// in one file (disc 1 and 2, cup 2) and some in two. 0 without a cup; `None` without a disc, or where the masks differ in size. A cup that is taller
/// than its disc gives more than 1: the caller decides what to make of such a pair.
pub fn vertical_cup_to_disc(disc: (&LabelMask, &[u8]), cup: (&LabelMask, &[u8])) -> Option<f64> {
    if (disc.0.width, disc.0.height) != (cup.0.width, cup.0.height) {
        return None;
    }
    let (whole, part) = (
        disc.0.vertical_diameter(disc.1),
        cup.0.vertical_diameter(cup.1),
    );
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}
