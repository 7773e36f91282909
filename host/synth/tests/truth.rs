//! The truth is what is drawn: measured back from masks and from pixels.

use focus_synth::{
    Camera, Config, Eye, GroupEffect, Laterality, LesionKind, Mask, Population, Target, generate,
};

fn cameras() -> Vec<Camera> {
    Camera::PRESETS
        .map(|name| Camera::preset(name).expect("a preset"))
        .to_vec()
}

// All cameras, many notches and crescents, large enough to measure on.
fn varied(size: u32) -> Config {
    let mut populations = Population::defaults();
    for population in &mut populations {
        population.myopia = 0.5;
    }
    Config {
        size,
        gon: 0.5,
        drusen: 0.8,
        cameras: cameras(),
        populations,
        ..Config::default()
    }
}

// Nothing between the retina and the pixels.
fn clean(config: Config) -> Config {
    let camera = Camera {
        blur: 0.0,
        noise: 0.0,
        ..Camera::preset("A").expect("a preset")
    };
    Config {
        cameras: vec![camera],
        poor_quality: 0.0,
        ..config
    }
}

fn mask<'a>(eye: &'a Eye, what: &str) -> Option<&'a Mask> {
    eye.masks.iter().find(|m| m.what == what)
}

fn effect(on: Target, factor: f64) -> Vec<GroupEffect> {
    vec![GroupEffect {
        on,
        factor,
        ..GroupEffect::default()
    }]
}

#[test]
fn disc_and_cup_are_measured_back_from_their_masks() {
    let config = varied(512);
    for index in 0..48 {
        let eye = generate(&config, index);
        let truth = &eye.truth;
        let disc = mask(&eye, "optic_disc").unwrap();
        let cup = mask(&eye, "optic_cup").unwrap();
        let (x, y) = disc.centroid(512).unwrap();
        let (dx, dy) = (x - truth.disc.0, y - truth.disc.1);
        assert!(dx.abs() < 0.2 && dy.abs() < 0.2, "eye {index}: {dx} {dy}");
        let area = std::f64::consts::PI * truth.disc_radius * truth.disc_half_width;
        assert!((disc.area() as f64 / area - 1.0).abs() < 0.02);
        let rows = f64::from(disc.rows(512));
        assert!((rows - 2.0 * truth.disc_radius).abs() <= 1.0);
        let ratio = f64::from(cup.rows(512)) / rows;
        assert_eq!(ratio, truth.measured_cup_to_disc);
        assert!(
            (ratio - truth.cup_to_disc).abs() < 2.0 / rows,
            "eye {index}: {ratio}, asked {}",
            truth.cup_to_disc
        );
        let pairs = cup.pixels.iter().zip(&disc.pixels);
        assert!(
            pairs.clone().all(|(c, d)| c <= d),
            "the cup lies in the disc"
        );
    }
}

#[test]
fn masks_and_boxes_agree_and_lie_in_the_field() {
    for size in [64, 320] {
        let config = varied(size);
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..60 {
            let eye = generate(&config, index);
            let truth = &eye.truth;
            let named: Vec<_> = eye.masks.iter().map(|m| m.what).collect();
            assert_eq!(named, truth.masks);
            seen.extend(named);
            for mask in &eye.masks {
                let lesions: Vec<_> = truth
                    .lesions
                    .iter()
                    .filter(|l| l.kind.as_str() == mask.what)
                    .collect();
                let structure = lesions.is_empty();
                for (i, _) in mask.pixels.iter().enumerate().filter(|(_, m)| **m == 1) {
                    let (x, y) = (i as u32 % size, i as u32 / size);
                    let (dx, dy) = (
                        f64::from(x) + 0.5 - truth.field.0,
                        f64::from(y) + 0.5 - truth.field.1,
                    );
                    assert!((dx * dx + dy * dy).sqrt() < truth.field_radius + 0.01);
                    let boxed = |l: &&&focus_synth::Lesion| {
                        (l.bounds[0]..l.bounds[2]).contains(&x)
                            && (l.bounds[1]..l.bounds[3]).contains(&y)
                    };
                    assert!(structure || lesions.iter().any(|l| boxed(&l)));
                }
                for lesion in lesions {
                    let [left, top, right, bottom] = lesion.bounds;
                    let held = |xs: std::ops::Range<u32>, ys: std::ops::Range<u32>| {
                        xs.flat_map(|x| ys.clone().map(move |y| (y * size + x) as usize))
                            .any(|i| mask.pixels[i] == 1)
                    };
                    // Each side of a box touches the mask.
                    assert!(
                        held(left..left + 1, top..bottom) && held(right - 1..right, top..bottom)
                    );
                    assert!(
                        held(left..right, top..top + 1) && held(left..right, bottom - 1..bottom)
                    );
                    let within = |v: f64, low: u32, high: u32| {
                        v > f64::from(low) - 0.51 && v < f64::from(high) + 0.51
                    };
                    assert!(within(lesion.x, left, right) && within(lesion.y, top, bottom));
                }
            }
            let kinds = |name: &str| truth.lesions.iter().any(|l| l.kind.as_str() == name);
            for what in ["microaneurysm", "drusen", "speck", "hard_exudate"] {
                assert_eq!(mask(&eye, what).is_some(), kinds(what), "{what}");
            }
            assert_eq!(mask(&eye, "crescent").is_some(), truth.myopic_crescent);
            assert_eq!(truth.drusen, kinds("drusen"));
        }
        assert_eq!(
            seen.len(),
            focus_synth::MASK_KINDS.len(),
            "every kind occurs: {seen:?}"
        );
    }
}

