//! Where a photograph lands in the final picture: the size it is resized to, the part kept, the black around it. Knows no files or decoders.

use focus_resize::{ResizeError, Resizer, Scaling, Window, YccPlanes};

use crate::{Geometry, ImageError, PixelType, PrepareSpec, float};

/// A photograph of one size in a final picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placement {
    /// Size after resizing.
    scaled: (u32, u32),
    /// Part of that which is kept.
    window: Window,
    /// Where the part's corner goes in the final picture.
    at: (u32, u32),
}

impl Placement {
    fn new(spec: &PrepareSpec, size: (u32, u32)) -> Option<Self> {
        let (width, height) = (spec.width, spec.height);
        let scaled = match spec.geometry {
            Geometry::Squash => (width, height),
            Geometry::ShortestEdgeCrop { edge } => shortest_edge(size, edge)?,
            Geometry::Fit => contain(size, (width, height)),
            Geometry::FitCorner => truncated(size, (width, height))?,
        };
        let (x, crop_width, left) = center(scaled.0, width, spec.geometry);
        let (y, crop_height, top) = center(scaled.1, height, spec.geometry);
        Some(Self {
            scaled,
            window: Window {
                x,
                y,
                width: crop_width,
                height: crop_height,
            },
            at: (left, top),
        })
    }
}

/// Short side to `edge`, long side truncated.
fn shortest_edge((width, height): (u32, u32), edge: u32) -> Option<(u32, u32)> {
    let (short, long) = (width.min(height), width.max(height));
    let long = u32::try_from(u64::from(edge) * u64::from(long) / u64::from(short)).ok()?;
    Some(if width <= height {
        (edge, long)
    } else {
        (long, edge)
    })
}

/// The largest size of the same aspect within `target`; the free side is rounded half to even, and at least 1.
fn contain((width, height): (u32, u32), target: (u32, u32)) -> (u32, u32) {
    let (w, h) = (f64::from(width), f64::from(height));
    let aspect = w / h;
    let wanted = f64::from(target.0) / f64::from(target.1);
    if aspect > wanted {
        (
            target.0,
            ((h / w * f64::from(target.0)).round_ties_even() as u32).clamp(1, target.1),
        )
    } else if aspect < wanted {
        (
            ((w / h * f64::from(target.1)).round_ties_even() as u32).clamp(1, target.0),
            target.1,
        )
    } else {
        target
    }
}

/// The same, both sides truncated after a division in f64, as FLAIR's Python has it; `None` where a side vanishes.
fn truncated((width, height): (u32, u32), target: (u32, u32)) -> Option<(u32, u32)> {
    let shrink = |length: u32, side: u32| f64::from(length) / f64::from(side);
    let scale = shrink(width, target.0).max(shrink(height, target.1));
    let cut = |length: u32| (f64::from(length) / scale) as u32;
    Some((cut(width), cut(height))).filter(|(width, height)| *width > 0 && *height > 0)
}

/// Along one axis: first kept pixel, number kept, and where they go in the final picture.
fn center(scaled: u32, wanted: u32, geometry: Geometry) -> (u32, u32, u32) {
    if scaled >= wanted {
        ((scaled - wanted) / 2, wanted, 0)
    } else if geometry == Geometry::Fit {
        (
            0,
            scaled,
            (f64::from(wanted - scaled) / 2.0).round_ties_even() as u32,
        )
    } else if geometry == Geometry::FitCorner {
        (0, scaled, 0)
    } else {
        (0, scaled, (wanted - scaled) / 2)
    }
}

/// Fewest eighths, 1 to 8, that a picture of `size` may be decoded at so that both sides are at least twice those that it is resized to.
pub(crate) fn eighths(spec: &PrepareSpec, size: (u32, u32)) -> u8 {
    let Some(placement) = Placement::new(spec, size) else {
        return 8;
    };
    let (width, height) = placement.scaled;
    let along = |stored: u32, scaled: u32| (16 * u64::from(scaled)).div_ceil(stored.into());
    along(size.0, width).max(along(size.1, height)).clamp(1, 8) as u8
}

