//! BRSET, the Brazilian Multilabel Ophthalmological Dataset: 16,266 rows of 8,524 patients, grades of diabetic
//! retinopathy, macular edema, twelve other findings, age, sex, image quality.
//!
//! * Paper: Nakayama et al., PLOS Digital Health 3(7):e0000454, 2024. PhysioNet, Credentialed Health Data License 1.5.0.
//! * Codings, from the data's own description on PhysioNet: patient_sex 1 male, 2 female; exam_eye 1 right, 2 left;
//!   DR_ICDR 0 to 4; findings 0 | 1; quality Adequate | Inadequate; diabetes yes | No.
//! * Versions: 1.0.1 (`labels_brset.csv`, column `Illuminaton`) and 1.0.0 (`labels.csv`, column `iluminaton`). Later
//!   versions rename columns and recode the eye: their headers are refused, since a column left out would be guessed at.
//! * Glaucoma is `increased_cup_disc`, the specialist's reading of the cup. About 15 rows have a grade that contradicts
//!   `diabetic_retinopathy`; the grade decides, the flag is kept as a finding.
//! * The columns of anatomy and of quality by part (`optic_disc`, `focus`, ..., with stray codes `bv` and `0`) are not read.
//! * Seven rows have no photograph (img04414 to img04419, img06900): the host counts them.
//! * The benchmark keeps rows of diabetics only, which its paper does not say: option `cohort`.

use focus_mapper_sdk::{
    Access, Descriptor, Device, DeviceKind, Eye, Failure, Fate, Fields, Folder, ImageKey, Mapper,
    OptionSpec, Options, Quality, Row, Sex, Table, TableSource, alias, below, export_mapper,
    finding, required, rule, sample, task,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const GLAUCOMA: u32 = 2;
/// As unpacked from PhysioNet's archive, or as `wget -r` leaves it.
const PLACES: &[&str] = &[
    "",
    "a-brazilian-multilabel-ophthalmological-dataset-brset-*",
    "physionet.org/files/brazilian-ophthalmological/*",
];
/// In the order of the file, those that are read and those that are not.
const COLUMNS: &[&str] = &[
    "image_id",
    "patient_id",
    "camera",
    "patient_age",
    "comorbidities",
    "diabetes_time_y",
    "insuline",
    "patient_sex",
    "exam_eye",
    "diabetes",
    "nationality",
    "optic_disc",
    "vessels",
    "macula",
    "DR_SDRG",
    "DR_ICDR",
    "focus",
    "Illuminaton",
    "image_field",
    "artifacts",
    "diabetic_retinopathy",
    "macular_edema",
    "scar",
    "nevus",
    "amd",
    "vascular_occlusion",
    "hypertensive_retinopathy",
    "drusens",
    "hemorrhage",
    "retinal_detachment",
    "myopic_fundus",
    "increased_cup_disc",
    "other",
    "quality",
];
const FINDINGS: &[&str] = &[
    "diabetic_retinopathy",
    "macular_edema",
    "scar",
    "nevus",
    "amd",
    "vascular_occlusion",
    "hypertensive_retinopathy",
    "drusens",
    "hemorrhage",
    "retinal_detachment",
    "myopic_fundus",
    "increased_cup_disc",
    "other",
];

struct Brset {
    /// Only the rows that the benchmark used.
    published: bool,
}

impl Mapper for Brset {
    fn describe() -> Descriptor {
        let paths = [
            below(PLACES, "labels_brset.csv"),
            below(PLACES, "labels.csv"),
        ]
        .concat();
        let column = |name: &&str| match *name {
            "Illuminaton" => alias(required(name), &["iluminaton"]),
            name => required(name),
        };
        Descriptor {
            id: "brset".into(),
            title: "BRSET: Brazilian Multilabel Ophthalmological Dataset".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "PhysioNet Credentialed Health Data License 1.5.0".into(),
            access: Access::Credentialed,
            route: "https://physionet.org/content/brazilian-ophthalmological/ (training and data use agreement)".into(),
            citation: "Nakayama LF, Restrepo D, Matos J, et al. BRSET: A Brazilian Multilabel Ophthalmological Dataset of \
                       Retina Fundus Photos. PLOS Digital Health 2024;3(7):e0000454. doi:10.1371/journal.pdig.0000454"
                .into(),
            country: Some("Brazil".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: Some("Canon CR-2, Nikon NF505".into()),
            },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "DR_ICDR >= 1"),
                task("referable_dr", "DR_ICDR >= 2 or macular_edema = 1"),
                task("glaucoma", "increased_cup_disc = 1"),
            ],
            fields: Fields::PATIENT
                | Fields::EYE
                | Fields::AGE
                | Fields::SEX
                | Fields::QUALITY
                | Fields::GRADE
                | Fields::EDEMA
                | Fields::FINDINGS
                | Fields::DEVICE,
            options: vec![OptionSpec {
                name: "cohort".into(),
                title: "`all` rows, or those of the published benchmark: diabetes = yes".into(),
                values: vec!["all".into(), "published".into()],
            }],
            tables: vec![Table {
                id: "labels".into(),
                source: TableSource::Csv(paths),
                required: true,
                closed: true,
                columns: COLUMNS.iter().map(column).collect(),
                join: None,
            }],
            folders: vec![Folder {
                id: "photographs".into(),
                paths: below(PLACES, "fundus_photos"),
                required: true,
                recursive: false,
                extensions: vec!["jpg".into(), "jpeg".into()],
                key: ImageKey::Stem,
            }],
        }
    }

    fn open(options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            published: options.get("cohort") == "published",
        })
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let Some(image) = row.text("image_id") else {
            return Err(row.refuse("image_id", "the name of a photograph, such as `img00001`"));
        };
        let diabetes = row.yes_no("diabetes")?;
        if self.published && diabetes != Some(true) {
            return Ok(Some(Row::dropped(
                "diabetes is not yes (cohort = published)",
                None,
            )));
        }
        let grade = row.whole("DR_ICDR", 0..=4)?;
        let edema = row.flag("macular_edema")?;
        let mut sample = sample(0, image);
        sample.patient = row.text("patient_id").map(Into::into);
        sample.eye = row.number_code("exam_eye", &[(1, Eye::Right), (2, Eye::Left)])?;
        sample.age = row.age("patient_age")?;
        sample.sex = row.number_code("patient_sex", &[(1, Sex::Male), (2, Sex::Female)])?;
        sample.quality = row.code(
            "quality",
            &[("Adequate", Quality::Good), ("Inadequate", Quality::Poor)],
        )?;
        sample.camera = row.text("camera").map(Into::into);
        sample.grade = grade.map(|g| g as u8);
        sample.edema = edema.map(u8::from);
        for name in FINDINGS {
            sample.findings.push(finding(name, row.flag(name)?));
        }
        sample.labels = vec![
            rule::any_dr(BINARY_DR, grade),
            rule::referable_dr(REFERABLE_DR, grade, edema),
            rule::label(GLAUCOMA, row.flag("increased_cup_disc")?),
        ];
        Ok(Some(Row::mapped(sample)))
    }
}

export_mapper!(super::Brset);
