//! Bit-for-bit equality with Pillow, on both back ends, and properties that no table of examples shows.

use focus_resize::{
    Backend, Filter, PassOrder, Region, ResizeError, Resizer, Scaling, Window, resize_f32,
    resize_into, resize_rgb8,
};
use proptest::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Expected {
    targets: Vec<(u32, u32)>,
    rows: Vec<Row>,
    region_targets: Vec<(u32, u32)>,
    regions: Vec<RegionRow>,
    windows_of: Vec<(u32, u32, u32, u32)>,
    windows: Vec<WindowRow>,
    floats: Vec<FloatRow>,
}

#[derive(Deserialize)]
struct Row {
    channels: usize,
    source: (u32, u32),
    filter: String,
    pillow: Vec<String>,
    horizontal_first: Vec<Option<String>>,
}

#[derive(Deserialize)]
struct RegionRow {
    channels: usize,
    region: (f32, f32, f32, f32),
    filter: String,
    pillow: Vec<String>,
    horizontal_first: Vec<Option<String>>,
}

#[derive(Deserialize)]
struct WindowRow {
    channels: usize,
    source: (u32, u32),
    pillow: Vec<String>,
}

#[derive(Deserialize)]
struct FloatRow {
    source: (u32, u32),
    filter: String,
    pillow: Vec<String>,
}

fn expected() -> Expected {
    serde_json::from_str(include_str!("data/pillow.json"))
        .expect("the committed file is well formed")
}

/// The formula of scripts/generate_expected.py.
fn draw(width: u32, height: u32, channels: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for c in 0..channels as u32 {
                let mut hash =
                    x.wrapping_mul(73856093) ^ y.wrapping_mul(19349663) ^ c.wrapping_mul(83492791);
                hash ^= hash >> 13;
                let noise = hash.wrapping_mul(0x5BD1_E995) >> 24;
                out.push(match (x / 8 + y / 8) % 3 {
                    0 => ((x + y + c) % 2 * 255) as u8,
                    1 => noise as u8,
                    _ => (x * 3 + y * 5 + c * 40) as u8,
                });
            }
        }
    }
    out
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    format!(
        "{:016x}",
        u64::from_be_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
    )
}

fn filter(name: &str) -> Filter {
    Filter::ALL
        .into_iter()
        .find(|filter| filter.name() == name)
        .expect("known filter")
}

fn backends() -> Vec<Backend> {
    Backend::ALL
        .into_iter()
        .filter(|backend| backend.is_available())
        .collect()
}

fn run(resizer: &mut Resizer, scaling: &Scaling, channels: usize, source: &[u8]) -> Vec<u8> {
    let (width, height) = scaling.output_size();
    let mut out = vec![0xAA; width as usize * height as usize * channels];
    resizer
        .resize(scaling, channels, source, &mut out)
        .expect("a sound request");
    out
}

#[test]
fn whole_images_equal_pillow() {
    let expected = expected();
    assert!(expected.rows.len() > 100 && expected.targets.len() > 10);
    let mut order_mattered = 0;
    for backend in backends() {
        let mut resizer = Resizer::with_backend(backend).unwrap();
        for row in &expected.rows {
            let source = draw(row.source.0, row.source.1, row.channels);
            for (index, &target) in expected.targets.iter().enumerate() {
                let name = format!(
                    "{} {} channels {:?} -> {target:?} {}",
                    backend.name(),
                    row.channels,
                    row.source,
                    row.filter
                );
                let scaling = Scaling::new(row.source, target, filter(&row.filter));
                assert_eq!(
                    digest(&run(&mut resizer, &scaling, row.channels, &source)),
                    row.pillow[index],
                    "{name}"
                );
                let before = scaling.with_order(PassOrder::HorizontalFirst);
                let want = row.horizontal_first[index]
                    .as_ref()
                    .inspect(|_| order_mattered += 1)
                    .unwrap_or(&row.pillow[index]);
                assert_eq!(
                    &digest(&run(&mut resizer, &before, row.channels, &source)),
                    want,
                    "{name}, horizontal first"
                );
            }
        }
    }
    assert!(
        order_mattered > 20,
        "the matrix no longer tells the pass orders apart"
    );
}

