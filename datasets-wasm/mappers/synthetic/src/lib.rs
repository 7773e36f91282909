//! The datasets that focus-host draws for itself: `labels.csv`, folders `images` and `masks`. Their truth is exact, since
//! the generator drew what the table says; no number from them says anything about patients.
//!
//! Codings (the generator's): eye `right` | `left`, sex `F` | `M`, quality `good` | `poor`, gon (glaucomatous optic
//! neuropathy) and the findings 0 | 1, edema 0 | 1 | 2, icdr_grade 0 to 4, split `train` | `validation` | `test`; boxes
//! `kind left top right bottom` separated by `;`, masks their kinds separated by `;`; a blank is unknown, or none of them.
//!
//! Two sets of labels: as recorded, which may have been spoilt by label noise, and true. The option `labels` says which
//! of them are the labels, grade and edema; the true states of the tasks are findings (`true_binary_dr`, ...) either way.
//! Folders written before there were two, and by hand, lack the newer columns: what they would say is unknown.

use focus_mapper_sdk::{
    Access, Age, BoundingBox, Descriptor, Device, DeviceKind, Eye, Failure, Fate, Fields, Finding,
    Folder, Frame, ImageKey, ImageRef, Label, Landmark, LandmarkKind, Mapper, Mask, OptionSpec,
    Options, Quality, Row, Sample, Sex, Split, Table, Task, Tracks, Truth, export_mapper, files,
    optional, required, rule, sample,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const GLAUCOMA: u32 = 2;
const TASKS: [&str; 3] = ["binary_dr", "referable_dr", "glaucoma"];
const IMAGES: u32 = 0;
const MASKS: u32 = 1;
/// Larger than any picture the generator draws.
const LARGEST_SIDE: u32 = 100_000;

/// Columns of the grade, of edema and of GON.
type Columns = [&'static str; 3];
const RECORDED: Columns = ["icdr_grade", "edema", "gon"];
const TRUE: Columns = ["true_icdr_grade", "true_edema", "true_gon"];

struct Synthetic {
    labels: Columns,
}

impl Mapper for Synthetic {
    fn describe() -> Descriptor {
        let both = Tracks::AS_PUBLISHED | Tracks::CORRECTED;
        let task = |id: &str, rule: &str| Task {
            id: id.into(),
            tracks: both,
            rule: rule.into(),
            vcdr_at_least: None,
        };
        Descriptor {
            id: "synthetic".into(),
            title: "Synthetic fundus images drawn by focus-host".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "MIT OR Apache-2.0".into(),
            access: Access::Open,
            route: "Drawn on this machine by focus-host; nothing to download".into(),
            citation: "None: drawn by focus-host from a seed".into(),
            country: None,
            device: Device {
                kind: DeviceKind::Unknown,
                camera: None,
            },
            synthetic: true,
            tasks: vec![
                task(TASKS[0], "icdr_grade >= 1"),
                task(TASKS[1], "icdr_grade >= 2 or edema >= 1"),
                task(TASKS[2], "gon = 1: vertical cup-to-disc ratio >= 0.6"),
            ],
            fields: Fields::PATIENT
                | Fields::EYE
                | Fields::AGE
                | Fields::SEX
                | Fields::QUALITY
                | Fields::GRADE
                | Fields::EDEMA
                | Fields::VCDR
                | Fields::FINDINGS
                | Fields::LANDMARKS
                | Fields::BOXES
                | Fields::MASKS
                | Fields::DEVICE,
            options: vec![OptionSpec {
                name: "labels".into(),
                title: "Which labels: as recorded (columns icdr_grade, edema, gon), or the truth behind them (true_...)".into(),
                values: vec!["recorded".into(), "true".into()],
            }],
            tables: vec![Table {
                id: "labels".into(),
                source: files(&["labels.csv"]),
                required: true,
                closed: false,
                columns: columns(),
                join: None,
            }],
            folders: vec![
                Folder {
                    id: "images".into(),
                    paths: vec!["images".into()],
                    required: true,
                    recursive: false,
                    extensions: vec!["png".into(), "jpg".into()],
                    key: ImageKey::Name,
                },
                Folder {
                    id: "masks".into(),
                    paths: vec!["masks".into()],
                    required: false,
                    recursive: true,
                    extensions: vec!["png".into()],
                    key: ImageKey::Name,
                },
            ],
        }
    }

    fn open(options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            labels: if options.get("labels") == "true" {
                TRUE
            } else {
                RECORDED
            },
        })
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let Some(image) = row.text("image") else {
            return Err(row.refuse("image", "the name of a file in `images`"));
        };
        let image = image.strip_prefix("images/").unwrap_or(image);
        let mut sample = sample(IMAGES, image);
        sample.split = row.code(
            "split",
            &[
                ("train", Split::Train),
                ("validation", Split::Validation),
                ("test", Split::Test),
            ],
        )?;
        sample.patient = row.text("patient").map(Into::into);
        sample.eye = row.code("eye", &[("right", Eye::Right), ("left", Eye::Left)])?;
        sample.age = row.number("age", 0.0..=150.0)?.map(|years| Age {
            years,
            at_least: false,
        });
        sample.sex = row.code("sex", &[("F", Sex::Female), ("M", Sex::Male)])?;
        sample.quality = row.code(
            "quality",
            &[("good", Quality::Good), ("poor", Quality::Poor)],
        )?;
        sample.camera = row.text("camera").map(Into::into);
        sample.vcdr = row.number("vcdr", 0.0..=1.0)?;
        let (recorded, truth) = (states(row, RECORDED)?, states(row, TRUE)?);
        if self.labels == TRUE && truth.grade.is_none() {
            // Its rule as published would count every row as negative.
            return Err(row.refuse(
                "true_icdr_grade",
                "the true grade, since true labels are asked for",
            ));
        }
        findings(row, &mut sample, &truth.labels)?;
        let given = if self.labels == TRUE { truth } else { recorded };
        sample.grade = given.grade.map(|g| g as u8);
        sample.edema = given.edema.map(|level| level as u8);
        sample.labels = given.labels;
        sample
            .landmarks
            .extend(landmark(row, LandmarkKind::Disc, "disc_x", "disc_y")?);
        sample
            .landmarks
            .extend(landmark(row, LandmarkKind::Fovea, "fovea_x", "fovea_y")?);
        sample.boxes = boxes(row)?;
        sample.masks = masks(row, image)?;
        Ok(Some(Row::mapped(sample)))
    }
}

