//! JPEG at a reduced scale: never below twice the target, noted, near the exact picture; other formats exact.

use focus_images::{
    Decode, Geometry, Limits, PixelCache, PrepareSpec, ResizeFilter, decode, prepare, prepare_file,
};
use turbojpeg::{Compressor, Image, PixelFormat};

use crate::common::{data, path, squash};

/// A smooth photograph-like JPEG of a bright disc.
fn jpeg(width: usize, height: usize) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (dx, dy) = (
                x as f64 - width as f64 / 2.0,
                y as f64 - height as f64 / 2.0,
            );
            let far = (dx * dx + dy * dy).sqrt() / (height as f64 * 0.45);
            let level = if far < 1.0 { 200.0 - 90.0 * far } else { 2.0 };
            let ripple = 12.0 * (x as f64 / 9.0).sin() * (y as f64 / 13.0).cos();
            let value = (level + ripple).clamp(0.0, 255.0) as u8;
            pixels.extend([value, value / 2, value / 5]);
        }
    }
    let image = Image {
        pixels: &pixels[..],
        width,
        pitch: width * 3,
        height,
        format: PixelFormat::RGB,
    };
    let mut coder = Compressor::new().expect("the library starts");
    coder.compress_to_vec(image).expect("a sound picture")
}

#[test]
fn the_scale_is_noted_and_the_picture_is_near() {
    let bytes = jpeg(1300, 900);
    for (spec, eighths) in [
        (squash(48, 48), Some(1)),
        (squash(100, 100), Some(2)),
        (squash(200, 200), Some(4)),
        (squash(500, 500), None),
        (
            PrepareSpec::new(80, 80, Geometry::Fit, ResizeFilter::Bicubic),
            Some(1),
        ),
        (
            PrepareSpec::new(
                64,
                64,
                Geometry::ShortestEdgeCrop { edge: 70 },
                ResizeFilter::Bilinear,
            ),
            Some(2),
        ),
    ] {
        let (exact, notes) = prepare(&bytes, &spec, &Limits::default()).unwrap();
        assert_eq!(notes.eighths, None);
        let spec = spec.with_decode(Decode::Fast);
        let (fast, notes) = prepare(&bytes, &spec, &Limits::default()).unwrap();
        assert_eq!(notes.eighths, eighths, "{spec:?}");
        assert_eq!((notes.stored_width, notes.stored_height), (1300, 900));
        if eighths.is_none() {
            assert_eq!(fast, exact);
        }
        let off = fast
            .pixels
            .iter()
            .zip(&exact.pixels)
            .map(|(a, b)| u64::from(a.abs_diff(*b)));
        let mean = off.sum::<u64>() as f64 / exact.pixels.len() as f64;
        assert!(mean < 2.0, "{spec:?}: {mean}");
    }
}

#[test]
fn other_formats_and_damage_are_as_in_exact_decoding() {
    let fast = squash(6, 6).with_decode(Decode::Fast);
    for name in [
        "png_rgb.png",
        "formats/rgb_lzw_le_strips.tif",
        "formats/lossy_90.webp",
    ] {
        let (exact, _) = prepare(&data(name), &squash(6, 6), &Limits::default()).unwrap();
        let (found, notes) = prepare(&data(name), &fast, &Limits::default()).unwrap();
        assert_eq!((found, notes.eighths), (exact, None), "{name}");
    }
    let whole = jpeg(400, 300);
    for length in [whole.len() / 2, whole.len() - 1] {
        let error = prepare(&whole[..length], &fast, &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), "truncated");
    }
    // The library's instance is used again, at full scale.
    prepare(&whole, &fast, &Limits::default()).unwrap();
    assert_eq!(decode(&whole, &Limits::default()).unwrap().0.width, 400);
}

#[test]
fn turned_pictures_and_inks_are_scaled_too_and_the_cache_keeps_both_apart() {
    let name = "jpeg_orientation_6_large.jpg";
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    let spec = squash(5, 8);
    let exact = prepare_file(path(name), &spec, &Limits::default(), Some(&cache)).unwrap();
    let spec = spec.with_decode(Decode::Fast);
    let fast = prepare_file(path(name), &spec, &Limits::default(), Some(&cache)).unwrap();
    assert!(!fast.from_cache);
    assert_eq!((fast.notes.eighths, exact.notes.eighths), (Some(2), None));
    let again = prepare_file(path(name), &spec, &Limits::default(), Some(&cache)).unwrap();
    assert!(again.from_cache);
    assert_eq!((again.pixels, again.notes), (fast.pixels, fast.notes));
    let spec = squash(2, 2).with_decode(Decode::Fast);
    let (_, notes) = prepare(&data("formats/ycck_adobe.jpg"), &spec, &Limits::default()).unwrap();
    assert_eq!(notes.eighths, Some(2));
}

#[test]
fn a_cropped_field_still_has_twice_the_target() {
    // The field takes 810 of 1600 columns: an eighth of the whole would do for the whole picture, not for the field.
    let bytes = jpeg(1600, 900);
    let spec = squash(56, 56).with_decode(Decode::Fast);
    let (_, notes) = prepare(&bytes, &spec, &Limits::default()).unwrap();
    assert_eq!(notes.eighths, Some(1));
    let (_, notes) = prepare(
        &bytes,
        &spec.with_steps("crop".parse().unwrap()),
        &Limits::default(),
    )
    .unwrap();
    let part = notes.field.unwrap().crop.unwrap();
    assert_eq!(notes.eighths, Some(2));
    assert!(part.width >= 112 && part.height >= 112, "{part:?}");
}