#[test]
fn regions_equal_pillow_boxes() {
    let expected = expected();
    for backend in backends() {
        let mut resizer = Resizer::with_backend(backend).unwrap();
        for row in &expected.regions {
            let source = draw(101, 67, row.channels);
            let (left, top, right, bottom) = row.region;
            for (index, &target) in expected.region_targets.iter().enumerate() {
                let scaling =
                    Scaling::new((101, 67), target, filter(&row.filter)).with_region(Region {
                        left,
                        top,
                        right,
                        bottom,
                    });
                let name = format!(
                    "{} {:?} -> {target:?} {}",
                    backend.name(),
                    row.region,
                    row.filter
                );
                assert_eq!(
                    digest(&run(&mut resizer, &scaling, row.channels, &source)),
                    row.pillow[index],
                    "{name}"
                );
                let before = scaling.with_order(PassOrder::HorizontalFirst);
                let want = row.horizontal_first[index]
                    .as_ref()
                    .unwrap_or(&row.pillow[index]);
                assert_eq!(
                    &digest(&run(&mut resizer, &before, row.channels, &source)),
                    want,
                    "{name}, horizontal first"
                );
            }
        }
    }
}

#[test]
fn windows_equal_crops_of_the_whole() {
    let expected = expected();
    for backend in backends() {
        let mut resizer = Resizer::with_backend(backend).unwrap();
        for row in &expected.windows {
            let source = draw(row.source.0, row.source.1, row.channels);
            for (index, &(x, y, width, height)) in expected.windows_of.iter().enumerate() {
                let scaling =
                    Scaling::new(row.source, (64, 48), Filter::Bicubic).with_window(Window {
                        x,
                        y,
                        width,
                        height,
                    });
                assert_eq!(
                    digest(&run(&mut resizer, &scaling, row.channels, &source)),
                    row.pillow[index],
                    "{:?} window {index}",
                    row.source
                );
            }
        }
    }
}

#[test]
fn floats_equal_pillow_mode_f() {
    let expected = expected();
    for row in &expected.floats {
        let source: Vec<f32> = draw(row.source.0, row.source.1, 1)
            .iter()
            .map(|&value| f32::from(value) / 255.0 - 0.25)
            .collect();
        for (index, &target) in expected.targets.iter().enumerate() {
            let out = resize_f32(
                &source,
                &Scaling::new(row.source, target, filter(&row.filter)),
                1,
            )
            .unwrap();
            let bytes: Vec<u8> = out.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert_eq!(
                digest(&bytes),
                row.pillow[index],
                "{:?} -> {target:?} {}",
                row.source,
                row.filter
            );
        }
    }
}

#[test]
fn float_windows_and_channels_agree_with_the_whole() {
    for source_size in [(101, 67), (64, 67), (101, 48), (20, 300)] {
        let planes: Vec<f32> = draw(source_size.0, source_size.1, 3)
            .iter()
            .map(|&value| f32::from(value))
            .collect();
        let scaling = Scaling::new(source_size, (64, 48), Filter::Bilinear);
        let whole = resize_f32(&planes, &scaling, 3).unwrap();
        let window = Window {
            x: 7,
            y: 9,
            width: 20,
            height: 11,
        };
        let part = resize_f32(&planes, &scaling.with_window(window), 3).unwrap();
        for y in 0..11 {
            assert_eq!(part[y * 60..][..60], whole[((y + 9) * 64 + 7) * 3..][..60]);
        }
        let red: Vec<f32> = planes.iter().step_by(3).copied().collect();
        let alone = resize_f32(&red, &scaling, 1).unwrap();
        assert!(
            alone
                .iter()
                .zip(whole.iter().step_by(3))
                .all(|(one, three)| one == three)
        );
    }
}

