//! PAPILA: both eyes of 244 patients, clinical data, outlines of disc and cup by two experts.
//!
//! * Paper: Kovalyk et al., Scientific Data 9:291, 2022; data at figshare, doi 10.6084/m9.figshare.14798004. Licences
//!   disagree between mirrors (GPL-3.0-or-later, CC BY 4.0): the stricter one is named here.
//! * Codings, from the paper: Gender 0 male, 1 female; Diagnosis 0 healthy, 1 glaucoma, 2 suspect. One public loader swaps
//!   1 and 2; the benchmark's label is positive for both.
//! * One workbook an eye; header in three rows: groups with merged cells, names, `ID`. `#002` names the photographs
//!   RET002OD.jpg and RET002OS.jpg; ids have gaps. Rows are matched by id, never by their order.
//! * Some contours exist twice (`... 2.txt`): the first copy counts, the host lists the other as unlisted.

use focus_mapper_sdk::{
    Access, Contour, Descriptor, Device, DeviceKind, Eye, Failure, Fate, Fields, Folder, ImageKey,
    ImageRef, Mapper, OptionSpec, Options, Row, Sex, Sheet, Structure, Table, TableSource, Truth,
    below, export_mapper, finding, glaucoma_vcdr, required, rule, sample, task,
};

const GLAUCOMA: u32 = 0;
const PHOTOGRAPHS: u32 = 0;
const CONTOURS: u32 = 1;
const PLACES: &[&str] = &["", "PapilaDB-PAPILA-*", "*/PapilaDB-PAPILA-*"];

#[derive(Clone, Copy, PartialEq)]
enum Diagnosis {
    Healthy,
    Glaucoma,
    Suspect,
}

struct Papila {
    /// Suspects are unknown in the corrected track.
    without_suspects: bool,
}

impl Mapper for Papila {
    fn describe() -> Descriptor {
        let sheet = |id: &str, file: &str| Table {
            id: id.into(),
            source: TableSource::Xlsx(Sheet {
                paths: below(PLACES, &format!("ClinicalData/{file}")),
                name: None,
                header_rows: 3,
            }),
            required: true,
            closed: false,
            columns: ["ID", "Age", "Gender", "Diagnosis"]
                .iter()
                .map(|n| required(n))
                .collect(),
            join: None,
        };
        Descriptor {
            id: "papila".into(),
            title: "PAPILA: fundus images and clinical data of both eyes".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "GPL-3.0-or-later (figshare; some mirrors say CC-BY-4.0)".into(),
            access: Access::Open,
            route: "https://doi.org/10.6084/m9.figshare.14798004".into(),
            citation: "Kovalyk O, Morales-Sánchez J, Verdú-Monedero R, et al. PAPILA: Dataset with fundus images and \
                       clinical data of both eyes of the same patient for glaucoma assessment. Scientific Data \
                       2022;9:291. doi:10.1038/s41597-022-01388-1"
                .into(),
            country: Some("Spain".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: Some("Topcon TRC-NW400".into()),
            },
            synthetic: false,
            tasks: vec![
                task("glaucoma", "Diagnosis 1 (glaucoma) or 2 (suspect)"),
                glaucoma_vcdr(),
            ],
            fields: Fields::PATIENT
                | Fields::EYE
                | Fields::AGE
                | Fields::SEX
                | Fields::FINDINGS
                | Fields::VCDR
                | Fields::CONTOURS,
            options: vec![OptionSpec {
                name: "suspects".into(),
                title: "What a suspect (Diagnosis 2) is in the corrected track; as published, always positive".into(),
                values: vec!["positive".into(), "unknown".into()],
            }],
            tables: vec![sheet("right", "patient_data_od.xlsx"), sheet("left", "patient_data_os.xlsx")],
            folders: vec![
                Folder {
                    id: "photographs".into(),
                    paths: below(PLACES, "FundusImages"),
                    required: true,
                    recursive: false,
                    extensions: vec!["jpg".into(), "jpeg".into()],
                    key: ImageKey::Stem,
                },
                Folder {
                    id: "contours".into(),
                    paths: below(PLACES, "ExpertsSegmentations/Contours"),
                    required: false,
                    recursive: false,
                    extensions: vec!["txt".into()],
                    key: ImageKey::Stem,
                },
            ],
        }
    }

    fn open(options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            without_suspects: options.get("suspects") == "unknown",
        })
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let id = row.text("ID").unwrap_or("");
        let digits = id.strip_prefix('#').unwrap_or(id);
        let number = digits
            .parse::<u32>()
            .ok()
            .filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        let Some(number) = number else {
            return Err(row.refuse("ID", "a patient's number, such as `#002`"));
        };
        let (eye, suffix) = if row.table() == "right" {
            (Eye::Right, "OD")
        } else {
            (Eye::Left, "OS")
        };
        let name = format!("RET{number:03}{suffix}");
        let diagnosis = row.number_code(
            "Diagnosis",
            &[
                (0, Diagnosis::Healthy),
                (1, Diagnosis::Glaucoma),
                (2, Diagnosis::Suspect),
            ],
        )?;
        let mut sample = sample(PHOTOGRAPHS, name.clone());
        sample.patient = Some(format!("{number:03}"));
        sample.eye = Some(eye);
        sample.age = row.age("Age")?;
        sample.sex = row.number_code("Gender", &[(0, Sex::Male), (1, Sex::Female)])?;
        let is = |what: Diagnosis| diagnosis.map(|d| d == what);
        sample.findings = vec![
            finding("glaucoma", is(Diagnosis::Glaucoma)),
            finding("glaucoma_suspect", is(Diagnosis::Suspect)),
        ];
        let mut label = rule::label(GLAUCOMA, diagnosis.map(|d| d != Diagnosis::Healthy));
        if self.without_suspects && diagnosis == Some(Diagnosis::Suspect) {
            label.corrected = Truth::Unknown;
        }
        sample.labels = vec![label];
        for annotator in ["exp1", "exp2"] {
            for (structure, what) in [(Structure::Disc, "disc"), (Structure::Cup, "cup")] {
                sample.contours.push(Contour {
                    structure,
                    annotator: annotator.into(),
                    file: ImageRef {
                        folder: CONTOURS,
                        name: format!("{name}_{what}_{annotator}"),
                    },
                });
            }
        }
        Ok(Some(Row::mapped(sample)))
    }
}

export_mapper!(super::Papila);
