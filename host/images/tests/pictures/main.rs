//! Decoding and preparing, against Pillow and against broken files.

#![expect(clippy::print_stderr, reason = "a test that needs absent data says so")]

mod broken;
mod caching;
mod common;
mod fast;
mod field;
mod hostile;
mod jpegs;
mod masks;
mod shared;

use common::{data, digest, expected};
use focus_images::{DecodeNotes, Limits, Workspace, decode, decode_file, prepare_file};

#[test]
fn every_kind_of_picture_equals_pillow() {
    let expected = expected();
    assert!(expected.decoded.len() > 150);
    for row in &expected.decoded {
        let result = decode(&data(&row.file), &Limits::default());
        if let Some(kind) = &row.error {
            let error = result.map(|(_, notes)| notes).expect_err(&row.file);
            assert_eq!(error.kind(), kind, "{}: {error}", row.file);
            assert!(error.hint().is_some());
            continue;
        }
        let (image, notes) = result.unwrap_or_else(|error| panic!("{}: {error}", row.file));
        assert_eq!(
            (image.width, image.height),
            (row.width, row.height),
            "{}",
            row.file
        );
        assert_eq!(
            digest(&image.pixels),
            row.sha256,
            "{}: pixels differ from Pillow's",
            row.file
        );
        let DecodeNotes {
            format,
            orientation,
            mode,
            bits,
            alpha_composited,
            remarks,
            ..
        } = notes;
        assert_eq!(format.remark_on_name(&common::path(&row.file)), None);
        assert_eq!(orientation, row.orientation.unwrap_or(1), "{}", row.file);
        assert_eq!(
            serde_json::to_value(mode).unwrap(),
            row.mode.as_deref().unwrap_or("ycbcr"),
            "{}",
            row.file
        );
        assert_eq!(bits, row.bits.unwrap_or(8), "{}", row.file);
        assert_eq!(alpha_composited, row.alpha, "{}", row.file);
        assert_eq!(remarks.len(), row.remarks, "{}: {remarks:?}", row.file);
    }
}

#[test]
fn prepared_pixels_equal_pillow() {
    let expected = expected();
    assert!(expected.prepared.len() > 800);
    let mut workspace = Workspace::new();
    for case in &expected.prepared {
        let prepared = workspace.prepare(&data(&case.file), &case.spec(), &Limits::default());
        let (image, _) = prepared.unwrap_or_else(|error| panic!("{case:?}: {error}"));
        assert_eq!((image.width, image.height), (case.width, case.height));
        assert_eq!(digest(&image.pixels), case.sha256, "{case:?}");
    }
}

#[test]
fn a_3_by_2_jpeg_with_orientation_6_is_2_by_3_once_and_only_once() {
    let path = common::path("jpeg_orientation_6.jpg");
    let decoded = decode_file(&path, &Limits::default()).unwrap();
    assert_eq!((decoded.image.width, decoded.image.height), (2, 3));
    assert_eq!(
        (
            decoded.notes.stored_width,
            decoded.notes.stored_height,
            decoded.notes.orientation
        ),
        (3, 2, 6)
    );
    // The other way in gives the same pixels: at the same size nothing is resampled.
    let spec = common::squash(2, 3);
    assert_eq!(
        prepare_file(&path, &spec, &Limits::default(), None)
            .unwrap()
            .pixels,
        decoded.image.pixels
    );
}

#[test]
fn grey_becomes_three_equal_channels_and_alpha_is_noted() {
    let (grey, notes) = decode(&data("png_grey.png"), &Limits::default()).unwrap();
    assert!(
        grey.pixels
            .chunks_exact(3)
            .all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2])
    );
    assert!(!notes.alpha_composited && notes.translucent_pixels == 0);
    let (_, notes) = decode(&data("png_rgba.png"), &Limits::default()).unwrap();
    assert!(notes.alpha_composited && notes.translucent_pixels > 0);
    let json = serde_json::to_string(&notes).unwrap();
    assert_eq!(serde_json::from_str::<DecodeNotes>(&json).unwrap(), notes);
}
