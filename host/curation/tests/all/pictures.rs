//! Pictures made up here, stored as JPEG and PNG. No photographs.

use std::fs;
use std::path::Path;

/// A bright disc on black with soft texture that depends on the seed: RGB, rows top to bottom.
pub fn disc(seed: u32, width: u32, height: u32) -> Vec<u8> {
    let mut state = u64::from(seed)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    let spots: Vec<[f64; 4]> = (0..24)
        .map(|_| [next(), next(), 0.02 + 0.05 * next(), 160.0 * next() - 80.0])
        .collect();
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (
                f64::from(x) / f64::from(width),
                f64::from(y) / f64::from(height),
            );
            let inside = (u - 0.5).powi(2) + (v - 0.5).powi(2) < 0.23;
            let mut value = if inside { 120.0 } else { 0.0 };
            for [a, b, r, height] in &spots {
                let d = ((u - a).powi(2) + (v - b).powi(2)) / (r * r);
                value += if inside && d < 9.0 {
                    height * (-d).exp()
                } else {
                    0.0
                };
            }
            let value = value.clamp(0.0, 255.0) as u8;
            pixels.extend([value, value / 2, value / 4]);
        }
    }
    pixels
}

pub fn jpeg(file: &Path, pixels: &[u8], width: u32, height: u32, quality: i32) {
    let image = turbojpeg::Image {
        pixels,
        width: width as usize,
        pitch: width as usize * 3,
        height: height as usize,
        format: turbojpeg::PixelFormat::RGB,
    };
    let bytes =
        turbojpeg::compress(image, quality, turbojpeg::Subsamp::Sub2x2).expect("compresses");
    fs::write(file, &*bytes).expect("writes");
}

pub fn png(file: &Path, pixels: &[u8], width: u32, height: u32) {
    let mut encoder = png::Encoder::new(fs::File::create(file).expect("file"), width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().expect("header");
    writer.write_image_data(pixels).expect("pixels");
}
