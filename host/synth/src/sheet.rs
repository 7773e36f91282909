//! Many pictures on one sheet. Knows nothing of files.

use crate::truth::Eye;

/// RGB pixels, 8 bits a channel, row-major.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub rgb: Vec<u8>,
}

/// Puts eyes side by side, `columns` to a row, each shrunk by the whole factor `shrink` (mean of each block); no eyes give
/// an empty picture.
///
/// # Panics
/// When eyes differ in size or `columns` or `shrink` is 0.
pub fn contact_sheet(eyes: &[Eye], columns: u32, shrink: u32) -> Picture {
    assert!(
        columns > 0 && shrink > 0,
        "columns and shrink must not be 0"
    );
    let Some(first) = eyes.first() else {
        return Picture {
            width: 0,
            height: 0,
            rgb: Vec::new(),
        };
    };
    let (source, cell) = (
        first.truth.width as usize,
        (first.truth.width / shrink) as usize,
    );
    let columns = (columns as usize).min(eyes.len());
    let rows = eyes.len().div_ceil(columns);
    let width = columns * cell;
    let mut rgb = vec![0; width * rows * cell * 3];
    let factor = shrink as usize;
    for (k, eye) in eyes.iter().enumerate() {
        assert_eq!(eye.truth.width as usize, source, "eyes of different sizes");
        let (left, top) = ((k % columns) * cell, (k / columns) * cell);
        for y in 0..cell {
            for x in 0..cell {
                for channel in 0..3 {
                    let sum: usize = (0..factor * factor)
                        .map(|j| {
                            let (sx, sy) = (x * factor + j % factor, y * factor + j / factor);
                            usize::from(eye.rgb[(sy * source + sx) * 3 + channel])
                        })
                        .sum();
                    rgb[((top + y) * width + left + x) * 3 + channel] =
                        ((sum + factor * factor / 2) / (factor * factor)) as u8;
                }
            }
        }
    }
    Picture {
        width: width as u32,
        height: (rows * cell) as u32,
        rgb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, generate};

    #[test]
    fn sheet_has_a_cell_for_each_eye() {
        let config = Config {
            size: 64,
            ..Config::default()
        };
        let eyes: Vec<_> = (0..5).map(|i| generate(&config, i)).collect();
        let sheet = contact_sheet(&eyes, 3, 2);
        assert_eq!(
            (sheet.width, sheet.height, sheet.rgb.len()),
            (96, 64, 96 * 64 * 3)
        );
        let pixel = |x: usize, y: usize| u32::from(sheet.rgb[(y * 96 + x) * 3]);
        // Centres are lit, the sixth cell is empty.
        assert!(pixel(16, 16) > 60 && pixel(48, 48) > 60 && pixel(80, 48) == 0);
        assert_eq!(contact_sheet(&[], 3, 1).rgb.len(), 0);
    }
}
