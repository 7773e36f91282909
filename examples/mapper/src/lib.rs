//! A template: a clinic's folder with `grades.csv` (file, dr, dme, person, years, gender), an optional `persons.csv`, and
//! photographs in one folder per eye. Replace all of it with what your dataset holds.
//!
//! Write down where each coding comes from, as here:
//! * `dr` 0 to 4 ICDR, `dme` 0 | 1, from the (imaginary) clinic's data sheet, version 2.
//! * `gender` 1 male, 2 female, from the same sheet.

use focus_mapper_sdk::{
    Access, Age, Cardinality, Descriptor, Device, DeviceKind, Eye, Failure, Fate, Fields, Folder,
    ImageKey, Join, Mapper, OptionSpec, Options, Row, Sex, Table, export_mapper, files, optional,
    required, rule, sample, task,
};

struct MyMapper {
    ungraded: bool,
}

impl Mapper for MyMapper {
    fn describe() -> Descriptor {
        Descriptor {
            id: "my_clinic".into(),
            title: "My clinic's photographs".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "not public".into(),
            access: Access::Request,
            route: "Ask the clinic".into(),
            citation: "None yet".into(),
            country: None,
            device: Device { kind: DeviceKind::Desktop, camera: None },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "dr >= 1"),
                task("referable_dr", "dr >= 2 or dme = 1"),
            ],
            fields: Fields::PATIENT | Fields::EYE | Fields::AGE | Fields::SEX | Fields::GRADE | Fields::EDEMA,
            options: vec![OptionSpec {
                name: "ungraded".into(),
                title: "Whether photographs without a grade are kept (their labels are unknown) or dropped".into(),
                values: vec!["drop".into(), "keep".into()],
            }],
            tables: vec![
                Table {
                    id: "grades".into(),
                    source: files(&["grades.csv", "labels/grades.csv"]),
                    required: true,
                    closed: false,
                    columns: vec![required("file"), required("person"), required("dr"), optional("dme")],
                    join: None,
                },
                Table {
                    id: "persons".into(),
                    source: files(&["persons.csv"]),
                    required: false,
                    closed: false,
                    columns: vec![required("person"), required("years"), required("gender")],
                    // Two eyes of a person share a row; the host joins and counts what found no partner.
                    join: Some(Join {
                        onto: "grades".into(),
                        keys: vec![("person".into(), "person".into())],
                        cardinality: Cardinality::ManyToOne,
                        every_primary: false,
                        every_secondary: false,
                    }),
                },
            ],
            folders: vec![Folder {
                id: "photographs".into(),
                paths: vec!["photographs".into(), "images".into()],
                required: true,
                recursive: true,
                extensions: vec!["jpg".into(), "png".into()],
                key: ImageKey::Name,
            }],
        }
    }

    fn open(options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            ungraded: options.get("ungraded") == "keep",
        })
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let Some(file) = row.text("file") else {
            return Err(row.refuse("file", "the path of a photograph, such as `right/0001.jpg`"));
        };
        let grade = row.whole("dr", 0..=4)?;
        if grade.is_none() && !self.ungraded {
            return Ok(Some(Row::dropped("no grade", None)));
        }
        let edema = row.code("dme", &[("0", false), ("1", true)])?;
        let mut sample = sample(0, file);
        sample.patient = row.text("person").map(Into::into);
        sample.eye = match file.split('/').next() {
            Some("right") => Some(Eye::Right),
            Some("left") => Some(Eye::Left),
            _ => None,
        };
        sample.age = row.number("persons.years", 0.0..=120.0)?.map(|years| Age {
            years,
            at_least: false,
        });
        sample.sex = row.code("persons.gender", &[("1", Sex::Male), ("2", Sex::Female)])?;
        sample.grade = grade.map(|g| g as u8);
        sample.edema = edema.map(u8::from);
        sample.labels = vec![rule::any_dr(0, grade), rule::referable_dr(1, grade, edema)];
        Ok(Some(Row::mapped(sample)))
    }
}

export_mapper!(super::MyMapper);
