//! IDRiD, the Indian Diabetic Retinopathy Image Dataset: 516 photographs, DR grade and risk of macular edema, centres of
//! optic disc and fovea.
//!
//! * Paper: Porwal et al., "Indian Diabetic Retinopathy Image Dataset (IDRiD): A Database for Diabetic Retinopathy
//!   Screening Research", Data 3(3):25, 2018, doi 10.3390/data3030025. Licence CC BY 4.0.
//! * Codings, from the paper: retinopathy grade 0 to 4 (ICDR); risk of macular edema 0 none, 1 hard exudates further than
//!   one disc diameter from the fovea, 2 within it.
//! * Trap: the names IDRiD_001 to IDRiD_103 occur in both splits, for different photographs. Two folders, two tables.
//! * Trap: set A (segmentation) numbers its images anew (IDRiD_01 to IDRiD_81) without a table back to these names, so
//!   no masks are given here.
//! * No patient, age, sex or quality exists.

use focus_mapper_sdk::{
    Access, Cardinality, Descriptor, Device, DeviceKind, Failure, Fate, Fields, Folder, Frame,
    ImageKey, Join, Landmark, LandmarkKind, Mapper, Options, Row, Split, Table, TableSource, alias,
    export_mapper, mirrors, required, rule, sample, task,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const GRADING: &str = "B. Disease Grading";
const LOCALIZATION: &str = "C. Localization";
/// Coordinates are pixels of the originals, whatever the size of the files at hand.
const FRAME: Frame = Frame {
    width: 4288,
    height: 2848,
};

struct Idrid;

impl Mapper for Idrid {
    fn describe() -> Descriptor {
        let disc = "2. Groundtruths/1. Optic Disc Center Location";
        let fovea = "2. Groundtruths/2. Fovea Center Location";
        Descriptor {
            id: "idrid".into(),
            title: "IDRiD: Indian Diabetic Retinopathy Image Dataset".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "CC-BY-4.0".into(),
            access: Access::Registration,
            route: "https://ieee-dataport.org/open-access/indian-diabetic-retinopathy-image-dataset-idrid".into(),
            citation: "Porwal P, Pachade S, Kamble R, et al. Indian Diabetic Retinopathy Image Dataset (IDRiD): A \
                       Database for Diabetic Retinopathy Screening Research. Data 2018;3(3):25. doi:10.3390/data3030025"
                .into(),
            country: Some("India".into()),
            device: Device { kind: DeviceKind::Desktop, camera: Some("Kowa VX-10a".into()) },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "Retinopathy grade >= 1"),
                task("referable_dr", "Retinopathy grade >= 2 or risk of macular edema > 0"),
            ],
            fields: Fields::GRADE | Fields::EDEMA | Fields::LANDMARKS,
            options: Vec::new(),
            tables: vec![
                grades("train", "2. Groundtruths/a. IDRiD_Disease Grading_Training Labels.csv"),
                grades("test", "2. Groundtruths/b. IDRiD_Disease Grading_Testing Labels.csv"),
                centres("train-disc", "train", &format!("{disc}/a. IDRiD_OD_Center_Training Set_Markups.csv")),
                centres("test-disc", "test", &format!("{disc}/b. IDRiD_OD_Center_Testing Set_Markups.csv")),
                centres("train-fovea", "train", &format!("{fovea}/IDRiD_Fovea_Center_Training Set_Markups.csv")),
                centres("test-fovea", "test", &format!("{fovea}/IDRiD_Fovea_Center_Testing Set_Markups.csv")),
            ],
            folders: vec![
                photographs("train", "1. Original Images/a. Training Set"),
                photographs("test", "1. Original Images/b. Testing Set"),
            ],
        }
    }

    fn open(_: &Options) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let (folder, split) = if row.table() == "train" {
            (0, Split::Train)
        } else {
            (1, Split::Test)
        };
        let Some(name) = row.text("Image name") else {
            return Err(row.refuse(
                "Image name",
                "the name of a photograph, such as `IDRiD_001`",
            ));
        };
        let grade = row.whole("Retinopathy grade", 0..=4)?;
        let edema = row.whole("Risk of macular edema", 0..=2)?;
        let mut sample = sample(folder, name);
        sample.split = Some(split);
        sample.grade = grade.map(|g| g as u8);
        sample.edema = edema.map(|e| e as u8);
        sample.labels = vec![
            rule::any_dr(BINARY_DR, grade),
            rule::referable_dr(REFERABLE_DR, grade, edema.map(|e| e > 0)),
        ];
        for (kind, what) in [(LandmarkKind::Disc, "disc"), (LandmarkKind::Fovea, "fovea")] {
            sample
                .landmarks
                .extend(centre(row, kind, &format!("{}-{what}", row.table()))?);
        }
        Ok(Some(Row::mapped(sample)))
    }
}

/// The centre from the columns of a joined table; `None` where the table or the row is absent.
fn centre(row: &Row<'_>, kind: LandmarkKind, table: &str) -> Result<Option<Landmark>, Failure> {
    let (x_column, y_column) = (
        format!("{table}.X- Coordinate"),
        format!("{table}.Y - Coordinate"),
    );
    let x = row.number(&x_column, 0.0..=f64::from(FRAME.width))?;
    let y = row.number(&y_column, 0.0..=f64::from(FRAME.height))?;
    match (x, y) {
        (Some(x), Some(y)) => Ok(Some(Landmark {
            kind,
            x,
            y,
            frame: FRAME,
        })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(row.refuse(&x_column, "a coordinate, since the other one is there")),
        (Some(_), None) => Err(row.refuse(&y_column, "a coordinate, since the other one is there")),
    }
}

fn grades(id: &str, path: &str) -> Table {
    Table {
        id: id.into(),
        source: TableSource::Csv(mirrors(GRADING, path)),
        required: true,
        closed: true,
        columns: vec![
            required("Image name"),
            required("Retinopathy grade"),
            // The original header ends in a blank, which the host trims.
            required("Risk of macular edema"),
        ],
        join: None,
    }
}

/// The localization part is a separate download: absent, there are no landmarks.
fn centres(id: &str, onto: &str, path: &str) -> Table {
    Table {
        id: id.into(),
        source: TableSource::Csv(mirrors(LOCALIZATION, path)),
        required: false,
        closed: true,
        columns: vec![
            required("Image No"),
            alias(
                required("X- Coordinate"),
                &["X-Coordinate", "X - Coordinate"],
            ),
            alias(
                required("Y - Coordinate"),
                &["Y-Coordinate", "Y- Coordinate"],
            ),
        ],
        join: Some(Join {
            onto: onto.into(),
            keys: vec![("Image No".into(), "Image name".into())],
            cardinality: Cardinality::OneToOne,
            every_primary: false,
            every_secondary: true,
        }),
    }
}

fn photographs(id: &str, path: &str) -> Folder {
    Folder {
        id: id.into(),
        paths: mirrors(GRADING, path),
        required: true,
        recursive: false,
        extensions: vec!["jpg".into()],
        key: ImageKey::Stem,
    }
}

export_mapper!(super::Idrid);