fn columns() -> Vec<focus_mapper_sdk::Column> {
    let mut columns: Vec<_> = [
        "image",
        "split",
        "patient",
        "eye",
        "age",
        "sex",
        "quality",
        "icdr_grade",
        "edema",
        "gon",
    ]
    .map(required)
    .into();
    columns.extend(
        [
            "population",
            "camera",
            "true_icdr_grade",
            "true_edema",
            "true_gon",
            "vcdr",
            "rim_notch",
            "myopic_crescent",
            "drusen",
            "venous_beading",
            "disc_x",
            "disc_y",
            "fovea_x",
            "fovea_y",
            "width",
            "height",
            "boxes",
            "masks",
        ]
        .map(optional),
    );
    columns
}

/// What one set of columns says.
struct States {
    grade: Option<u32>,
    edema: Option<u32>,
    labels: Vec<Label>,
}

fn states(row: &Row<'_>, [grade, edema, gon]: Columns) -> Result<States, Failure> {
    let grade = row.whole(grade, 0..=4)?;
    let edema = row.code(edema, &[("0", 0), ("1", 1), ("2", 2)])?;
    let gon = flag(row, gon)?;
    Ok(States {
        grade,
        edema,
        labels: vec![
            rule::any_dr(BINARY_DR, grade),
            rule::referable_dr(REFERABLE_DR, grade, edema.map(|level| level > 0)),
            rule::label(GLAUCOMA, gon),
        ],
    })
}

