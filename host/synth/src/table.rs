//! What is written of a picture besides its pixels: the row of `labels.csv`, the line of `truth.jsonl`, the folder's
//! README. Knows nothing of folders.

use crate::GENERATOR_VERSION;
use crate::config::Config;
use crate::truth::Truth;
use serde::Serialize;
use std::fmt::Write as _;

/// Columns of `labels.csv`, in order; `docs/synthetic.md` says what each holds.
pub const COLUMNS: &str = "image,split,patient,eye,age,sex,population,camera,quality,icdr_grade,edema,gon,\
    true_icdr_grade,true_edema,true_gon,vcdr,rim_notch,myopic_crescent,drusen,venous_beading,\
    disc_x,disc_y,fovea_x,fovea_y,width,height,boxes,masks";

/// Name of a picture below the dataset's folder.
pub fn image(truth: &Truth) -> String {
    format!("images/{}.png", truth.name)
}

/// Name of a mask below the dataset's folder.
pub fn mask(truth: &Truth, what: &str) -> String {
    format!("masks/{what}/{}.png", truth.name)
}

/// The row of a picture, with its line end; `masks` says whether they are written.
pub fn row(t: &Truth, masks: bool) -> String {
    let (label, truth) = (t.recorded, t.labels);
    let mut text = format!(
        "{},{},P{:06},{},{},{},{},{},{},",
        image(t),
        t.split.as_str(),
        t.patient,
        t.eye.as_str(),
        t.age,
        t.sex.as_str(),
        t.population,
        t.camera,
        t.quality.as_str(),
    );
    let flags = [t.rim_notch, t.myopic_crescent, t.drusen, t.venous_beading].map(u8::from);
    let [notch, crescent, drusen, beading] = flags;
    write!(
        text,
        "{},{},{},{},{},{},{:.4},{notch},{crescent},{drusen},{beading},",
        label.grade,
        label.edema,
        u8::from(label.gon),
        truth.grade,
        truth.edema,
        u8::from(truth.gon),
        t.cup_to_disc,
    )
    .expect("writing to a string does not fail");
    write!(
        text,
        "{:.2},{:.2},{:.2},{:.2},{},{},",
        t.disc.0, t.disc.1, t.fovea.0, t.fovea.1, t.width, t.height
    )
    .expect("writing to a string does not fail");
    for (i, lesion) in t.lesions.iter().enumerate() {
        let [left, top, right, bottom] = lesion.bounds;
        let gap = if i > 0 { ";" } else { "" };
        let kind = lesion.kind.as_str();
        write!(text, "{gap}{kind} {left} {top} {right} {bottom}")
            .expect("writing to a string does not fail");
    }
    text.push(',');
    if masks {
        text.push_str(&t.masks.join(";"));
    }
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Line<'a> {
    image: String,
    #[serde(flatten)]
    truth: &'a Truth,
}

/// The line of a picture in `truth.jsonl`, with its line end.
pub fn line(truth: &Truth) -> String {
    let line = Line {
        image: image(truth),
        truth,
    };
    let mut text = serde_json::to_string(&line).expect("a record of numbers and text is JSON");
    text.push('\n');
    text
}

/// What a reader who finds the folder must know.
pub fn readme(config: &Config) -> String {
    let size = config.size;
    format!(
        "# SYNTHETIC fundus photographs\n\n\
         Every picture here was drawn by a program (focus-synth, version {GENERATOR_VERSION}, seed {}). No person, no patient and no camera\n\
         was involved; results on these pictures say nothing of performance on real eyes.\n\n\
         | path | what |\n| --- | --- |\n\
         | `images/*.png` | {} pictures, {size} x {size} pixels, 8-bit RGB; names are random and say nothing of the labels |\n\
         | `masks/<what>/*.png` | where something is, 1 bit a pixel, the picture's name; absent where there is nothing{} |\n\
         | `labels.csv` | one row a picture |\n\
         | `truth.jsonl` | the whole truth, one JSON object a picture, in the same order |\n\
         | `synthetic.json` | config, generator version and a digest of the other files |\n\n\
         Columns of `labels.csv`: `{COLUMNS}`.\n\n\
         `split` train, validation or test, by patient; `eye` right or left; `sex` F or M; `quality` good or poor; `icdr_grade` 0 to 4;\n\
         `edema` 2 where a hard exudate lies within a third of a disc diameter of the fovea, 1 within one, else 0; `gon` 1 where `vcdr`,\n\
         the vertical cup-to-disc ratio, is 0.6 or more. These three are as recorded, label noise included (rate {}); the columns `true_...`\n\
         hold what was drawn. Coordinates are pixels from the top left corner. `boxes`: kind, left, top, right, bottom, separated by `;`.\n",
        config.seed,
        config.images(),
        if config.masks {
            ""
        } else {
            " (not asked for here)"
        },
        config.label_noise.rate,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn a_row_has_every_column_and_a_line_all_of_the_truth() {
        let config = Config {
            size: 96,
            patients: 10,
            ..Config::default()
        };
        for index in 0..config.images() {
            let truth = generate(&config, index).truth;
            for masks in [true, false] {
                let row = row(&truth, masks);
                let cells: Vec<&str> = row.trim_end().split(',').collect();
                assert_eq!(cells.len(), COLUMNS.split(',').count());
                assert_eq!(cells.last().unwrap().is_empty(), !masks);
            }
            let line: serde_json::Value = serde_json::from_str(&line(&truth)).unwrap();
            assert_eq!(line["labels"]["grade"], truth.labels.grade);
            assert_eq!(line["image"], image(&truth));
            assert_eq!(
                line["lesions"].as_array().unwrap().len(),
                truth.lesions.len()
            );
        }
        assert!(!COLUMNS.contains(' '));
    }
}