/// Upright pixels, tightly packed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Interleaved RGB.
    Rgb(&'a [u8]),
    /// A JPEG's planes; for bytes only.
    Planes(YccPlanes<'a>),
}

impl Source<'_> {
    fn resize(
        self,
        resizer: &mut Resizer,
        scaling: &Scaling,
        target: &mut [u8],
    ) -> Result<(), ResizeError> {
        match self {
            Self::Rgb(pixels) => resizer.resize(scaling, 3, pixels, target),
            Self::Planes(planes) => resizer.resize_ycc(scaling, &planes, target),
        }
    }
}

/// RGB pixels of the final size and number type, as bytes. `part` is room for a picture that does not fill the final one.
pub(crate) fn apply(
    spec: &PrepareSpec,
    source: Source<'_>,
    size: (u32, u32),
    resizer: &mut Resizer,
    part: &mut Vec<u8>,
) -> Result<Vec<u8>, ImageError> {
    let refused = |reason: String| ImageError::Geometry {
        width: size.0,
        height: size.1,
        reason,
    };
    let resize_refused = |error: ResizeError| refused(error.to_string());
    if spec.width == 0 || spec.height == 0 {
        return Err(refused(format!(
            "expected a final size of at least 1 x 1, found `{}` x `{}`",
            spec.width, spec.height
        )));
    }
    let placement = Placement::new(spec, size)
        .ok_or_else(|| refused("its resized sides would not lie between 1 and 32 bits".into()))?;
    let pixel = spec.pixels.pixel_bytes();
    let length = (spec.width as usize)
        .checked_mul(spec.height as usize)
        .and_then(|pixels| pixels.checked_mul(pixel))
        .filter(|&bytes| bytes <= MAX_OUTPUT_BYTES)
        .ok_or_else(|| {
            refused(format!(
                "a final size of `{}` x `{}` is too large",
                spec.width, spec.height
            ))
        })?;
    let scaling =
        Scaling::new(size, placement.scaled, spec.filter.into()).with_window(placement.window);
    if spec.pixels == PixelType::F32 {
        let Source::Rgb(pixels) = source else {
            unreachable!("planes are decoded for bytes only")
        };
        let resized = float::resize(
            pixels,
            size,
            placement.scaled,
            placement.window,
            spec.filter,
        )
        .map_err(resize_refused)?;
        part.clear();
        part.extend(resized.iter().flat_map(|value| value.to_le_bytes()));
        return Ok(framed(spec, &placement, part, length));
    }
    let mut out = vec![0; length];
    if (placement.window.width, placement.window.height) == (spec.width, spec.height) {
        source
            .resize(resizer, &scaling, &mut out)
            .map_err(resize_refused)?;
        return Ok(out);
    }
    let row = placement.window.width as usize * 3;
    part.clear();
    part.resize(row * placement.window.height as usize, 0);
    source
        .resize(resizer, &scaling, part)
        .map_err(resize_refused)?;
    Ok(framed(spec, &placement, part, length))
}

/// The part at its place, black around it: bytes 0, which are the number 0 in either type.
fn framed(spec: &PrepareSpec, placement: &Placement, part: &[u8], length: usize) -> Vec<u8> {
    let pixel = spec.pixels.pixel_bytes();
    let row = placement.window.width as usize * pixel;
    let mut out = vec![0; length];
    let lines = out
        .chunks_exact_mut(spec.width as usize * pixel)
        .skip(placement.at.1 as usize);
    for (line, from) in lines.zip(part.chunks_exact(row)) {
        line[placement.at.0 as usize * pixel..][..row].copy_from_slice(from);
    }
    out
}

