//! Each field of a config changes what it says and nothing else, with the same seed.

use focus_synth::{
    Camera, Config, GroupEffect, LabelNoise, NoiseIn, NoiseKind, Population, Sex, Target, generate,
};

// The truth's fields that may change, and whether pixels may.
struct Change {
    name: &'static str,
    apply: fn(&mut Config),
    fields: &'static [&'static str],
    pixels: bool,
}

const CHANGES: &[Change] = &[
    Change {
        name: "poor_quality",
        apply: |c| c.poor_quality = 0.7,
        fields: &["quality"],
        pixels: true,
    },
    Change {
        name: "effect",
        apply: |c| c.effect = 0.5,
        fields: &["lesions"],
        pixels: true,
    },
    Change {
        name: "effects, lesions",
        apply: |c| {
            c.effects = vec![GroupEffect {
                sex: Some(Sex::F),
                on: Target::Lesions,
                factor: 0.3,
                ..GroupEffect::default()
            }];
        },
        fields: &["lesions"],
        pixels: true,
    },
    Change {
        name: "effects, cup",
        apply: |c| {
            c.effects = vec![GroupEffect {
                age_from: Some(50),
                on: Target::Cup,
                factor: 0.3,
                ..GroupEffect::default()
            }];
        },
        fields: &[],
        pixels: true,
    },
    Change {
        name: "gon",
        apply: |c| c.gon = 0.8,
        fields: &[
            "labels",
            "recorded",
            "cup_to_disc",
            "measured_cup_to_disc",
            "rim_notch",
        ],
        pixels: true,
    },
    Change {
        name: "grades",
        apply: |c| c.grades = [0.1, 0.1, 0.2, 0.3, 0.3],
        fields: &["labels", "recorded", "venous_beading", "lesions", "masks"],
        pixels: true,
    },
    Change {
        name: "edema",
        apply: |c| c.edema = [0.0, 1.0, 1.0, 1.0, 1.0],
        fields: &["labels", "recorded", "lesions", "masks"],
        pixels: true,
    },
    Change {
        name: "central",
        apply: |c| c.central = 1.0,
        fields: &["labels", "recorded", "lesions", "masks"],
        pixels: true,
    },
    Change {
        name: "age_mean",
        apply: |c| c.age_mean = 40.0,
        fields: &["age", "drusen", "lesions", "masks"],
        pixels: true,
    },
    Change {
        name: "drusen",
        apply: |c| c.drusen = 1.0,
        fields: &["drusen", "lesions", "masks"],
        pixels: true,
    },
    Change {
        name: "female",
        apply: |c| c.female = 0.9,
        fields: &["sex"],
        pixels: false,
    },
    Change {
        name: "test",
        apply: |c| c.test = 0.8,
        fields: &["split"],
        pixels: false,
    },
    Change {
        name: "validation",
        apply: |c| c.validation = 0.4,
        fields: &["split"],
        pixels: false,
    },
    Change {
        name: "label_noise",
        apply: |c| {
            c.label_noise = LabelNoise {
                rate: 0.5,
                kind: NoiseKind::Uniform,
                splits: NoiseIn::All,
            };
        },
        fields: &["recorded"],
        pixels: false,
    },
    Change {
        name: "populations: pigment",
        apply: |c| c.populations.iter_mut().for_each(|p| p.pigment = 0.6),
        fields: &["pigment"],
        pixels: true,
    },
    Change {
        name: "populations: tessellation",
        apply: |c| c.populations.iter_mut().for_each(|p| p.tessellation = 0.9),
        fields: &["tessellation"],
        pixels: true,
    },
    Change {
        name: "populations: share",
        apply: |c| c.populations[2].share = 9.0,
        fields: &["population", "pigment", "tessellation"],
        pixels: true,
    },
    Change {
        name: "cameras: colour",
        apply: |c| c.cameras.iter_mut().for_each(|k| k.tint = [0.9, 1.0, 1.3]),
        fields: &[],
        pixels: true,
    },
    Change {
        name: "cameras: blur and noise",
        apply: |c| {
            for camera in &mut c.cameras {
                (camera.blur, camera.noise) = (9.0, 0.04);
            }
        },
        fields: &[],
        pixels: true,
    },
    Change {
        name: "cameras: name",
        apply: |c| c.cameras[0].name = "clinic-1".into(),
        fields: &["camera"],
        pixels: false,
    },
];

fn base() -> Config {
    let mut populations = Population::defaults();
    // Without myopia: its crescent would be redrawn with the population.
    for population in &mut populations {
        population.myopia = 0.0;
    }
    Config {
        size: 96,
        patients: 20,
        populations,
        ..Config::default()
    }
}