fn flag(row: &Row<'_>, column: &str) -> Result<Option<bool>, Failure> {
    row.code(column, &[("0", false), ("1", true)])
}

/// What the contract has no field for: the drawn findings, the population, the true state of each task.
fn findings(row: &Row<'_>, sample: &mut Sample, truth: &[Label]) -> Result<(), Failure> {
    for name in ["rim_notch", "myopic_crescent", "drusen", "venous_beading"] {
        if let Some(present) = flag(row, name)? {
            let state = if present {
                Truth::Positive
            } else {
                Truth::Negative
            };
            sample.findings.push(Finding {
                name: name.into(),
                state,
            });
        }
    }
    if let Some(population) = row.text("population") {
        sample.findings.push(Finding {
            name: format!("population_{population}"),
            state: Truth::Positive,
        });
    }
    for (label, task) in truth.iter().zip(TASKS) {
        if label.corrected != Truth::Unknown {
            sample.findings.push(Finding {
                name: format!("true_{task}"),
                state: label.corrected,
            });
        }
    }
    Ok(())
}

fn boxes(row: &Row<'_>) -> Result<Vec<BoundingBox>, Failure> {
    let Some(text) = row.text("boxes") else {
        return Ok(Vec::new());
    };
    let wrong = || {
        row.refuse(
            "boxes",
            "boxes as `kind left top right bottom` in whole pixels, separated by `;`, and a width and a height",
        )
    };
    let side = |column| row.whole(column, 1..=LARGEST_SIDE);
    let (Some(width), Some(height)) = (side("width")?, side("height")?) else {
        return Err(wrong());
    };
    let frame = Frame { width, height };
    let one = |text: &str| {
        let mut words = text.split(' ');
        let what = words.next().filter(|w| !w.is_empty())?;
        let mut edge = || words.next()?.parse::<u32>().ok().map(f64::from);
        let (x1, y1, x2, y2) = (edge()?, edge()?, edge()?, edge()?);
        words.next().is_none().then(|| BoundingBox {
            what: what.into(),
            x1,
            y1,
            x2,
            y2,
            frame,
        })
    };
    let boxes: Option<Vec<_>> = text.split(';').map(one).collect();
    boxes.ok_or_else(wrong)
}

/// Masks lie in a folder of their kind under the picture's name.
fn masks(row: &Row<'_>, image: &str) -> Result<Vec<Mask>, Failure> {
    let Some(text) = row.text("masks") else {
        return Ok(Vec::new());
    };
    text.split(';')
        .map(|what| {
            let plain = |c: char| c.is_ascii_lowercase() || c == '_';
            if what.is_empty() || !what.chars().all(plain) {
                return Err(row.refuse("masks", "kinds of masks, separated by `;`"));
            }
            Ok(Mask {
                what: what.into(),
                image: ImageRef {
                    folder: MASKS,
                    name: format!("{what}/{image}"),
                },
                // One bit a pixel: 0 outside, 1 inside.
                values: vec![1],
                others: vec![0],
            })
        })
        .collect()
}

/// A centre needs both coordinates and the picture's size; with less, it is unknown.
fn landmark(
    row: &Row<'_>,
    kind: LandmarkKind,
    x: &str,
    y: &str,
) -> Result<Option<Landmark>, Failure> {
    let width = row.whole("width", 1..=LARGEST_SIDE)?;
    let height = row.whole("height", 1..=LARGEST_SIDE)?;
    let largest = f64::from(LARGEST_SIDE);
    let (x, y) = (row.number(x, 0.0..=largest)?, row.number(y, 0.0..=largest)?);
    Ok(match (x, y, width, height) {
        (Some(x), Some(y), Some(width), Some(height)) => Some(Landmark {
            kind,
            x,
            y,
            frame: Frame { width, height },
        }),
        _ => None,
    })
}

export_mapper!(super::Synthetic);
