//! The pictures' bytes are the same on every platform and for every thread: a digest of pixels, masks and truth is pinned.
//! Changing it means raising `GENERATOR_VERSION`.

use focus_synth::{Camera, Config, GENERATOR_VERSION, generate};

fn digest(config: &Config, indices: impl Iterator<Item = u32>) -> String {
    let mut hasher = blake3::Hasher::new();
    for index in indices {
        let eye = generate(config, index);
        hasher.update(&eye.rgb);
        for mask in &eye.masks {
            hasher.update(&mask.pixels);
        }
        // The shortest decimal form of an f64 is exact.
        hasher.update(format!("{:?}", eye.truth).as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[test]
fn digest_of_the_default_is_pinned() {
    let config = Config::default();
    assert_eq!(
        (
            GENERATOR_VERSION,
            digest(&config, (0..240).step_by(7)).as_str()
        ),
        (2, "1119a110796ab2e1")
    );
    let other = Config {
        seed: 7,
        size: 96,
        effect: 2.0,
        cameras: Camera::PRESETS
            .map(|name| Camera::preset(name).unwrap())
            .to_vec(),
        ..config
    };
    assert_eq!(digest(&other, 0..20), "887acbc26c3f3bbc");
}

#[test]
fn access_is_random() {
    let config = Config {
        size: 64,
        ..Config::default()
    };
    let forward: Vec<_> = (0..10).map(|i| generate(&config, i).rgb).collect();
    for i in (0..10).rev() {
        assert_eq!(generate(&config, i).rgb, forward[i as usize], "eye {i}");
    }
    let more = Config {
        patients: 500,
        ..config
    };
    assert_eq!(
        generate(&more, 3).rgb,
        forward[3],
        "more patients do not change the first ones"
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
    #[test]
    fn any_config_in_range_draws_a_full_picture(
        seed: u64,
        size in 64_u32..200,
        patients in 1_u32..50,
        effect in 0.0_f64..4.0,
        poor_quality in 0.0_f64..=1.0,
        gon in 0.0_f64..=1.0,
        eye_correlation in 0.0_f64..=1.0,
        camera in (0.5_f64..1.5, 0.2_f64..1.0, 0.0_f64..20.0, 0.0_f64..0.3, 0.7_f64..1.15, 35.0_f64..60.0),
        stratified: bool,
    ) {
        let camera = Camera {
            contrast: camera.0,
            resolution: camera.1,
            blur: camera.2,
            cut: camera.3,
            fill: camera.4,
            field: camera.5,
            ..Camera::preset("M").unwrap()
        };
        let config = Config {
            seed, size, patients, effect, poor_quality, gon, eye_correlation, stratified,
            cameras: vec![camera],
            ..Config::default()
        };
        let eye = generate(&config, (seed % u64::from(config.images())) as u32);
        let truth = &eye.truth;
        proptest::prop_assert_eq!(eye.rgb.len(), (size * size * 3) as usize);
        proptest::prop_assert!(truth.labels.grade <= 4 && truth.labels.edema <= 2);
        proptest::prop_assert_eq!(truth.labels.gon, truth.cup_to_disc >= focus_synth::GON_RATIO);
        let lit = eye.rgb.iter().filter(|v| **v > 25).count();
        proptest::prop_assert!(lit > eye.rgb.len() / 10, "{} of {}", lit, eye.rgb.len());
        for lesion in &truth.lesions {
            let [left, top, right, bottom] = lesion.bounds;
            proptest::prop_assert!(left < right && top < bottom && right <= size && bottom <= size);
        }
        let inside = |(x, y): (f64, f64)| (0.0..f64::from(size)).contains(&x) && (0.0..f64::from(size)).contains(&y);
        proptest::prop_assert!(inside(truth.disc) && inside(truth.fovea));
    }
}
