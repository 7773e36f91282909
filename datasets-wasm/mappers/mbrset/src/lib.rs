//! mBRSET, photographs of diabetics by a hand-held camera: 5,164 images of 1,291 patients, four views each.
//!
//! * Paper: Wu et al., Scientific Data 12:323, 2025. PhysioNet, Credentialed Health Data License 1.5.0.
//! * Codings, from the data's own description: sex 0 female, 1 male (the reverse of BRSET's order); final_icdr 0 to 4,
//!   blank where ungradable; final_edema, final_quality yes | no; laterality right | left. The file's number is the view:
//!   1 and 3 macula, 2 and 4 disc.
//! * `increased_cdr`, from which the benchmark takes its glaucoma label, is in the authors' own copy (`labels.csv`) and not
//!   in the public `labels_mbrset.csv`. Where the column is absent, glaucoma is unknown in both tracks.
//! * As published, a blank edema or cup reading counts as no, and a row without a grade takes part in no task.
//! * 985.1.jpg is not there: the host counts it.
//! * The benchmark keeps views 1 and 3 only, which its paper does not say: option `cohort`.

use focus_mapper_sdk::{
    Access, Descriptor, Device, DeviceKind, Eye, Failure, Fate, Fields, Folder, ImageKey, Mapper,
    OptionSpec, Options, Outcome, Quality, Row, RowRef, Sample, Sex, Table, TableSource, Truth,
    View, below, export_mapper, optional, required, rule, sample, task,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const GLAUCOMA: u32 = 2;
const PLACES: &[&str] = &["", "mbrset-*", "physionet.org/files/mbrset/*"];
const UNREAD: &[&str] = &[
    "dm_time",
    "insulin",
    "insulin_time",
    "oraltreatment_dm",
    "systemic_hypertension",
    "insurance",
    "educational_level",
    "alcohol_consumption",
    "smoking",
    "obesity",
    "vascular_disease",
    "acute_myocardial_infarction",
    "nephropathy",
    "neuropathy",
    "diabetic_foot",
    "final_artifacts",
];

struct Mbrset {
    published: bool,
    /// Rows wait for the end of the table: only then is it known whether blanks in `increased_cdr` are blanks of a column
    /// that is there.
    held: Vec<(RowRef, Sample)>,
    cups_read: bool,
}

impl Mapper for Mbrset {
    fn describe() -> Descriptor {
        let mut columns: Vec<_> = [
            "patient",
            "age",
            "sex",
            "file",
            "laterality",
            "final_quality",
            "final_icdr",
            "final_edema",
        ]
        .iter()
        .chain(UNREAD)
        .map(|name| required(name))
        .collect();
        columns.push(optional("increased_cdr"));
        Descriptor {
            id: "mbrset".into(),
            title: "mBRSET: portable retina fundus photos of diabetics".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "PhysioNet Credentialed Health Data License 1.5.0".into(),
            access: Access::Credentialed,
            route: "https://physionet.org/content/mbrset/1.0/ (training and data use agreement)".into(),
            citation: "Wu C, Restrepo D, Nakayama LF, et al. A portable retina fundus photos dataset for clinical, \
                       demographic, and diabetic retinopathy prediction. Scientific Data 2025;12:323. \
                       doi:10.1038/s41597-025-04627-3"
                .into(),
            country: Some("Brazil".into()),
            device: Device {
                kind: DeviceKind::Mobile,
                camera: Some("Phelcom Eyer".into()),
            },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "final_icdr >= 1"),
                task("referable_dr", "final_icdr >= 2 or final_edema = yes"),
                task("glaucoma", "increased_cdr = yes, where the file has that column"),
            ],
            fields: Fields::PATIENT
                | Fields::EYE
                | Fields::AGE
                | Fields::SEX
                | Fields::QUALITY
                | Fields::GRADE
                | Fields::EDEMA
                | Fields::VIEW,
            options: vec![OptionSpec {
                name: "cohort".into(),
                title: "`all` rows, or those of the published benchmark: macula views, .1 and .3".into(),
                values: vec!["all".into(), "published".into()],
            }],
            tables: vec![Table {
                id: "labels".into(),
                source: TableSource::Csv(
                    [below(PLACES, "labels_mbrset.csv"), below(PLACES, "labels.csv")].concat(),
                ),
                required: true,
                closed: true,
                columns,
                join: None,
            }],
            folders: vec![Folder {
                id: "photographs".into(),
                paths: below(PLACES, "images"),
                required: true,
                recursive: false,
                extensions: vec!["jpg".into(), "jpeg".into()],
                key: ImageKey::Name,
            }],
        }
    }

    fn open(options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            published: options.get("cohort") == "published",
            held: Vec::new(),
            cups_read: false,
        })
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let Some(file) = row.text("file") else {
            return Err(row.refuse("file", "the name of a photograph, such as `1.1.jpg`"));
        };
        let patient = row.whole("patient", 0..=u32::MAX)?.map(|p| p.to_string());
        let view = match file.split('.').collect::<Vec<_>>().as_slice() {
            [number, "1" | "3", _] if Some(*number) == patient.as_deref() => View::Macula,
            [number, "2" | "4", _] if Some(*number) == patient.as_deref() => View::Disc,
            _ => {
                return Err(row.refuse(
                    "file",
                    "the patient's number, a view from 1 to 4, an extension",
                ));
            }
        };
        let cup = row.yes_no("increased_cdr")?;
        self.cups_read |= cup.is_some();
        if self.published && view == View::Disc {
            return Ok(Some(Row::dropped(
                "a disc view, .2 or .4 (cohort = published)",
                None,
            )));
        }
        let grade = row.whole("final_icdr", 0..=4)?;
        let edema = row.yes_no("final_edema")?;
        let mut sample = sample(0, file);
        sample.patient = patient;
        sample.view = Some(view);
        sample.eye = row.code("laterality", &[("right", Eye::Right), ("left", Eye::Left)])?;
        sample.age = row.age("age")?;
        sample.sex = row.number_code("sex", &[(0, Sex::Female), (1, Sex::Male)])?;
        sample.quality = row
            .yes_no("final_quality")?
            .map(|good| if good { Quality::Good } else { Quality::Poor });
        sample.grade = grade.map(|g| g as u8);
        sample.edema = edema.map(u8::from);
        sample.labels = vec![
            rule::any_dr(BINARY_DR, grade),
            rule::referable_dr(REFERABLE_DR, grade, edema),
            rule::label_or_no(GLAUCOMA, cup),
        ];
        if grade.is_none() {
            for label in &mut sample.labels {
                label.as_published = Truth::Unknown;
            }
        }
        self.held.push((row.reference(), sample));
        Ok(None)
    }

    fn finish(&mut self) -> Result<Vec<Outcome>, Failure> {
        let cups_read = self.cups_read;
        let settle = |(row, mut sample): (RowRef, Sample)| {
            if !cups_read {
                sample.labels.retain(|label| label.task != GLAUCOMA);
            }
            let fate = Row::mapped(sample);
            Outcome { row, fate }
        };
        Ok(self.held.drain(..).map(settle).collect())
    }
}

export_mapper!(super::Mbrset);