#[test]
fn left_eyes_mirror_right_eyes() {
    let config = varied(256);
    let (mut cups, mut crescents) = (0, 0);
    for index in 0..80 {
        let eye = generate(&config, index);
        let truth = &eye.truth;
        // To the viewer's right in a left eye.
        let temporal = if truth.eye == Laterality::Left {
            1.0
        } else {
            -1.0
        };
        assert!((truth.fovea.0 - truth.disc.0) * temporal > 3.5 * truth.disc_radius);
        assert!(
            truth.fovea.1 > truth.disc.1,
            "the fovea lies below the disc"
        );
        let aside = |what: &str| {
            let x = mask(&eye, what)?.centroid(256)?.0;
            Some((x - truth.disc.0) * temporal)
        };
        cups += i32::from(aside("optic_cup").unwrap() > 0.0);
        if let Some(crescent) = aside("crescent") {
            assert!(crescent > 0.7 * truth.disc_half_width, "{index} {crescent}");
            crescents += 1;
        }
    }
    assert!(cups > 70, "cups lie a little to the temporal side: {cups}");
    assert!(crescents > 20);
    // What belongs to the patient is the same in both eyes.
    for patient in 0..20 {
        let (right, left) = (
            generate(&config, 2 * patient).truth,
            generate(&config, 2 * patient + 1).truth,
        );
        let aspect = |t: &focus_synth::Truth| t.disc_half_width / t.disc_radius;
        assert!((aspect(&right) - aspect(&left)).abs() < 1e-9);
        assert_eq!(right.myopic_crescent, left.myopic_crescent);
        assert_eq!(
            (right.pigment, right.population),
            (left.pigment, left.population)
        );
    }
}

#[test]
fn lesions_change_pixels_in_their_boxes_and_nowhere_else() {
    let base = clean(Config {
        grades: [0.0, 0.0, 0.3, 0.3, 0.4],
        drusen: 0.0,
        ..Config::default()
    });
    let hidden = Config {
        effects: effect(Target::Lesions, 0.0),
        ..base.clone()
    };
    let (mut right_way, mut lesions) = (0, 0);
    for index in 0..20 {
        let (with, without) = (generate(&base, index), generate(&hidden, index));
        assert_eq!(with.truth.labels, without.truth.labels);
        assert_eq!(with.masks, without.masks);
        let size = base.size;
        let green = |eye: &Eye, i: usize| i32::from(eye.rgb[i * 3 + 1]);
        // Edges are soft: half a lesion's extent beyond its box something may show.
        let reaches = |x: u32, y: u32| {
            with.truth.lesions.iter().any(|l| {
                let [left, top, right, bottom] = l.bounds;
                let more = 3 + (right - left).min(bottom - top) / 2;
                x + more >= left && x < right + more && y + more >= top && y < bottom + more
            })
        };
        for i in 0..(size * size) as usize {
            if green(&with, i) != green(&without, i) {
                assert!(
                    reaches(i as u32 % size, i as u32 / size),
                    "eye {index} pixel {i}"
                );
            }
        }
        for l in with.truth.lesions.iter().filter(|l| l.contrast > 0.3) {
            let red = match l.kind {
                LesionKind::Microaneurysm
                | LesionKind::Haemorrhage
                | LesionKind::Neovascularisation => true,
                LesionKind::HardExudate | LesionKind::SoftExudate => false,
                LesionKind::Drusen | LesionKind::Speck => continue,
            };
            let [left, top, right, bottom] = l.bounds;
            let inside =
                (top..bottom).flat_map(|y| (left..right).map(move |x| (y * size + x) as usize));
            let change: i32 = inside.map(|i| green(&with, i) - green(&without, i)).sum();
            lesions += 1;
            right_way += i32::from(if red { change < 0 } else { change > 0 });
        }
    }
    assert!(lesions > 200, "{lesions}");
    // Where lesions of both colours overlap, one of them wins.
    assert!(
        f64::from(right_way) > 0.96 * f64::from(lesions),
        "{right_way} of {lesions}"
    );
}

