//! RFMiD 2.0: 860 photographs of frequent and rare diseases in three splits, 51 findings each.
//!
//! * Paper: Panchal et al., Data 8(2):29, 2023, doi 10.3390/data8020029. Zenodo 7505822, CC BY 4.0.
//! * Codings, from the paper: each finding 0 | 1; WNL is within normal limits, ME macular edema. DR is any diabetic
//!   retinopathy, without a grade.
//! * Trap: the tables are Windows-1252 with non-breaking spaces around names and values, which the host trims; ids restart
//!   in each split; some files end in `.JPG`.
//! * Referable DR cannot be told without a grade. The published code takes DR as a grade, so that only ME fires its rule
//!   (4 positives); the corrected track does not offer the task.
//! * No patient, age, sex or quality exists.

use focus_mapper_sdk::{
    Access, Column, Descriptor, Device, DeviceKind, Failure, Fate, Fields, Folder, ImageKey,
    Mapper, Options, Row, Split, Table, TableSource, Task, Tracks, alias, export_mapper, finding,
    required, rule, sample, task,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const FINDINGS: &[&str] = &[
    "WNL", "AH", "AION", "ARMD", "BRVO", "CB", "CF", "CL", "CME", "CNV", "CRAO", "CRS", "CRVO",
    "CSR", "CWS", "CSC", "DN", "DR", "EDN", "ERM", "GRT", "HPED", "HR", "LS", "MCA", "ME", "MH",
    "MHL", "MS", "MYA", "ODC", "ODE", "ODP", "ON", "OPDM", "PRH", "RD", "RHL", "RTR", "RP", "RPEC",
    "RS", "RT", "SOFE", "ST", "TD", "TSLN", "TV", "VS", "HTN", "IIH",
];
/// Split, id, folder, table.
const SPLITS: [(Split, &str, &str, &str); 3] = [
    (
        Split::Train,
        "train",
        "Training_set",
        "RFMiD_2_Training_labels.csv",
    ),
    (
        Split::Validation,
        "validation",
        "Validation_set",
        "RFMiD_2_Validation_labels.csv",
    ),
    (
        Split::Test,
        "test",
        "Test_set",
        "RFMiD_2_Testing_labels.csv",
    ),
];

struct Rfmid2;

/// Optic disc pit maculopathy is spelled both ways.
fn column(name: &&str) -> Column {
    match *name {
        "OPDM" => alias(required(name), &["ODPM"]),
        name => required(name),
    }
}

impl Mapper for Rfmid2 {
    fn describe() -> Descriptor {
        // The archives are nested: unpacked one in another, a folder may hold a folder of its own name.
        let folders = |top: &str| vec![format!("{top}/{top}"), top.to_owned(), format!("*/{top}")];
        Descriptor {
            id: "rfmid_2".into(),
            title: "RFMiD 2.0: frequently and rarely identified diseases".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "CC-BY-4.0".into(),
            access: Access::Open,
            route: "https://zenodo.org/records/7505822".into(),
            citation: "Panchal S, Naik A, Kokare M, et al. Retinal Fundus Multi-Disease Image Dataset (RFMiD) 2.0: A \
                       Dataset of Frequently and Rarely Identified Diseases. Data 2023;8(2):29. doi:10.3390/data8020029"
                .into(),
            country: Some("India".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: None,
            },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "DR = 1"),
                Task {
                    tracks: Tracks::AS_PUBLISHED,
                    ..task("referable_dr", "ME = 1 (DR has no grade; not offered in the corrected track)")
                },
            ],
            fields: Fields::FINDINGS,
            options: Vec::new(),
            tables: SPLITS
                .map(|(_, id, top, table)| Table {
                    id: id.into(),
                    source: TableSource::Csv(
                        folders(top)
                            .iter()
                            .map(|folder| format!("{folder}/{table}"))
                            .chain([table.to_owned()])
                            .collect(),
                    ),
                    required: true,
                    closed: true,
                    columns: ["ID"].iter().chain(FINDINGS).map(column).collect(),
                    join: None,
                })
                .into(),
            folders: SPLITS
                .map(|(_, id, top, _)| Folder {
                    id: id.into(),
                    paths: folders(top),
                    required: true,
                    recursive: false,
                    extensions: vec!["jpg".into(), "jpeg".into(), "png".into()],
                    key: ImageKey::Stem,
                })
                .into(),
        }
    }

    fn open(_: &Options) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let folder = row.reference().table;
        let Some(id) = row.whole("ID", 1..=100_000)? else {
            return Err(row.refuse("ID", "the number of a photograph"));
        };
        let mut sample = sample(folder, id.to_string());
        sample.split = Some(SPLITS[folder as usize].0);
        for name in FINDINGS {
            sample.findings.push(finding(name, row.flag(name)?));
        }
        sample.labels = vec![
            rule::label(BINARY_DR, row.flag("DR")?),
            rule::as_published_only(REFERABLE_DR, row.flag("ME")?.unwrap_or(false)),
        ];
        Ok(Some(Row::mapped(sample)))
    }
}

export_mapper!(super::Rfmid2);
