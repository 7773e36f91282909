//! Pictures to tiles, against the reference's own pixel values (torchvision's resampler).

use crate::common::{CPU, Expected, Spelling, folder, parts};
use focus_nn::DType;
use llava_next::grid::Size;
use llava_next::preprocess::Processor;
use llava_next::tiles::{Tiles, cut};

/// Normalised values back to levels.
fn levels(tiles: &Tiles, processor: &Processor) -> Vec<u8> {
    let (count, _, side, _) = tiles.pixels.dims4().unwrap();
    let values: Vec<f32> = tiles.pixels.flatten_all().unwrap().to_vec1().unwrap();
    assert_eq!(values.len(), count * 3 * side * side);
    let area = side * side;
    values
        .iter()
        .enumerate()
        .map(|(at, &value)| {
            let channel = at / area % 3;
            let level = f64::from(value) * processor.std[channel] + processor.mean[channel];
            (level * 255.0).round() as u8
        })
        .collect()
}

#[test]
fn pixels_are_the_reference_s_within_a_level() {
    let expected = Expected::open();
    for spelling in [Spelling::Four, Spelling::Five] {
        let processor = parts(folder(spelling).path()).processor;
        for (number, tiles, resolution) in [
            (0, 5, Size::new(112, 112)),
            (1, 5, Size::new(112, 112)),
            (2, 4, Size::new(56, 168)),
        ] {
            let (rgb, size) = expected.picture(number);
            let found = cut(&processor, &rgb, size, &CPU, DType::F32).unwrap();
            assert_eq!(found.pixels.dims(), [tiles, 3, 56, 56]);
            assert_eq!(found.resolution, resolution);
            let found = levels(&found, &processor);
            let wanted = expected.bytes(&format!("{number}.levels"));
            let apart: Vec<u8> = found
                .iter()
                .zip(&wanted)
                .map(|(a, b)| a.abs_diff(*b))
                .collect();
            assert!(apart.iter().all(|&level| level <= 1), "{number}");
            let moved = apart.iter().filter(|&&level| level > 0).count();
            assert!(
                moved * 50 < apart.len(),
                "{number}: {moved} of {}",
                apart.len()
            );
        }
    }
}

#[test]
fn a_base_tile_is_squashed_and_not_cropped() {
    let expected = Expected::open();
    let processor = parts(folder(Spelling::Four).path()).processor;
    let (rgb, size) = expected.picture(2);
    let found = levels(
        &cut(&processor, &rgb, size, &CPU, DType::F32).unwrap(),
        &processor,
    );
    // The middle of a short side's crop of the wide picture would be another picture altogether.
    let wanted = expected.bytes("2.levels");
    let base = 3 * 56 * 56;
    let sum: usize = found[..base]
        .iter()
        .zip(&wanted)
        .map(|(a, b)| usize::from(a.abs_diff(*b)))
        .sum();
    assert!(sum * 20 < base, "{sum}");
}
