//! A picture as the request carries it: a data URI with the pixels. Knows no model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use focus_plugin_sdk::{Error, Picture};
use focus_resize::{Filter, resize_rgb8};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// How pixels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lossless.
    Png,
    /// With this quality, 1 to 100, chroma at full resolution.
    Jpeg(u8),
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "png" {
            return Ok(Self::Png);
        }
        text.strip_prefix("jpeg:")
            .and_then(|quality| quality.parse().ok())
            .filter(|quality| (1..=100).contains(quality))
            .map(Self::Jpeg)
            .ok_or(())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Png => f.write_str("png"),
            Self::Jpeg(quality) => write!(f, "jpeg, quality {quality}, 4:4:4"),
        }
    }
}

/// The picture as a data URI; if a side is longer than `max_side`, shrunk first (bicubic, antialiased) so that the long one has it.
pub fn data_uri(
    picture: Picture<'_>,
    format: Format,
    max_side: Option<u32>,
) -> Result<String, Error> {
    let (width, height, rgb) = fit(picture, max_side)?;
    let (kind, bytes) = match format {
        Format::Png => ("png", png(width, height, &rgb)?),
        Format::Jpeg(quality) => ("jpeg", jpeg(width, height, &rgb, quality)?),
    };
    let mut uri = format!("data:image/{kind};base64,");
    STANDARD.encode_string(&bytes, &mut uri);
    Ok(uri)
}

fn fit(picture: Picture<'_>, max_side: Option<u32>) -> Result<(u32, u32, Cow<'_, [u8]>), Error> {
    let (width, height) = (picture.width as u32, picture.height as u32);
    let long = width.max(height);
    let Some(side) = max_side.filter(|&side| side < long) else {
        return Ok((width, height, Cow::Borrowed(picture.rgb)));
    };
    let scaled = |n: u32| {
        let n = (u64::from(n) * u64::from(side) * 2 + u64::from(long)) / (u64::from(long) * 2);
        (n as u32).max(1)
    };
    let target = (scaled(width), scaled(height));
    let rgb =
        resize_rgb8(picture.rgb, (width, height), target, Filter::Bicubic).map_err(Error::image)?;
    Ok((target.0, target.1, Cow::Owned(rgb)))
}

fn png(width: u32, height: u32, rgb: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::image(format!("Picture cannot be written as PNG: {error}"));
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(rgb).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

fn jpeg(width: u32, height: u32, rgb: &[u8], quality: u8) -> Result<Vec<u8>, Error> {
    let image = turbojpeg::Image {
        pixels: rgb,
        width: width as usize,
        pitch: width as usize * 3,
        height: height as usize,
        format: turbojpeg::PixelFormat::RGB,
    };
    turbojpeg::compress(image, i32::from(quality), turbojpeg::Subsamp::None)
        .map(|bytes| bytes.to_vec())
        .map_err(|error| Error::image(format!("Picture cannot be written as JPEG: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(uri: &str, kind: &str) -> Vec<u8> {
        let data = uri
            .strip_prefix(&format!("data:image/{kind};base64,"))
            .expect("a data URI");
        STANDARD.decode(data).expect("base64")
    }

    fn decode(png: Vec<u8>) -> (u32, u32, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png))
            .read_info()
            .expect("PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
        let frame = reader.next_frame(&mut pixels).expect("pixels");
        (frame.width, frame.height, pixels)
    }

    fn gradient(width: usize, height: usize) -> Vec<u8> {
        (0..width * height * 3)
            .map(|i| (i * 7 % 256) as u8)
            .collect()
    }

    #[test]
    fn png_keeps_every_pixel() {
        let rgb = gradient(5, 3);
        let picture = Picture {
            width: 5,
            height: 3,
            rgb: &rgb,
        };
        for side in [None, Some(5), Some(100)] {
            let uri = data_uri(picture, Format::Png, side).expect("writes");
            assert_eq!(decode(bytes(&uri, "png")), (5, 3, rgb.clone()));
        }
    }

    #[test]
    fn long_sides_are_shrunk_in_proportion() {
        for (width, height, side, wanted) in [
            (40, 20, 10, (10, 5)),
            (20, 40, 10, (5, 10)),
            (300, 1, 16, (16, 1)),
            (33, 32, 16, (16, 16)),
        ] {
            let rgb = vec![200; width * height * 3];
            let picture = Picture {
                width,
                height,
                rgb: &rgb,
            };
            let uri = data_uri(picture, Format::Png, Some(side)).expect("writes");
            let (w, h, pixels) = decode(bytes(&uri, "png"));
            assert_eq!((w, h), wanted);
            assert!(pixels.iter().all(|&v| v == 200));
        }
    }

    #[test]
    fn jpeg_follows_its_quality() {
        let rgb = gradient(64, 64);
        let picture = Picture {
            width: 64,
            height: 64,
            rgb: &rgb,
        };
        let size = |quality| {
            let uri = data_uri(picture, Format::Jpeg(quality), None).expect("writes");
            let bytes = bytes(&uri, "jpeg");
            assert_eq!(bytes[..3], [0xff, 0xd8, 0xff]);
            bytes.len()
        };
        assert!(size(95) > size(20));
    }
}