#[test]
fn each_field_changes_what_it_says_and_nothing_else() {
    let base = base();
    let draw = |config: &Config| -> Vec<_> {
        (0..config.images())
            .map(|i| {
                let eye = generate(config, i);
                (
                    serde_json::to_value(&eye.truth).unwrap(),
                    eye.rgb,
                    eye.masks,
                )
            })
            .collect()
    };
    let before = draw(&base);
    for change in CHANGES {
        let mut config = base.clone();
        (change.apply)(&mut config);
        config.check().unwrap();
        let mut moved = std::collections::BTreeSet::new();
        let mut pixels = false;
        for (a, b) in before.iter().zip(draw(&config)) {
            for (key, value) in a.0.as_object().unwrap() {
                if *value != b.0[key] {
                    moved.insert(key.clone());
                }
            }
            pixels |= a.1 != b.1;
            for what in ["artery", "optic_disc"] {
                let mask =
                    |m: &[focus_synth::Mask]| m.iter().find(|m| m.what == what).unwrap().clone();
                let same = mask(&a.2) == mask(&b.2);
                assert!(same || change.name == "age_mean", "{}: {what}", change.name);
            }
        }
        for key in &moved {
            assert!(
                change.fields.contains(&key.as_str()),
                "{} changed `{key}`",
                change.name
            );
        }
        let first = change.fields.first().is_none_or(|f| moved.contains(*f));
        assert!(first, "{} changed {moved:?}", change.name);
        assert_eq!(pixels, change.pixels, "{}", change.name);
    }
}

#[test]
fn effects_scale_contrast_and_leave_places_alone() {
    let base = base();
    let half = Config {
        effect: 0.5,
        ..base.clone()
    };
    for index in 0..base.images() {
        let (a, b) = (generate(&base, index).truth, generate(&half, index).truth);
        assert_eq!(a.lesions.len(), b.lesions.len());
        for (a, b) in a.lesions.iter().zip(&b.lesions) {
            assert_eq!((a.kind, a.x, a.y, a.bounds), (b.kind, b.x, b.y, b.bounds));
            let harmless = matches!(a.kind.as_str(), "drusen" | "speck");
            let expected = if harmless {
                a.contrast
            } else {
                0.5 * a.contrast
            };
            assert!((b.contrast - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn size_and_number_change_no_label() {
    let base = base();
    let other = Config {
        size: 160,
        patients: 60,
        masks: false,
        ..base.clone()
    };
    for index in 0..base.images() {
        let (a, b) = (generate(&base, index).truth, generate(&other, index).truth);
        assert_eq!(
            (a.name, a.labels, a.recorded, a.age),
            (b.name, b.labels, b.recorded, b.age)
        );
        assert!((a.disc.0 / 96.0 - b.disc.0 / 160.0).abs() < 0.004);
    }
}

#[test]
fn cameras_by_split_shift_the_test_set_alone() {
    let shifted = Config {
        cameras: vec![
            Camera {
                test: 0.0,
                ..Camera::preset("A").unwrap()
            },
            Camera {
                train: 0.0,
                ..Camera::preset("M").unwrap()
            },
        ],
        ..base()
    };
    let plain = Config {
        cameras: vec![Camera::preset("A").unwrap()],
        ..base()
    };
    for index in 0..shifted.images() {
        let (a, b) = (generate(&plain, index), generate(&shifted, index));
        let test = a.truth.split.as_str() == "test";
        assert_eq!(a.rgb == b.rgb, !test);
        assert_eq!(b.truth.camera, if test { "M" } else { "A" });
        assert_eq!(a.truth.labels, b.truth.labels);
    }
}

#[test]
fn the_documented_config_and_columns_are_the_real_ones() {
    let page = include_str!("../../../docs/synthetic.md");
    let example = page
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let config: Config = toml::from_str(example).unwrap();
    assert_eq!(config.check(), Ok(()));
    assert_eq!(config.effects[0].factor, 0.5);
    for column in focus_synth::COLUMNS.split(',') {
        assert!(page.contains(&format!("`{column}`")), "column `{column}`");
    }
    for what in focus_synth::MASK_KINDS {
        assert!(page.contains(&format!("`{what}`")), "mask `{what}`");
    }
    let fields = serde_json::to_value(Config::default()).unwrap();
    for field in fields.as_object().unwrap().keys() {
        assert!(page.contains(field), "field `{field}`");
    }
}
