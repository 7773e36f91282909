//! Drawn fields of known place: found, cut, masked, padded; and pictures that have none.

use super::*;

/// A disc of `level` on `ground`, darker towards its rim (a vignette), in a picture of `size`.
fn disc(size: (u32, u32), (cx, cy, radius): (f64, f64, f64), level: f64, ground: u8) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..size.1 {
        for x in 0..size.0 {
            let (dx, dy) = (f64::from(x) - cx, f64::from(y) - cy);
            let far = (dx * dx + dy * dy).sqrt() / radius;
            // Noise of a few levels, the same every time.
            let noise = ((x * 7919 + y * 104_729) % 5) as u8;
            let value = if far <= 1.0 {
                (level * (1.0 - 0.7 * far * far)) as u8 + noise
            } else {
                ground + noise
            };
            pixels.extend([value, value / 2, value / 4]);
        }
    }
    pixels
}

fn near(found: FieldCircle, expected: (f64, f64, f64), tolerance: f64) {
    let parts = [
        (found.x, expected.0),
        (found.y, expected.1),
        (found.radius, expected.2),
    ];
    for (part, wanted) in parts {
        assert!(
            (f64::from(part) - wanted).abs() <= tolerance,
            "{found:?} for {expected:?}"
        );
    }
}

#[test]
fn whole_and_cut_fields_are_found() {
    for (size, circle) in [
        ((400, 400), (199.5, 199.5, 190.0)),
        ((640, 480), (330.0, 240.0, 200.0)),
        // Cut above and below, as IDRiD's.
        ((640, 420), (310.0, 205.0, 250.0)),
        // Blocks of several pixels.
        ((1500, 1100), (760.0, 540.0, 500.0)),
        ((120, 90), (61.0, 44.0, 40.0)),
    ] {
        let found = find(&disc(size, circle, 200.0, 2), size).unwrap();
        near(found, circle, 2.0 + f64::from(size.0.max(size.1)) / 512.0);
    }
}

#[test]
fn text_in_a_corner_is_masked_and_does_not_move_the_field() {
    let size = (600, 600);
    let circle = (300.0, 300.0, 280.0);
    let clean = disc(size, circle, 180.0, 0);
    let mut marked = clean.clone();
    for y in 10..40 {
        for x in 5..70 {
            marked[(y * 600 + x) * 3..][..3].copy_from_slice(&[255; 3]);
        }
    }
    let found = find(&marked, size).unwrap();
    assert_eq!(found, find(&clean, size).unwrap());
    let mut masked = marked.clone();
    let steps = "mask".parse().unwrap();
    let (after, notes) = apply(steps, Ok(Some(found)), &mut masked, size);
    assert_eq!(after, size);
    assert!(notes.masked_pixels >= 30 * 65);
    for (x, y) in [(5, 10), (69, 39), (599, 599)] {
        assert_eq!(masked[(y * 600 + x) * 3..][..3], [0; 3]);
    }
    // Nothing of the field is lost.
    let inside = |x: usize, y: usize| (x as f64 - 300.0).hypot(y as f64 - 300.0) <= 280.0;
    for y in 0..600 {
        for x in 0..600 {
            let at = (y * 600 + x) * 3;
            assert!(
                !inside(x, y) || masked[at..at + 3] == clean[at..at + 3],
                "{x}, {y}"
            );
        }
    }
}

#[test]
fn crop_and_pad_move_pixels_unchanged_and_a_second_time_changes_little() {
    let size = (640, 420);
    let circle = (310.0, 205.0, 250.0);
    let original = disc(size, circle, 200.0, 1);
    let steps: FieldSteps = "crop,pad".parse().unwrap();
    let mut pixels = original.clone();
    let found = find(&pixels, size).unwrap();
    let (after, notes) = apply(steps, Ok(Some(found)), &mut pixels, size);
    let part = notes.crop.unwrap();
    assert_eq!(
        (part.y, part.height),
        (0, 420),
        "cut above and below by the camera"
    );
    assert!(
        part.x.abs_diff(310 - 250 - 3) <= 4 && part.width.abs_diff(507) <= 6,
        "{part:?}"
    );
    assert_eq!(after, (part.width, part.width));
    assert_eq!(pixels.len(), (after.0 * after.1 * 3) as usize);
    let top = (part.width - 420) / 2;
    for (x, y) in [(0, 0), (100, 200), (part.width - 1, 419)] {
        let to = (((y + top) * after.0 + x) * 3) as usize;
        let from = ((y * 640 + x + part.x) * 3) as usize;
        assert_eq!(pixels[to..to + 3], original[from..from + 3]);
    }
    assert!(
        pixels[..(top * after.0 * 3) as usize]
            .iter()
            .all(|&value| value == 0)
    );
    let again = find(&pixels, after).unwrap();
    let bounds = again.bounds(after);
    assert!(
        after.0 - bounds.width <= 8,
        "{again:?} {bounds:?} of {after:?}"
    );
}

#[test]
fn pictures_without_a_field_are_left_whole_with_a_reason() {
    let flat = vec![120; 300 * 200 * 3];
    let black = vec![0; 300 * 200 * 3];
    // A bright rectangle on black is not a field.
    let mut rectangle = vec![3; 300 * 200 * 3];
    for y in 20..180 {
        rectangle[(y * 300 + 60) * 3..(y * 300 + 240) * 3].fill(200);
    }
    for (pixels, size) in [
        (flat, (300, 200)),
        (black, (300, 200)),
        (rectangle, (300, 200)),
        (vec![9; 3], (1, 1)),
        (vec![200; 2000 * 3], (2000, 1)),
    ] {
        let reason = find(&pixels, size).unwrap_err();
        assert!(reason.starts_with("no field of view found"), "{reason}");
        let mut after = pixels.clone();
        let steps = "mask,crop".parse().unwrap();
        let (same, notes) = apply(steps, Err(reason.clone()), &mut after, size);
        assert_eq!((same, after), (size, pixels));
        assert_eq!(
            (notes.circle, notes.crop, notes.fallback),
            (None, None, Some(reason))
        );
    }
}

#[test]
fn lists_of_steps_are_read() {
    let read = |text: &str| text.parse::<FieldSteps>();
    assert_eq!(read("").unwrap(), FieldSteps::NONE);
    assert_eq!(read("pad, crop,mask").unwrap().to_string(), "mask,crop,pad");
    assert_eq!(
        read("crop").unwrap().iter().collect::<Vec<_>>(),
        [FieldStep::Crop]
    );
    let error = read("crop,zoom").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Unknown field-of-view step `zoom`: expected `mask`, `crop` or `pad`"
    );
    assert!(error.hint().is_some());
    assert!(read("crop,").is_err());
    assert_eq!(
        read("pad,pad").unwrap_err(),
        FieldStepsError::Twice { name: "pad" }
    );
    let json = serde_json::to_string(&read("pad,mask").unwrap()).unwrap();
    assert_eq!(json, r#"["mask","pad"]"#);
    assert!(serde_json::from_str::<FieldSteps>(r#"["pad","pad"]"#).is_err());
}
