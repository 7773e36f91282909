//! Stored samples of a picture, as its file has them, and their way to 8-bit RGB. Knows no formats and no orientation.
//!
//! Rules, in one place. Samples of fewer than 8 bits are spread over 0 to 255. Of 16-bit colours the upper byte is kept, as in Pillow; 16-bit grey,
//! which Pillow saturates at 255, becomes `value / 257` to the nearest level. Alpha is composited on black; colours that are already multiplied with it
//! are taken as they are. Ink is taken from white by Pillow's formula, without a press profile.

use crate::{ImageError, ImageFormat, Limits, SourceMode};

/// Samples, interleaved, rows top to bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Samples {
    /// Of 1 to 8 bits, one a byte.
    Bytes(Vec<u8>),
    /// Of 16 bits.
    Words(Vec<u16>),
}

/// What the samples mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Color {
    Grey,
    GreyAlpha,
    Rgb,
    /// Red, green, blue, alpha.
    Rgba,
    /// Indices; red, green, blue, alpha of each.
    Palette(Vec<[u8; 4]>),
    /// Amounts of ink, 255 is most.
    Cmyk,
}

impl Color {
    /// Samples of a pixel that are used.
    pub(crate) fn channels(&self) -> usize {
        match self {
            Self::Grey | Self::Palette(_) => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }

    pub(crate) fn mode(&self) -> SourceMode {
        match self {
            Self::Grey => SourceMode::Grey,
            Self::GreyAlpha => SourceMode::GreyAlpha,
            Self::Rgb => SourceMode::Rgb,
            Self::Rgba => SourceMode::Rgba,
            Self::Palette(_) => SourceMode::Palette,
            Self::Cmyk => SourceMode::Cmyk,
        }
    }
}

/// A picture as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raster {
    pub width: u32,
    pub height: u32,
    pub color: Color,
    /// Bits of a sample: 1, 2, 4, 8 or 16.
    pub bits: u8,
    /// Samples of a pixel as stored, at least [`Color::channels`]; the rest is not used.
    pub stride: usize,
    /// Whether colours are already multiplied with alpha.
    pub premultiplied: bool,
    pub samples: Samples,
}

/// What became of transparency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Transparency {
    /// There was a channel or there were colours for it.
    pub present: bool,
    /// Pixels that were not fully opaque.
    pub pixels: u64,
}

/// A size within the limit, or an error; before anything is allocated for it.
pub(crate) fn check_size(
    width: u64,
    height: u64,
    format: ImageFormat,
    limits: &Limits,
) -> Result<(), ImageError> {
    if width == 0 || height == 0 {
        return Err(ImageError::Corrupt {
            format,
            detail: format!("a size of {width} x {height} pixels"),
        });
    }
    if width.saturating_mul(height) > limits.max_pixels || width.max(height) > u32::MAX.into() {
        return Err(ImageError::TooLarge {
            width,
            height,
            limit: limits.max_pixels,
        });
    }
    Ok(())
}

impl Raster {
    /// Writes RGB.
    pub(crate) fn to_rgb(
        &self,
        format: ImageFormat,
        pixels: &mut Vec<u8>,
    ) -> Result<Transparency, ImageError> {
        pixels.clear();
        pixels.reserve_exact(self.width as usize * self.height as usize * 3);
        let mut seen = Transparency::default();
        match &self.samples {
            Samples::Bytes(samples) => {
                let spread = match self.bits {
                    1 => 255,
                    2 => 85,
                    4 => 17,
                    _ => 1,
                };
                self.convert(samples, format, pixels, &mut seen, |value| {
                    (value * spread, value * spread)
                })
            }
            Samples::Words(samples) => {
                self.convert(samples, format, pixels, &mut seen, |value: u16| {
                    ((value >> 8) as u8, nearest(value))
                })
            }
        }?;
        Ok(seen)
    }

