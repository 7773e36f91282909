//! Messidor-2: 1,748 photographs of 874 examinations, with the adjudicated grades of Krause et al.
//!
//! * Papers: Decencière et al., Image Analysis & Stereology 33(3):231, 2014 (photographs; terms of ADCIS, no
//!   redistribution); Krause et al., Ophthalmology 125(8):1264, 2018 (grades).
//! * Codings, from Krause et al.: grade 0 to 4 (ICDR); adjudicated_dme 0 | 1 (referable edema); adjudicated_gradable 0 | 1,
//!   grades blank where 0.
//! * Versions, both named `messidor_data.csv`: the original (image_id, adjudicated_dr_grade; 1,748 rows, four ungradable)
//!   and Kaggle's copy (id_code, diagnosis; 1,744 rows), which the benchmark used. As published, ungradable rows take part
//!   in no task.
//! * Trap: the table says `.jpg` where files are `.JPG`: case is ignored.
//! * `messidor-2.csv` pairs the two eyes of an examination: the only patient key. Without it there is none.
//! * No split, age or sex exists.

use std::collections::HashMap;

use focus_mapper_sdk::{
    Access, Descriptor, Device, DeviceKind, Eye, Failure, Fate, Fields, Folder, ImageKey, Mapper,
    Options, Quality, Row, Table, TableSource, Truth, alias, below, export_mapper, required, rule,
    sample, task,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const PLACES: &[&str] = &["", "messidor-2", "messidor-2/messidor-2", "Messidor-2"];

struct Messidor2 {
    /// By name in lower case: the examination's key and the eye.
    eyes: HashMap<String, (String, Eye)>,
}

impl Mapper for Messidor2 {
    fn describe() -> Descriptor {
        let photographs = ["IMAGES", "Images", "images", "preprocess"];
        Descriptor {
            id: "messidor_2".into(),
            title: "Messidor-2 with adjudicated grades".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "ADCIS terms, no redistribution; licence of the label copies unknown".into(),
            access: Access::Request,
            route: "Photographs and pairs: https://www.adcis.net/en/third-party/messidor2/ (form). Grades: \
                    messidor_data.csv on Kaggle (google-brain/messidor2-dr-grades or mariaherrerot/messidor2preprocess)"
                .into(),
            citation: "Decencière E, Zhang X, Cazuguel G, et al. Feedback on a publicly distributed image database: the \
                       Messidor database. Image Analysis & Stereology 2014;33(3):231-234. doi:10.5566/ias.1155. Grades: \
                       Krause J, Gulshan V, Rahimy E, et al. Ophthalmology 2018;125(8):1264-1272. \
                       doi:10.1016/j.ophtha.2018.01.034"
                .into(),
            country: Some("France".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: Some("Topcon TRC-NW6".into()),
            },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "Grade >= 1"),
                task("referable_dr", "Grade >= 2 or adjudicated_dme = 1"),
            ],
            fields: Fields::PATIENT | Fields::EYE | Fields::QUALITY | Fields::GRADE | Fields::EDEMA,
            options: Vec::new(),
            tables: vec![
                Table {
                    id: "pairs".into(),
                    source: TableSource::Csv(below(PLACES, "messidor-2.csv")),
                    required: false,
                    closed: true,
                    columns: vec![required("left"), required("right")],
                    join: None,
                },
                Table {
                    id: "grades".into(),
                    source: TableSource::Csv(below(PLACES, "messidor_data.csv")),
                    required: true,
                    closed: true,
                    columns: vec![
                        alias(required("image_id"), &["id_code"]),
                        alias(required("adjudicated_dr_grade"), &["diagnosis"]),
                        required("adjudicated_dme"),
                        required("adjudicated_gradable"),
                    ],
                    join: None,
                },
            ],
            folders: vec![Folder {
                id: "photographs".into(),
                paths: photographs.iter().flat_map(|folder| below(PLACES, folder)).collect(),
                required: true,
                recursive: false,
                extensions: vec!["png".into(), "jpg".into(), "jpeg".into(), "tif".into()],
                key: ImageKey::NameAnyCase,
            }],
        }
    }

    fn open(_: &Options) -> Result<Self, Failure> {
        Ok(Self {
            eyes: HashMap::new(),
        })
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        if row.table() == "pairs" {
            return self.pair(row).map(Some);
        }
        let Some(image) = row.text("image_id") else {
            return Err(row.refuse("image_id", "the name of a photograph"));
        };
        let gradable = row.flag("adjudicated_gradable")?;
        let grade = row.whole("adjudicated_dr_grade", 0..=4)?;
        let edema = row.flag("adjudicated_dme")?;
        let mut sample = sample(0, image);
        if let Some((patient, eye)) = self.eyes.get(&image.to_lowercase()) {
            sample.patient = Some(patient.clone());
            sample.eye = Some(*eye);
        }
        sample.quality = gradable.map(|good| if good { Quality::Good } else { Quality::Poor });
        sample.grade = grade.map(|g| g as u8);
        sample.edema = edema.map(u8::from);
        sample.labels = vec![
            rule::any_dr(BINARY_DR, grade),
            rule::referable_dr(REFERABLE_DR, grade, edema),
        ];
        if grade.is_none() {
            for label in &mut sample.labels {
                label.as_published = Truth::Unknown;
            }
        }
        Ok(Some(Row::mapped(sample)))
    }
}

impl Messidor2 {
    /// Notes an examination. Its key is the name of its first photograph, without the extension.
    fn pair(&mut self, row: &Row<'_>) -> Result<Fate, Failure> {
        let (left, right) = (row.text("left"), row.text("right"));
        let first = left.or(right).unwrap_or("");
        let patient = first.rsplit_once('.').map_or(first, |(stem, _)| stem);
        for (column, name, eye) in [("left", left, Eye::Left), ("right", right, Eye::Right)] {
            if let Some(name) = name {
                let known = (patient.to_owned(), eye);
                if self.eyes.insert(name.to_lowercase(), known).is_some() {
                    return Err(row.refuse(column, "a photograph that is in no other pair"));
                }
            }
        }
        Ok(Fate::Used)
    }
}

export_mapper!(super::Messidor2);