#[test]
fn bad_requests_are_refused_with_a_hint() {
    let bad = |scaling: Scaling, channels, source: usize, target: usize| {
        let error =
            resize_into(&vec![0; source], &scaling, channels, &mut vec![0; target]).unwrap_err();
        assert!(error.hint().is_some());
        error
    };
    let plain = Scaling::new((4, 4), (2, 2), Filter::Box);
    assert!(matches!(
        bad(plain, 2, 32, 8),
        ResizeError::Channels { found: 2 }
    ));
    assert!(matches!(
        bad(plain, 3, 47, 12),
        ResizeError::BufferLength {
            what: "source",
            expected: 48,
            found: 47
        }
    ));
    assert!(matches!(
        bad(plain, 3, 48, 13),
        ResizeError::BufferLength {
            what: "destination",
            expected: 12,
            found: 13
        }
    ));
    assert!(matches!(
        bad(Scaling::new((0, 4), (2, 2), Filter::Box), 3, 0, 12),
        ResizeError::EmptySide { what: "source", .. }
    ));
    assert!(matches!(
        bad(Scaling::new((4, 4), (2, 0), Filter::Box), 3, 48, 0),
        ResizeError::EmptySide { what: "target", .. }
    ));
    for (left, right) in [
        (-1.0, 2.0),
        (0.0, 4.5),
        (2.0, 2.0),
        (3.0, 1.0),
        (f32::NAN, 2.0),
        (0.0, f32::INFINITY),
    ] {
        let region = Region {
            left,
            top: 0.0,
            right,
            bottom: 4.0,
        };
        assert!(
            matches!(
                bad(plain.with_region(region), 3, 48, 12),
                ResizeError::Region { .. }
            ),
            "{left} {right}"
        );
    }
    let window = Window {
        x: u32::MAX,
        y: 0,
        width: 2,
        height: 2,
    };
    assert!(matches!(
        bad(plain.with_window(window), 3, 48, 12),
        ResizeError::Window { .. }
    ));
    assert!(matches!(
        resize_rgb8(&[], (u32::MAX, u32::MAX), (2, 2), Filter::Box),
        Err(ResizeError::TooLarge { .. } | ResizeError::BufferLength { .. })
    ));
    assert!(matches!(
        resize_rgb8(&[0; 3], (1, 1), (u32::MAX, u32::MAX), Filter::Box),
        Err(ResizeError::TooLarge { .. })
    ));
}

#[test]
fn a_kept_resizer_forgets_nothing_and_mixes_nothing() {
    let mut kept = Resizer::new();
    for (source_size, target) in [
        ((101, 67), (13, 5)),
        ((13, 5), (101, 67)),
        ((101, 67), (13, 5)),
        ((101, 67), (101, 5)),
        ((101, 67), (13, 67)),
        ((8, 8), (8, 8)),
    ] {
        for channels in [3, 1, 4] {
            for filter in [Filter::Bilinear, Filter::Lanczos] {
                let source = draw(source_size.0, source_size.1, channels);
                let scaling = Scaling::new(source_size, target, filter);
                assert_eq!(
                    run(&mut kept, &scaling, channels, &source),
                    run(&mut Resizer::new(), &scaling, channels, &source)
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn back_ends_agree(
        width in 1_u32..90, height in 1_u32..90, to_width in 1_u32..120, to_height in 1_u32..120,
        channels in prop::sample::select(vec![1_usize, 3, 4]), filter in prop::sample::select(Filter::ALL.to_vec()),
        order in prop::sample::select(vec![PassOrder::Pillow13, PassOrder::HorizontalFirst]),
        cut in (0.0_f32..0.5, 0.5_f32..1.0), seed in any::<u64>(),
    ) {
        let mut state = seed | 1;
        let source: Vec<u8> = (0..width as usize * height as usize * channels).map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Extremes are where clamping and overflow live.
            match state >> 62 { 0 => 0, 1 => 255, _ => (state >> 40) as u8 }
        }).collect();
        let region = Region { left: width as f32 * cut.0, top: 0.0, right: width as f32, bottom: height as f32 * cut.1 };
        for scaling in [Scaling::new((width, height), (to_width, to_height), filter).with_order(order), Scaling::new((width, height), (to_width, to_height), filter).with_region(region)] {
            let scalar = run(&mut Resizer::with_backend(Backend::Scalar).unwrap(), &scaling, channels, &source);
            for backend in backends() {
                let simd = run(&mut Resizer::with_backend(backend).unwrap(), &scaling, channels, &source);
                prop_assert_eq!(&scalar, &simd, "{:?}", backend);
            }
        }
    }

    #[test]
    fn a_flat_image_stays_flat(value in any::<u8>(), width in 1_u32..60, height in 1_u32..60, to in 1_u32..60, filter in prop::sample::select(Filter::ALL.to_vec())) {
        let out = resize_rgb8(&vec![value; (width * height * 3) as usize], (width, height), (to, to), filter).unwrap();
        prop_assert!(out.iter().all(|&found| found == value));
    }
}