    /// `level` gives a sample's 8 bits as part of a colour and as grey.
    fn convert<T: Copy + Into<usize>>(
        &self,
        samples: &[T],
        format: ImageFormat,
        pixels: &mut Vec<u8>,
        seen: &mut Transparency,
        level: impl Fn(T) -> (u8, u8),
    ) -> Result<(), ImageError> {
        let color = |value: T| level(value).0;
        let mut translucent = 0;
        let mut composite = |rgb: [u8; 3], alpha: u8| {
            translucent += u64::from(alpha != 255);
            if self.premultiplied {
                rgb
            } else {
                rgb.map(|value| on_black(value, alpha))
            }
        };
        for pixel in samples.chunks_exact(self.stride) {
            let rgb = match &self.color {
                Color::Grey => [level(pixel[0]).1; 3],
                Color::GreyAlpha => composite([color(pixel[0]); 3], color(pixel[1])),
                Color::Rgb => [color(pixel[0]), color(pixel[1]), color(pixel[2])],
                Color::Rgba => composite(
                    [color(pixel[0]), color(pixel[1]), color(pixel[2])],
                    color(pixel[3]),
                ),
                Color::Cmyk => ink([
                    color(pixel[0]),
                    color(pixel[1]),
                    color(pixel[2]),
                    color(pixel[3]),
                ]),
                Color::Palette(colors) => {
                    let index: usize = pixel[0].into();
                    let &[r, g, b, alpha] =
                        colors.get(index).ok_or_else(|| ImageError::Corrupt {
                            format,
                            detail: format!(
                                "a palette of {} colours, and a pixel of colour {index}",
                                colors.len()
                            ),
                        })?;
                    composite([r, g, b], alpha)
                }
            };
            pixels.extend_from_slice(&rgb);
        }
        seen.pixels = translucent;
        seen.present = match &self.color {
            Color::GreyAlpha | Color::Rgba => true,
            Color::Palette(colors) => colors.iter().any(|color| color[3] != 255),
            _ => false,
        };
        Ok(())
    }

    /// A remark where 16-bit grey uses so little of its range that the picture is nearly black: cameras of 10 or 12 bits write such files.
    pub(crate) fn remark_on_range(&self, remarks: &mut Vec<String>) {
        if let (Color::Grey, Samples::Words(samples)) = (&self.color, &self.samples) {
            let most = samples.iter().copied().max().unwrap_or(0);
            if most < 1 << 12 {
                remarks.push(format!(
                    "16-bit grey samples reach {most} of 65535: perhaps of fewer bits, so the picture is dark"
                ));
            }
        }
    }
}

/// Sixteen bits to eight, to the nearest level.
pub(crate) fn nearest(value: u16) -> u8 {
    ((u32::from(value) + 128) / 257) as u8
}

/// A colour of coverage `alpha` over black, to the nearest level: the same for all 65,536 pairs as Pillow's `alpha_composite` on opaque black.
pub(crate) fn on_black(value: u8, alpha: u8) -> u8 {
    ((u32::from(value) * u32::from(alpha) + 127) / 255) as u8
}

/// Four amounts of ink on white; the arithmetic of Pillow's conversion.
pub(crate) fn ink([cyan, magenta, yellow, black]: [u8; 4]) -> [u8; 3] {
    let light = 255 - black;
    [cyan, magenta, yellow].map(|amount| {
        let product = u32::from(amount) * u32::from(light) + 128;
        light.saturating_sub((((product >> 8) + product) >> 8) as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compositing_and_reduction_round_to_nearest() {
        for value in 0..=255_u8 {
            assert_eq!(on_black(value, 255), value);
            assert_eq!(on_black(value, 0), 0);
            assert_eq!(nearest(u16::from(value) * 257), value);
            for alpha in 0..=255_u8 {
                let exact = f64::from(value) * f64::from(alpha) / 255.0;
                assert!((f64::from(on_black(value, alpha)) - exact).abs() <= 0.5);
            }
        }
        for value in 0..=65535_u16 {
            assert!((f64::from(nearest(value)) - f64::from(value) / 257.0).abs() <= 0.5);
        }
    }

    #[test]
    fn ink_takes_light_away() {
        assert_eq!(ink([0, 0, 0, 0]), [255; 3]);
        assert_eq!(ink([0, 0, 0, 255]), [0; 3]);
        assert_eq!(ink([255, 0, 128, 0]), [0, 255, 127]);
    }

    #[test]
    fn sizes_are_checked() {
        let limits = Limits::default();
        let check = |width, height| check_size(width, height, ImageFormat::Tiff, &limits);
        assert!(check(16_000, 16_000).is_ok());
        assert_eq!(check(16_001, 16_000).unwrap_err().kind(), "too_large");
        assert_eq!(check(u64::MAX, 2).unwrap_err().kind(), "too_large");
        assert_eq!(check(0, 5).unwrap_err().kind(), "corrupt");
    }
}
