//! The pictures' bytes are the same on every platform and for every thread: a digest of pixels and truth is pinned.
//! Changing it means raising `GENERATOR_VERSION`.

use focus_synth::{Config, GENERATOR_VERSION, generate};

fn digest(config: &Config, indices: impl Iterator<Item = u32>) -> String {
    let mut hasher = blake3::Hasher::new();
    for index in indices {
        let eye = generate(config, index);
        hasher.update(&eye.rgb);
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
        (1, "d6c1df3d7cb58afe")
    );
    let other = Config {
        seed: 7,
        size: 96,
        effect: 2.0,
        ..config
    };
    assert_eq!(digest(&other, 0..20), "f50f62e3a9bbfa22");
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
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
    #[test]
    fn any_config_in_range_draws_a_full_picture(seed: u64, size in 64_u32..200, patients in 1_u32..50, effect in 0.25_f64..4.0, poor in 0.0_f64..=1.0) {
        let config = Config { seed, size, patients, effect, poor_quality: poor };
        let eye = generate(&config, (seed % u64::from(config.images())) as u32);
        proptest::prop_assert_eq!(eye.rgb.len(), (size * size * 3) as usize);
        proptest::prop_assert!(eye.truth.grade <= 4);
        proptest::prop_assert_eq!(eye.truth.gon, eye.truth.cup_to_disc >= 0.6);
        let lit = eye.rgb.iter().filter(|v| **v > 30).count();
        proptest::prop_assert!(lit > eye.rgb.len() / 10, "{} of {}", lit, eye.rgb.len());
    }
}
