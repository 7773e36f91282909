//! Codings, refusals and measures on masks small enough to check by eye.

use super::*;
use crate::PixelBox;

/// A PGM, the shortest file that holds given values.
fn grey(width: usize, values: &[u8]) -> Vec<u8> {
    let height = values.len() / width;
    [format!("P5 {width} {height} 255\n").as_bytes(), values].concat()
}

fn read(bytes: &[u8], coding: &MaskCoding) -> Result<LabelMask, ImageError> {
    read_mask(bytes, coding, &Limits::default())
}

#[test]
fn values_become_labels_by_the_coding_alone() {
    let values = [255, 128, 0, 255, 0, 128];
    let mask = read(&grey(3, &values), &MaskCoding::refuge()).unwrap();
    assert_eq!((mask.width(), mask.height()), (3, 2));
    assert_eq!(mask.labels(), [0, 1, 2, 0, 2, 1]);
    assert_eq!(mask.label(2, 0), Some(2));
    assert_eq!((mask.label(3, 0), mask.label(0, 2)), (None, None));
    let error = read(&grey(3, &values), &MaskCoding::labels(2)).unwrap_err();
    assert_eq!(
        error,
        ImageError::MaskValue {
            value: 255,
            count: 2,
            expected: "`0`, `1`, `2`".into()
        }
    );
    assert_eq!(error.kind(), "mask_value");
    assert!(error.hint().unwrap().contains("JPEG"));
    let mask = read(&grey(2, &[0, 255]), &MaskCoding::white_on_dark()).unwrap();
    assert_eq!(mask.labels(), [0, 1]);
    let mask = read(&grey(2, &[0, 255]), &MaskCoding::dark_on_white()).unwrap();
    assert_eq!(mask.labels(), [1, 0]);
}

#[test]
fn colours_are_taken_only_where_they_are_grey() {
    let same = b"P6 2 1 255\n\x01\x01\x01\x02\x02\x02";
    assert_eq!(read(same, &MaskCoding::labels(2)).unwrap().labels(), [1, 2]);
    let other = b"P6 2 1 255\n\x01\x01\x01\x02\x02\x03";
    let error = read(other, &MaskCoding::labels(2)).unwrap_err();
    assert_eq!(
        error,
        ImageError::MaskColor {
            x: 1,
            y: 0,
            count: 1
        }
    );
    let jpeg = read(b"\xFF\xD8\xFF\xE0", &MaskCoding::labels(2)).unwrap_err();
    assert_eq!(jpeg.kind(), "unsupported");
}

#[test]
fn measures_of_a_disc_with_a_cup() {
    let mask = LabelMask::new(
        5,
        6,
        vec![
            0, 0, 0, 0, 0, //
            0, 1, 1, 1, 0, //
            0, 1, 2, 1, 0, //
            0, 1, 2, 1, 0, //
            0, 1, 1, 1, 0, //
            0, 0, 0, 0, 0,
        ],
    )
    .unwrap();
    assert_eq!(mask.areas()[..4], [18, 10, 2, 0]);
    assert_eq!(mask.area(&[1, 2]), 12);
    assert_eq!(
        mask.bounding_box(&[1, 2]),
        Some(PixelBox {
            x: 1,
            y: 1,
            width: 3,
            height: 4
        })
    );
    assert_eq!(mask.centroid(&[1, 2]), Some((2.0, 2.5)));
    assert_eq!(mask.centroid(&[2]), Some((2.0, 2.5)));
    assert_eq!(mask.vertical_diameter(&[2]), 2);
    assert_eq!(
        vertical_cup_to_disc((&mask, &[1, 2]), (&mask, &[2])),
        Some(0.5)
    );
    assert_eq!(
        vertical_cup_to_disc((&mask, &[1, 2]), (&mask, &[7])),
        Some(0.0)
    );
    assert_eq!(vertical_cup_to_disc((&mask, &[7]), (&mask, &[2])), None);
    let other = mask.resize(5, 5).unwrap();
    assert_eq!(vertical_cup_to_disc((&mask, &[1]), (&other, &[2])), None);
    assert_eq!((mask.bounding_box(&[7]), mask.centroid(&[7])), (None, None));
}

#[test]
fn resizing_makes_no_new_label_and_checks_its_size() {
    let mask = LabelMask::new(3, 1, vec![0, 2, 0]).unwrap();
    assert_eq!(mask.resize(6, 1).unwrap().labels(), [0, 0, 2, 2, 0, 0]);
    assert_eq!(mask.resize(1, 2).unwrap().labels(), [2, 2]);
    assert_eq!(mask.resize(3, 1).unwrap(), mask);
    for (width, height) in [(0, 3), (3, 0), (u32::MAX, u32::MAX)] {
        assert_eq!(mask.resize(width, height).unwrap_err().kind(), "geometry");
    }
    assert_eq!(LabelMask::new(2, 2, vec![0; 3]), None);
    assert_eq!(LabelMask::new(0, 2, vec![]), None);
}
