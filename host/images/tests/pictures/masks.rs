//! Masks in every way that they are stored, against the labels that they were made of, and Pillow's nearest sample.

use focus_images::{Limits, MaskCoding, read_mask, read_mask_file, vertical_cup_to_disc};

use crate::common::{data, digest, expected, path};

#[test]
fn masks_are_read_as_labels_and_resized_as_pillow_does() {
    let masks = expected().masks;
    assert!(masks.len() >= 15);
    for row in &masks {
        let coding = MaskCoding::new(row.coding.clone());
        let mask = read_mask_file(path(&row.file), &coding, &Limits::default())
            .unwrap_or_else(|error| panic!("{}: {error}", row.file));
        assert_eq!(
            (mask.width(), mask.height()),
            (row.width, row.height),
            "{}",
            row.file
        );
        assert_eq!(digest(mask.labels()), row.sha256, "{}", row.file);
        for size in &row.resized {
            let resized = mask.resize(size.width, size.height).unwrap();
            assert_eq!(
                digest(resized.labels()),
                size.sha256,
                "{} to {} x {}",
                row.file,
                size.width,
                size.height
            );
        }
    }
}

#[test]
fn one_mask_in_one_coding_or_another_is_the_same() {
    let grey = read_mask(
        &data("formats/mask_grey.png"),
        &MaskCoding::labels(2),
        &Limits::default(),
    );
    let refuge = read_mask(
        &data("formats/mask_refuge.bmp"),
        &MaskCoding::refuge(),
        &Limits::default(),
    );
    let (grey, refuge) = (grey.unwrap(), refuge.unwrap());
    assert_eq!(grey, refuge);
    // 33 rows of disc and 17 of cup, as drawn.
    assert_eq!(grey.vertical_diameter(&[1, 2]), 33);
    assert_eq!(
        vertical_cup_to_disc((&grey, &[1, 2]), (&refuge, &[2])),
        Some(17.0 / 33.0)
    );
}

#[test]
fn a_photograph_in_place_of_a_mask_is_refused() {
    for (name, kind) in [
        ("jpeg_grey.jpg", "unsupported"),
        ("formats/lossless.webp", "unsupported"),
        ("png_rgb.png", "mask_color"),
        ("png_rgba.png", "mask_color"),
        ("png_grey.png", "mask_value"),
        ("formats/cmyk.tif", "unsupported"),
        ("formats/palette_8_bit.tif", "mask_value"),
    ] {
        let error = read_mask(&data(name), &MaskCoding::labels(2), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), kind, "{name}: {error}");
        assert!(error.is_about_the_image() && error.hint().is_some());
    }
}
