//! The drawn dataset that focus-host makes for itself: `labels.csv` and a folder `images`. Its truth is exact, since the
//! generator drew what the table says; no number from it says anything about patients.
//!
//! Codings (the generator's): eye `right` | `left`, sex `F` | `M`, quality `good` | `poor`, edema and gon (glaucomatous
//! optic neuropathy) 0 | 1, icdr_grade 0 to 4, split `train` | `validation` | `test`; a blank is unknown.

use focus_mapper_sdk::{
    Access, Age, Descriptor, Device, DeviceKind, Eye, Failure, Fate, Fields, Folder, Frame,
    ImageKey, Landmark, LandmarkKind, Mapper, Options, Quality, Row, Sex, Split, Table, Task,
    Tracks, export_mapper, files, optional, required, rule, sample,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const GLAUCOMA: u32 = 2;
/// Larger than any picture the generator draws.
const LARGEST_SIDE: u32 = 100_000;

struct Synthetic;

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
                task("binary_dr", "icdr_grade >= 1"),
                task("referable_dr", "icdr_grade >= 2 or edema = 1"),
                task("glaucoma", "gon = 1"),
            ],
            fields: Fields::PATIENT
                | Fields::EYE
                | Fields::AGE
                | Fields::SEX
                | Fields::QUALITY
                | Fields::GRADE
                | Fields::EDEMA
                | Fields::LANDMARKS,
            options: Vec::new(),
            tables: vec![Table {
                id: "labels".into(),
                source: files(&["labels.csv"]),
                required: true,
                closed: false,
                columns: vec![
                    required("image"),
                    required("split"),
                    required("patient"),
                    required("eye"),
                    required("age"),
                    required("sex"),
                    required("quality"),
                    required("icdr_grade"),
                    required("edema"),
                    required("gon"),
                    optional("disc_x"),
                    optional("disc_y"),
                    optional("fovea_x"),
                    optional("fovea_y"),
                    optional("width"),
                    optional("height"),
                ],
                join: None,
            }],
            folders: vec![Folder {
                id: "images".into(),
                paths: vec!["images".into()],
                required: true,
                recursive: false,
                extensions: vec!["png".into(), "jpg".into()],
                key: ImageKey::Name,
            }],
        }
    }

    fn open(_: &Options) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let Some(image) = row.text("image") else {
            return Err(row.refuse("image", "the name of a file in `images`"));
        };
        let flag = |column: &str| row.code(column, &[("0", false), ("1", true)]);
        let grade = row.whole("icdr_grade", 0..=4)?;
        let edema = flag("edema")?;
        let mut sample = sample(0, image.strip_prefix("images/").unwrap_or(image));
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
        sample.grade = grade.map(|g| g as u8);
        sample.edema = edema.map(u8::from);
        sample.labels = vec![
            rule::any_dr(BINARY_DR, grade),
            rule::referable_dr(REFERABLE_DR, grade, edema),
            rule::label(GLAUCOMA, flag("gon")?),
        ];
        sample
            .landmarks
            .extend(landmark(row, LandmarkKind::Disc, "disc_x", "disc_y")?);
        sample
            .landmarks
            .extend(landmark(row, LandmarkKind::Fovea, "fovea_x", "fovea_y")?);
        Ok(Some(Row::mapped(sample)))
    }
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