/// Largest final picture, in bytes: far beyond any model's input.
const MAX_OUTPUT_BYTES: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResizeFilter;

    fn place(geometry: Geometry, to: (u32, u32), size: (u32, u32)) -> Placement {
        Placement::new(
            &PrepareSpec::new(to.0, to.1, geometry, ResizeFilter::Bilinear),
            size,
        )
        .unwrap()
    }

    #[test]
    fn shortest_edge_truncates_the_long_side() {
        // 256 * 4288 / 2848 = 385.4; 256 * 101 / 67 = 385.9.
        let crop = Geometry::ShortestEdgeCrop { edge: 256 };
        let placement = place(crop, (224, 224), (4288, 2848));
        assert_eq!(placement.scaled, (385, 256));
        assert_eq!(
            placement.window,
            Window {
                x: 80,
                y: 16,
                width: 224,
                height: 224
            }
        );
        assert_eq!(place(crop, (224, 224), (67, 101)).scaled, (256, 385));
        assert_eq!(place(crop, (224, 224), (50, 50)).scaled, (256, 256));
    }

    #[test]
    fn a_crop_larger_than_the_picture_is_padded() {
        let placement = place(Geometry::ShortestEdgeCrop { edge: 10 }, (15, 15), (20, 10));
        assert_eq!(placement.scaled, (20, 10));
        assert_eq!(
            placement.window,
            Window {
                x: 2,
                y: 0,
                width: 15,
                height: 10
            }
        );
        assert_eq!(placement.at, (0, 2));
    }

    #[test]
    fn fit_centres_with_bars() {
        let placement = place(Geometry::Fit, (224, 224), (4288, 2848));
        assert_eq!((placement.scaled, placement.at), ((224, 149), (0, 38)));
        let tall = place(Geometry::Fit, (224, 224), (2848, 4288));
        assert_eq!((tall.scaled, tall.at), ((149, 224), (38, 0)));
        assert_eq!(place(Geometry::Fit, (10, 10), (5000, 1)).scaled, (10, 1));
        assert_eq!(place(Geometry::Fit, (30, 20), (60, 40)).scaled, (30, 20));
    }

    #[test]
    fn the_corner_takes_truncated_sides() {
        let at = |to, size| place(Geometry::FitCorner, to, size);
        let wide = at((512, 512), (4288, 2848));
        assert_eq!((wide.scaled, wide.at), ((512, 340), (0, 0)));
        assert_eq!(at((512, 512), (2848, 4288)).scaled, (340, 512));
        // 7 / (7 / 100) is a little less than 100 in f64.
        assert_eq!(at((100, 100), (7, 7)).scaled, (99, 99));
        let spec = PrepareSpec::new(64, 64, Geometry::FitCorner, ResizeFilter::Bilinear);
        assert!(Placement::new(&spec, (5000, 1)).is_none());
        let source = Source::Rgb(&[0; 15000]);
        let error = apply(
            &spec,
            source,
            (5000, 1),
            &mut Resizer::new(),
            &mut Vec::new(),
        )
        .unwrap_err();
        assert_eq!(error.kind(), "geometry");
    }

    #[test]
    fn a_reduced_scale_leaves_twice_the_target() {
        let at = |geometry, to: u32, size| {
            eighths(
                &PrepareSpec::new(to, to, geometry, ResizeFilter::Bilinear),
                size,
            )
        };
        // 2848 / 8 = 356 is less than 448; 2 / 8 is 712.
        assert_eq!(at(Geometry::Squash, 224, (4288, 2848)), 2);
        assert_eq!(at(Geometry::Squash, 178, (4288, 2848)), 1);
        assert_eq!(at(Geometry::Squash, 179, (4288, 2848)), 2);
        assert_eq!(at(Geometry::Squash, 768, (4288, 2848)), 5);
        // The bars need no pixels: 4288 / 8 = 536 is more than 448.
        assert_eq!(at(Geometry::Fit, 224, (4288, 2848)), 1);
        assert_eq!(
            at(Geometry::ShortestEdgeCrop { edge: 256 }, 224, (4288, 2848)),
            2
        );
        assert_eq!(at(Geometry::Squash, 500, (400, 300)), 8);
    }

    #[test]
    fn impossible_shapes_are_typed() {
        let spec = PrepareSpec::new(0, 5, Geometry::Squash, ResizeFilter::Box);
        let mut part = Vec::new();
        let error = apply(
            &spec,
            Source::Rgb(&[0; 3]),
            (1, 1),
            &mut Resizer::new(),
            &mut part,
        )
        .unwrap_err();
        assert_eq!(error.kind(), "geometry");
        let far = Geometry::ShortestEdgeCrop { edge: u32::MAX };
        let strip = PrepareSpec::new(5, 5, far, ResizeFilter::Box);
        assert_eq!(
            apply(
                &strip,
                Source::Rgb(&[0; 6]),
                (2, 1),
                &mut Resizer::new(),
                &mut part
            )
            .unwrap_err()
            .kind(),
            "geometry"
        );
        let huge = PrepareSpec {
            width: u32::MAX,
            height: u32::MAX,
            ..spec
        };
        assert_eq!(
            apply(
                &huge,
                Source::Rgb(&[0; 3]),
                (1, 1),
                &mut Resizer::new(),
                &mut part
            )
            .unwrap_err()
            .kind(),
            "geometry"
        );
    }
}
