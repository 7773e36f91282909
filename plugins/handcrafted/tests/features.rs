//! What the features answer to: known marks raise the features named for them; any input gives finite values; the landmarks
//! of drawn eyes are found.

use focus_synth::{Config, generate};
use handcrafted::scaling::{DIM, embed};
use handcrafted::{analyse, names};

const SIDE: usize = 384;

/// A plain orange field with a disc and two vessels, optionally with spots: (x, y, radius, change of green).
fn eye(spots: &[(f32, f32, f32, f32)]) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(SIDE * SIDE * 3);
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (x, y) = (x as f32, y as f32);
            let from = |cx: f32, cy: f32| (x - cx).hypot(y - cy);
            if from(191.5, 191.5) > 185.0 {
                rgb.extend([2, 2, 2]);
                continue;
            }
            let mut green = 100.0 - 0.0004 * from(191.5, 191.5).powi(2);
            if from(310.0, 190.0) < 25.0 {
                green = 190.0;
            }
            if (x - 300.0).abs() < 2.5 || ((y - 120.0).abs() < 2.0 && x < 300.0) {
                green -= 35.0;
            }
            for &(sx, sy, radius, change) in spots {
                green += change * (radius + 0.5 - from(sx, sy)).clamp(0.0, 1.0);
            }
            rgb.extend([190, green.clamp(0.0, 255.0) as u8, 45]);
        }
    }
    rgb
}

fn value(features: &[f32], name: &str) -> f32 {
    features[names()
        .iter()
        .position(|n| n == name)
        .unwrap_or_else(|| panic!("no feature {name}"))]
}

fn spots(change: f32) -> Vec<(f32, f32, f32, f32)> {
    (0..12)
        .map(|i| {
            (
                70.0 + 14.0 * i as f32,
                230.0 + 9.0 * (i % 4) as f32,
                3.0,
                change,
            )
        })
        .collect()
}

#[test]
fn dark_spots_raise_dark_features_and_bright_spots_bright_ones() {
    let plain = analyse(&eye(&[]), SIDE, SIDE).features;
    let dark = analyse(&eye(&spots(-40.0)), SIDE, SIDE).features;
    let bright = analyse(&eye(&spots(60.0)), SIDE, SIDE).features;
    for (name, raised, other) in [
        ("dark4.n0.045", &dark, &bright),
        ("dark4.q0.004", &dark, &bright),
        ("area0.macula.dark0.13", &dark, &bright),
        ("bright4.n0.045", &bright, &dark),
        ("bright4.q0.004", &bright, &dark),
        ("area0.macula.bright0.13", &bright, &dark),
    ] {
        let (before, with, without) =
            (value(&plain, name), value(raised, name), value(other, name));
        assert!(with > before + 1.0, "{name}: {before} -> {with}");
        assert!(with > without + 0.5, "{name}: {with} against {without}");
    }
    // A vessel is no lesion: twelve spots outnumber what the lines leave.
    assert!(
        value(&plain, "dark4.n0.045") < 2.5,
        "{}",
        value(&plain, "dark4.n0.045")
    );
}

#[test]
fn a_larger_cup_widens_the_pale_centre() {
    let config = Config {
        effect: 4.0,
        poor_quality: 0.0,
        ..Config::default()
    };
    let names = names();
    let index = names
        .iter()
        .position(|n| n == "nerve.blue.above0.65")
        .unwrap();
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for i in 0..60 {
        let eye = generate(&config, i);
        let bin = if eye.truth.labels.gon {
            &mut large
        } else {
            &mut small
        };
        bin.push(analyse(&eye.rgb, 320, 320).features[index]);
    }
    let mean = |v: &[f32]| v.iter().sum::<f32>() / v.len() as f32;
    assert!(small.len() > 10 && large.len() > 10);
    assert!(
        mean(&large) > mean(&small) + 0.05,
        "{} {}",
        mean(&large),
        mean(&small)
    );
}

#[test]
fn landmarks_of_drawn_eyes_are_found() {
    let config = Config::default();
    let mut found = 0;
    for i in 0..40 {
        let eye = generate(&config, i * 5);
        let (seen, truth) = (analyse(&eye.rgb, 320, 320), &eye.truth);
        assert!(
            (f64::from(seen.radius) - truth.field_radius).abs() < 0.04 * truth.field_radius,
            "eye {i}: {}",
            seen.radius
        );
        let away =
            |(x, y): (f32, f32), (tx, ty): (f64, f64)| (f64::from(x) - tx).hypot(f64::from(y) - ty);
        found += u32::from(
            away(seen.disc, truth.disc) < truth.disc_radius
                && away(seen.fovea, truth.fovea) < 2.0 * truth.disc_radius,
        );
    }
    assert!(found >= 38, "{found} of 40");
}

#[test]
fn awkward_pictures_give_finite_features() {
    let checker: Vec<u8> = (0..64 * 64 * 3)
        .map(|i| if (i / 3 + i / 192) % 2 == 0 { 255 } else { 0 })
        .collect();
    let mut dot = vec![0; 50 * 40 * 3];
    dot[3 * (20 * 50 + 25)] = 255;
    for (rgb, width, height) in [
        (vec![0; 768 * 768 * 3], 768, 768),
        (vec![255; 100 * 90 * 3], 100, 90),
        (vec![255, 0, 0], 1, 1),
        (vec![7; 3 * 1000], 1000, 1),
        (vec![90; 3 * 2 * 700], 2, 700),
        (checker, 64, 64),
        (dot, 50, 40),
    ] {
        let features = analyse(&rgb, width, height).features;
        assert_eq!(features.len(), DIM);
        assert!(features.iter().all(|v| v.is_finite()), "{width} x {height}");
        let embedding = embed(&features);
        let norm = embedding.iter().map(|v| v * v).sum::<f32>().sqrt();
        assert!(
            norm > 0.1 && norm.is_finite(),
            "an embedding that cannot be normalised: {norm}"
        );
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]
    #[test]
    fn any_picture_gives_finite_features(width in 1_usize..80, height in 1_usize..80, seed: u64, dark in 0_u8..=255) {
        let mut state = seed;
        let rgb: Vec<u8> = (0..width * height * 3)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 56) as u8).min(dark)
            })
            .collect();
        let found = analyse(&rgb, width, height);
        proptest::prop_assert_eq!(found.features.len(), DIM);
        proptest::prop_assert!(found.features.iter().all(|v| v.is_finite()));
        proptest::prop_assert!(embed(&found.features).iter().all(|v| v.abs() <= 1.0));
        proptest::prop_assert!(found.disc.0.is_finite() && found.radius > 0.0);
        proptest::prop_assert_eq!(analyse(&rgb, width, height).features, found.features);
    }
}
