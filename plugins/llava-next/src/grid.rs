//! Sizes of tilings: which resolution a picture is brought to, how large it is inside it, which rows of features are its own. Pure numbers;
//! knows no pixels.
//!
//! The reference passes sizes as pairs, height first, next to libraries that have the width first. Here a size names its sides.

/// Sides in pixels, or of a grid in features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

impl Size {
    /// From its sides, height first.
    pub fn new(height: u32, width: u32) -> Self {
        Self { height, width }
    }

    fn area(self) -> u64 {
        u64::from(self.height) * u64::from(self.width)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

/// The resolution among `candidates` that keeps most of a picture's pixels, counting none beyond those it has; of equals the one that
/// wastes least, of equals again the first. `None` without candidates.
pub fn best_resolution(original: Size, candidates: &[Size]) -> Option<Size> {
    let mut best: Option<(Size, u64, i64)> = None;
    for &candidate in candidates {
        let (height, width) = (f64::from(original.height), f64::from(original.width));
        let scale = (f64::from(candidate.width) / width).min(f64::from(candidate.height) / height);
        // Cut to whole pixels, while the picture itself is later rounded up.
        let kept = (width * scale) as u64 * ((height * scale) as u64);
        let effective = kept.min(original.area());
        let wasted = candidate.area() as i64 - effective as i64;
        let better = best.is_none_or(|(_, most, least)| {
            effective > most || (effective == most && wasted < least)
        });
        if better {
            best = Some((candidate, effective, wasted));
        }
    }
    best.map(|(candidate, ..)| candidate)
}

/// Size of a picture inside a resolution: as large as fits with its aspect kept, the other side rounded up.
pub fn fitted(original: Size, target: Size) -> Size {
    let across = f64::from(target.width) / f64::from(original.width);
    let down = f64::from(target.height) / f64::from(original.height);
    let up = |side: u32, scale: f64, most: u32| ((f64::from(side) * scale).ceil() as u32).min(most);
    if across < down {
        Size::new(up(original.height, across, target.height), target.width)
    } else {
        Size::new(target.height, up(original.width, down, target.width))
    }
}

/// The part of a grid of features that is not padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// First row.
    pub top: u32,
    /// First column.
    pub left: u32,
    /// How many of each; either can be 0 for a picture thousands of times as long as wide.
    pub size: Size,
}

/// The part of `grid` that a picture of size `original` fills. As much is taken off one side as off the other, so that a row of padding is
/// kept where their sum is odd.
pub fn unpadded(original: Size, grid: Size) -> Kept {
    let ratio = |size: Size| f64::from(size.width) / f64::from(size.height);
    let inner = |side: u32, along: u32, of: u32| {
        whole(f64::from(side) * (f64::from(along) / f64::from(of)))
    };
    if ratio(original) > ratio(grid) {
        let rows = inner(original.height, grid.width, original.width);
        let top = grid.height.saturating_sub(rows) / 2;
        Kept {
            top,
            left: 0,
            size: Size::new(grid.height - 2 * top, grid.width),
        }
    } else {
        let columns = inner(original.width, grid.height, original.height);
        let left = grid.width.saturating_sub(columns) / 2;
        Kept {
            top: 0,
            left,
            size: Size::new(grid.height, grid.width - 2 * left),
        }
    }
}

/// Python's `int(round(x, 7))`: a hair below a whole number counts as it. Formatting rounds the exact binary value half to even, as Python
/// does.
fn whole(x: f64) -> u32 {
    let rounded: f64 = format!("{x:.7}")
        .parse()
        .expect("a formatted number parses");
    rounded as u32
}

/// Rows of features of a picture: the base tile's `side * side`, then what is kept of the grid, with one newline a row.
pub fn features(original: Size, resolution: Size, tile: u32, side: u32) -> u32 {
    let grid = Size::new(
        resolution.height / tile * side,
        resolution.width / tile * side,
    );
    let kept = unpadded(original, grid).size;
    side * side + kept.height * (kept.width + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Those of the published models.
    const PINPOINTS: [Size; 5] = [
        Size {
            height: 336,
            width: 672,
        },
        Size {
            height: 672,
            width: 336,
        },
        Size {
            height: 672,
            width: 672,
        },
        Size {
            height: 1008,
            width: 336,
        },
        Size {
            height: 336,
            width: 1008,
        },
    ];

    fn best(height: u32, width: u32) -> Size {
        best_resolution(Size::new(height, width), &PINPOINTS).unwrap()
    }

    #[test]
    fn the_resolution_fits_the_aspect() {
        assert_eq!(best(1000, 1000), Size::new(672, 672));
        assert_eq!(best(2848, 4288), Size::new(672, 672));
        // Three to one: across. Height and width must not change places.
        assert_eq!(best(500, 1500), Size::new(336, 1008));
        assert_eq!(best(1500, 500), Size::new(1008, 336));
        // A small picture keeps all its pixels everywhere: the least waste decides, then the order.
        assert_eq!(best(100, 100), Size::new(336, 672));
        assert_eq!(best(336, 340), Size::new(336, 672));
        assert_eq!(best(340, 336), Size::new(672, 336));
        assert_eq!(best_resolution(Size::new(1, 1), &[]), None);
    }

    #[test]
    fn a_picture_touches_two_edges() {
        assert_eq!(
            fitted(Size::new(110, 150), Size::new(112, 112)),
            Size::new(83, 112)
        );
        assert_eq!(
            fitted(Size::new(150, 110), Size::new(112, 112)),
            Size::new(112, 83)
        );
        assert_eq!(
            fitted(Size::new(1, 100_000), Size::new(336, 672)),
            Size::new(1, 672)
        );
        assert_eq!(fitted(Size::new(5, 5), Size::new(7, 7)), Size::new(7, 7));
    }

    #[test]
    fn padding_is_taken_off_evenly() {
        // 110 of 150 on 8 x 8: 5.87 rows, so 1 is taken off either end and 6 stay.
        let kept = unpadded(Size::new(110, 150), Size::new(8, 8));
        assert_eq!((kept.top, kept.left, kept.size), (1, 0, Size::new(6, 8)));
        let kept = unpadded(Size::new(150, 110), Size::new(8, 8));
        assert_eq!((kept.top, kept.left, kept.size), (0, 1, Size::new(8, 6)));
        let kept = unpadded(Size::new(1, 100_000), Size::new(24, 48));
        assert_eq!(kept.size, Size::new(0, 48));
        assert_eq!(
            features(Size::new(110, 150), Size::new(112, 112), 56, 4),
            70
        );
    }

    #[test]
    fn almost_whole_is_whole() {
        // Without the rounding a row would be lost here: 5 * (48 / 10) and the like fall a hair below whole numbers.
        assert_eq!(whole(2.999_999_999), 3);
        assert_eq!(whole(2.999_999), 2);
        let (height, width) = (0..2000)
            .flat_map(|h| (1..400).map(move |w| (h, w)))
            .find(|&(h, w)| {
                let x: f64 = f64::from(h) * (48.0 / f64::from(w));
                x.fract() > 1.0 - 1e-9
            })
            .expect("some product is a hair below a whole number");
        let x = f64::from(height) * (48.0 / f64::from(width));
        assert_eq!(whole(x), x as u32 + 1);
    }

    proptest! {
        #[test]
        fn sizes_hold_together(height in 1_u32..6000, width in 1_u32..6000) {
            let original = Size::new(height, width);
            let target = best_resolution(original, &PINPOINTS).unwrap();
            let inside = fitted(original, target);
            prop_assert!(inside.height >= 1 && inside.width >= 1);
            prop_assert!(inside.height <= target.height && inside.width <= target.width);
            prop_assert!(inside.height == target.height || inside.width == target.width);
            let grid = Size::new(target.height / 14, target.width / 14);
            let kept = unpadded(original, grid);
            prop_assert!(kept.top + kept.size.height <= grid.height);
            prop_assert!(kept.left + kept.size.width <= grid.width);
            prop_assert!(kept.top == 0 || kept.left == 0);
            // The mirror image has the mirrored tiling.
            let turned = best_resolution(Size::new(width, height), &PINPOINTS).unwrap();
            if height != width {
                let mirrored = Size::new(turned.width, turned.height);
                prop_assert_eq!(mirrored.area(), target.area());
            }
        }
    }
}
