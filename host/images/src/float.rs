//! The resize in floating point: no rounding to bytes, no clamping. Knows no geometry: sizes and the part kept are given.
//!
//! Rows first, then columns, as torchvision resizes tensors. Rows are independent of one another, so they are widened and resized a strip at a
//! time: a 12-megapixel picture as `f32` would take 146 MB, and here takes a few.

use focus_resize::{PassOrder, ResizeError, Scaling, Window, resize_f32};

use crate::ResizeFilter;

/// Source values of one strip: a megabyte as `f32`.
const STRIP_VALUES: usize = 1 << 18;

/// Interleaved RGB bytes of `size` to `scaled`, of which `window` is kept, in units of value / 255.
pub(crate) fn resize(
    pixels: &[u8],
    size: (u32, u32),
    scaled: (u32, u32),
    window: Window,
    filter: ResizeFilter,
) -> Result<Vec<f32>, ResizeError> {
    let row = size.0 as usize * 3;
    let rows = (STRIP_VALUES / row.max(1)).max(1);
    let mut narrow = Vec::with_capacity(window.width as usize * size.1 as usize * 3);
    for strip in pixels.chunks(rows * row) {
        let height = (strip.len() / row) as u32;
        let across = Scaling::new((size.0, height), (scaled.0, height), filter.into())
            .with_order(PassOrder::HorizontalFirst)
            .with_window(Window {
                x: window.x,
                y: 0,
                width: window.width,
                height,
            });
        let wide: Vec<f32> = strip.iter().map(|&v| f32::from(v) / 255.0).collect();
        narrow.extend(resize_f32(&wide, &across, 3)?);
    }
    let down = Scaling::new(
        (window.width, size.1),
        (window.width, scaled.1),
        filter.into(),
    )
    .with_order(PassOrder::HorizontalFirst)
    .with_window(Window {
        x: 0,
        y: window.y,
        width: window.width,
        height: window.height,
    });
    resize_f32(&narrow, &down, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_give_what_the_whole_picture_gives() {
        // 700 rows of 300 pixels are three strips.
        let (width, height) = (300_u32, 700_u32);
        let pixels: Vec<u8> = (0..width * height * 3)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let wide: Vec<f32> = pixels.iter().map(|&v| f32::from(v) / 255.0).collect();
        for (scaled, window) in [
            ((64, 64), (0, 0, 64, 64)),
            ((90, 210), (13, 73, 64, 64)),
            ((300, 100), (18, 18, 64, 64)),
            ((100, 700), (5, 300, 64, 64)),
            ((300, 700), (7, 9, 20, 30)),
            ((640, 900), (600, 850, 40, 50)),
        ] {
            let window = Window {
                x: window.0,
                y: window.1,
                width: window.2,
                height: window.3,
            };
            for filter in [ResizeFilter::Bilinear, ResizeFilter::Bicubic] {
                let whole = Scaling::new((width, height), scaled, filter.into())
                    .with_order(PassOrder::HorizontalFirst)
                    .with_window(window);
                assert_eq!(
                    resize(&pixels, (width, height), scaled, window, filter).unwrap(),
                    resize_f32(&wide, &whole, 3).unwrap(),
                    "{scaled:?}"
                );
            }
        }
    }

    #[test]
    fn values_are_neither_rounded_nor_clamped() {
        // A sharp edge, enlarged with a kernel that overshoots.
        let pixels: Vec<u8> = (0..8 * 8)
            .flat_map(|i| [if i % 8 < 4 { 0 } else { 255 }; 3])
            .collect();
        let window = Window {
            x: 0,
            y: 0,
            width: 32,
            height: 32,
        };
        let found = resize(&pixels, (8, 8), (32, 32), window, ResizeFilter::Bicubic).unwrap();
        assert!(found.iter().any(|&v| v > 1.01) && found.iter().any(|&v| v < -0.01));
        assert!(
            found
                .iter()
                .any(|&v| (v * 255.0 - (v * 255.0).round()).abs() > 0.2)
        );
    }
}
