//! Draws `docs/images/synthetic.png`: `cargo run --release -p focus-synth --example contact_sheet -- docs/images/synthetic.png`.
//!
//! Rows: one eye at the ICDR grades 0 to 4; glaucoma with a notch, myopic crescent, drusen, edema at the centre, poor
//! quality; a light, a medium and a dark fundus, a tessellated one, the fellow eye; cameras A, B, C, M, and the truth.

use focus_synth::{Camera, Config, Eye, Picture, Population, contact_sheet, generate};

const COLUMNS: u32 = 5;
const SIZE: u32 = 540;
const SHRINK: u32 = 3;

fn main() {
    let out = std::env::args().nth(1).expect("the output is named");
    let eyes = eyes();
    let mut sheet = contact_sheet(&eyes, COLUMNS, SHRINK);
    // Six bits a channel: the file is half as large, and nobody sees it at this size.
    for value in &mut sheet.rgb {
        *value = (*value & 0xFC) | (*value >> 6);
    }
    std::fs::write(out, small_png(&sheet)).expect("the output is writable");
}

fn plain() -> Config {
    Config {
        size: SIZE,
        poor_quality: 0.0,
        gon: 0.0,
        drusen: 0.0,
        edema: [0.0; 5],
        effect: 1.4,
        cameras: vec![camera("A")],
        populations: vec![population(0.15, 0.1, 0.0)],
        ..at_grade(0)
    }
}

// Less noise than the presets have: it does not show at this size, but swells the file.
fn camera(name: &str) -> Camera {
    let camera = Camera::preset(name).expect("a preset's name");
    Camera {
        noise: 0.2 * camera.noise,
        ..camera
    }
}

fn at_grade(grade: usize) -> Config {
    let mut grades = [0.0; 5];
    grades[grade] = 1.0;
    Config {
        grades,
        ..Config::default()
    }
}

fn population(pigment: f64, tessellation: f64, myopia: f64) -> Population {
    Population {
        name: "shown".to_owned(),
        share: 1.0,
        pigment,
        tessellation,
        myopia,
    }
}

// Of the first right eyes the one whose lesions show best.
fn plainest(config: &Config) -> u32 {
    let small = Config {
        size: 64,
        ..config.clone()
    };
    let shown = |i: u32| -> f64 {
        let lesions = generate(&small, i).truth.lesions;
        lesions.iter().map(|l| l.contrast).sum()
    };
    (0..40)
        .step_by(2)
        .max_by(|a, b| shown(*a).total_cmp(&shown(*b)))
        .expect("twenty eyes")
}

fn eyes() -> Vec<Eye> {
    let severe = Config {
        grades: at_grade(3).grades,
        ..plain()
    };
    let plainest_severe = plainest(&severe);
    let mut eyes: Vec<Eye> = (0..5)
        .map(|grade| {
            let grades = at_grade(grade).grades;
            draw(&Config { grades, ..plain() }, plainest_severe)
        })
        .collect();
    let gon = Config {
        gon: 1.0,
        ..plain()
    };
    let notched = (0..40)
        .find(|i| {
            let truth = generate(
                &Config {
                    size: 64,
                    ..gon.clone()
                },
                *i,
            )
            .truth;
            truth.rim_notch && (0.7..0.8).contains(&truth.cup_to_disc)
        })
        .expect("half of the glaucomatous discs have a notch");
    eyes.push(draw(&gon, notched));
    let of = |pigment, tessellation, myopia| Config {
        populations: vec![population(pigment, tessellation, myopia)],
        ..plain()
    };
    eyes.push(draw(&of(0.2, 0.25, 1.0), 4));
    let drusen = Config {
        drusen: 1.0,
        age_mean: 75.0,
        age_sd: 0.0,
        ..plain()
    };
    eyes.push(draw(&drusen, plainest(&drusen)));
    let edema = Config {
        edema: [0.0, 0.0, 0.0, 1.0, 0.0],
        central: 1.0,
        ..severe
    };
    eyes.push(draw(&edema, plainest_severe));
    let poor = Config {
        poor_quality: 1.0,
        ..edema.clone()
    };
    eyes.push(draw(&poor, plainest_severe));
    for (pigment, tessellation) in [(0.0, 0.1), (0.5, 0.1), (0.95, 0.1), (0.3, 0.9)] {
        eyes.push(draw(&of(pigment, tessellation, 0.0), 30));
    }
    eyes.push(draw(&of(0.3, 0.9, 0.0), 31));
    let proliferative = Config {
        grades: at_grade(4).grades,
        ..plain()
    };
    for name in Camera::PRESETS {
        let cameras = vec![camera(name)];
        eyes.push(draw(
            &Config {
                cameras,
                ..proliferative.clone()
            },
            plainest_severe,
        ));
    }
    eyes.push(overlay(draw(&proliferative, plainest_severe)));
    eyes
}

fn draw(config: &Config, index: u32) -> Eye {
    generate(config, index)
}

// Tints what the masks hold and frames the lesions.
fn overlay(mut eye: Eye) -> Eye {
    for mask in &eye.masks {
        let colour: [u16; 3] = match mask.what {
            "artery" => [255, 60, 60],
            "vein" => [70, 110, 255],
            "optic_disc" => [255, 230, 120],
            "optic_cup" => [255, 255, 255],
            "hard_exudate" | "soft_exudate" => [255, 255, 0],
            "drusen" | "speck" => continue,
            _ => [0, 255, 120],
        };
        for (i, _) in mask.pixels.iter().enumerate().filter(|(_, m)| **m == 1) {
            for (value, c) in eye.rgb[i * 3..i * 3 + 3].iter_mut().zip(colour) {
                *value = ((u16::from(*value) + 2 * c) / 3) as u8;
            }
        }
    }
    let width = eye.truth.width;
    for lesion in &eye.truth.lesions {
        let [left, top, right, bottom] = lesion.bounds;
        let (left, top) = (left.saturating_sub(3), top.saturating_sub(3));
        let (right, bottom) = ((right + 2).min(width - 1), (bottom + 2).min(width - 1));
        for y in top..=bottom {
            for x in left..=right {
                if y <= top + 1 || y + 1 >= bottom || x <= left + 1 || x + 1 >= right {
                    let p = ((y * width + x) * 3) as usize;
                    eye.rgb[p..p + 3].copy_from_slice(&[225, 255, 225]);
                }
            }
        }
    }
    eye
}

fn small_png(picture: &Picture) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().expect("a header is writable");
    writer
        .write_image_data(&picture.rgb)
        .expect("a sheet of u8 RGB is encodable");
    writer.finish().expect("memory is writable");
    bytes
}