#[test]
fn the_cup_to_disc_ratio_is_measured_back_from_pixels() {
    let base = clean(Config {
        size: 512,
        gon: 0.5,
        grades: [1.0, 0.0, 0.0, 0.0, 0.0],
        ..Config::default()
    });
    let flat = Config {
        effects: effect(Target::Cup, 0.0),
        ..base.clone()
    };
    let size = 512;
    for index in 0..24 {
        let (eye, without) = (generate(&base, index), generate(&flat, index));
        let truth = &eye.truth;
        let change: Vec<i32> = (0..size * size)
            .map(|i| i32::from(eye.rgb[i * 3 + 2]) - i32::from(without.rgb[i * 3 + 2]))
            .collect();
        // The plateau, not the odd pixel where a vessel or a rounding adds.
        let mut sorted: Vec<i32> = change.iter().copied().filter(|c| *c > 4).collect();
        sorted.sort_unstable();
        let full = sorted[sorted.len() * 9 / 10];
        let rows: Vec<usize> = (0..size)
            .filter(|y| {
                change[y * size..(y + 1) * size]
                    .iter()
                    .any(|c| 2 * c >= full)
            })
            .collect();
        let extent = (rows.last().unwrap() - rows[0] + 1) as f64;
        let ratio = extent / (2.0 * truth.disc_radius);
        assert!(
            (ratio - truth.cup_to_disc).abs() < 0.06,
            "eye {index}: {ratio}, asked {}",
            truth.cup_to_disc
        );
        for (i, c) in change.iter().enumerate().filter(|(_, c)| c.abs() > 1) {
            let (dx, dy) = (
                ((i % size) as f64 + 0.5 - truth.disc.0) / truth.disc_half_width,
                ((i / size) as f64 + 0.5 - truth.disc.1) / truth.disc_radius,
            );
            assert!(
                (dx * dx + dy * dy).sqrt() < 1.06,
                "eye {index}: {c} off the disc"
            );
        }
    }
}

#[test]
fn vessels_are_dark_and_veins_darker_and_wider_than_arteries() {
    let config = clean(Config {
        grades: [1.0, 0.0, 0.0, 0.0, 0.0],
        ..Config::default()
    });
    for index in 0..12 {
        let eye = generate(&config, index);
        let truth = &eye.truth;
        let size = truth.width as usize;
        let near = |i: usize| {
            let (x, y) = (
                (i % size) as f64 - truth.field.0,
                (i / size) as f64 - truth.field.1,
            );
            (x * x + y * y).sqrt() < 0.75 * truth.field_radius
        };
        // Green is what blood absorbs.
        let green = |inside: &dyn Fn(usize) -> bool| {
            let pixels = eye.rgb.chunks_exact(3).enumerate();
            let seen = pixels.filter(|(i, _)| near(*i) && inside(*i));
            let (sum, n) = seen.fold((0.0, 0.0), |(sum, n), (_, p)| {
                (sum + f64::from(p[1]), n + 1.0)
            });
            sum / n
        };
        let (artery, vein) = (mask(&eye, "artery").unwrap(), mask(&eye, "vein").unwrap());
        let disc = mask(&eye, "optic_disc").unwrap();
        let off = |i: usize| disc.pixels[i] == 0;
        let in_vein = green(&|i| vein.pixels[i] == 1 && artery.pixels[i] == 0 && off(i));
        let in_artery = green(&|i| artery.pixels[i] == 1 && off(i));
        let elsewhere = green(&|i| vein.pixels[i] + artery.pixels[i] == 0 && off(i));
        assert!(
            in_vein < in_artery && in_artery < 0.95 * elsewhere,
            "eye {index}: {in_vein} {in_artery} {elsewhere}"
        );
        assert!(vein.area() > artery.area());
    }
}
