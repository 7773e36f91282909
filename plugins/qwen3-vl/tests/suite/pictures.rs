//! Pictures to patches: sizes, bytes, numbers, order.

use crate::support::{Expected, difference, photograph, picture, text};
use qwen3_vl::config::Config;
use qwen3_vl::processor::{Processor, ProcessorError};

fn processor() -> Processor {
    let config = Config::parse(&text("config.json")).unwrap();
    let file = "preprocessor_config.json";
    Processor::parse(file, &text(file), &config.vision).unwrap()
}

#[test]
fn grids_are_the_references() {
    let expected = Expected::open();
    for number in 0..3 {
        let grid = expected.ids(&format!("{number}.image_grid_thw"));
        let found = processor()
            .prepare(&picture(&photograph(number)))
            .unwrap()
            .grid;
        assert_eq!([1, found.0 as u32, found.1 as u32][..], grid, "{number}");
    }
}

#[test]
fn pixels_are_pillows_in_the_references_order() {
    let expected = Expected::open();
    for number in 0..3 {
        let found = processor().prepare(&picture(&photograph(number))).unwrap();
        let pillow = expected.patches(number, "levels_pil");
        assert_eq!(found.values, pillow.values, "{number}");
        // torchvision's kernel rounds otherwise, by a level here and there. With the passes in the other order it would be every
        // sixth value of the first picture, up to two levels.
        let torchvision = expected.patches(number, "levels");
        let apart = difference(&found.values, &torchvision.values);
        assert!(apart <= 2.0 / 255.0 + 1e-6, "{number}: {apart}");
        let pairs = found.values.iter().zip(&torchvision.values);
        let differing = pairs.filter(|(a, b)| a != b).count();
        assert!(
            differing * 500 < found.values.len(),
            "{number}: {differing}"
        );
    }
}

#[test]
fn numbers_are_the_references_to_the_last_bit() {
    let expected = Expected::open();
    for number in 0..3 {
        let first = expected.values(&format!("{number}.first_patches"));
        assert_eq!(
            expected.patches(number, "levels").values[..first.len()],
            first
        );
    }
}

#[test]
fn sizes_as_the_reference_computes_them() {
    let processor = Processor::qwen3_vl();
    // (width, height) before and after, by the reference's function with factor 32 and 65536 to 16777216 pixels.
    for (from, to) in SIZES {
        assert_eq!(
            processor.smart_resize(from.0, from.1).unwrap(),
            to,
            "{from:?}"
        );
    }
}

/// Halves go to the even multiple: 432 = 13.5 * 32 to 14, 464 = 14.5 * 32 to 14 too.
const SIZES: [((usize, usize), (usize, usize)); 12] = [
    ((432, 464), (448, 448)),
    ((464, 432), (448, 448)),
    ((400, 496), (384, 512)),
    ((1000, 700), (992, 704)),
    ((2592, 1944), (2592, 1952)),
    ((4288, 2848), (4288, 2848)),
    ((5184, 3456), (4992, 3328)),
    ((200, 200), (256, 256)),
    ((100, 300), (160, 448)),
    ((31, 33), (256, 288)),
    ((16, 3200), (32, 3648)),
    ((8000, 8000), (4096, 4096)),
];

#[test]
fn long_pictures_are_refused() {
    let error = Processor::qwen3_vl().smart_resize(10, 2001).unwrap_err();
    assert!(
        matches!(
            error,
            ProcessorError::Aspect {
                width: 10,
                height: 2001
            }
        ),
        "{error}"
    );
    assert!(Processor::qwen3_vl().smart_resize(10, 2000).is_ok());
    assert!(Processor::qwen3_vl().smart_resize(0, 10).is_err());
}

#[test]
fn both_processor_files_say_the_same() {
    let config = Config::parse(&text("config.json")).unwrap();
    let file = "processor_config.v5.json";
    let newer = Processor::parse(file, &text(file), &config.vision).unwrap();
    assert_eq!(newer, processor());
    assert_eq!((newer.min_pixels, newer.max_pixels), (4096, 16_384));
    let old = r#"{"min_pixels": 4096, "max_pixels": 16384, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}"#;
    assert_eq!(Processor::parse("old", old, &config.vision).unwrap(), newer);
}

#[test]
fn processors_that_do_something_else_are_refused() {
    let config = Config::parse(&text("config.json")).unwrap();
    for (from, to, wanted) in [
        ("\"do_resize\": true", "\"do_resize\": false", "resizes"),
        (
            "\"patch_size\": 16",
            "\"patch_size\": 14",
            "`patch_size` differs",
        ),
        (
            "\"longest_edge\": 16384",
            "\"longest_edge\": 1000",
            "min_pixels <= max_pixels",
        ),
        (
            "\"size\": {",
            "\"min_pixels\": 1073741825, \"max_pixels\": 9000000000, \"size\": {",
            "expected min_pixels at most 1073741824, found 1073741825",
        ),
        ("\"size\"", "\"sizes\"", "neither `size`"),
        ("0.00392156862745098", "1.0", "rescale_factor"),
        ("\"resample\": 3", "\"resample\": 9", "`resample` 9"),
    ] {
        let changed = text("preprocessor_config.json").replace(from, to);
        assert_ne!(changed, text("preprocessor_config.json"), "{from}");
        let error = Processor::parse("p.json", &changed, &config.vision)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(wanted) && error.contains("`p.json`"),
            "{error}"
        );
    }
}
