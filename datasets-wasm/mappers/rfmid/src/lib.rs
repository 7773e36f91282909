//! RFMiD, the Retinal Fundus Multi-Disease Image Dataset: 3,200 photographs in three splits, 46 findings each.
//!
//! * Paper: Pachade et al., Data 6(2):14, 2021, doi 10.3390/data6020014. Licence CC BY 4.0.
//! * Codings, from the paper: each finding 0 | 1. DR is any diabetic retinopathy, without a grade. MH is media haze, MHL
//!   macular hole, ODC cupping of the disc (no diagnosis of glaucoma), CME cystoid macular edema.
//! * Trap: ids restart at 1 in each split. Three tables, three folders.
//! * Trap: the training header opens with a byte order mark, which the host takes away.
//! * Referable DR cannot be told without a grade. The published code takes DR as a grade, so that only CME fires its rule
//!   (7 positives of 3,200); the corrected track does not offer the task.
//! * No patient, age, sex or quality exists.

use focus_mapper_sdk::{
    Access, Descriptor, Device, DeviceKind, Failure, Fate, Fields, Folder, ImageKey, Mapper,
    Options, Row, Split, Table, TableSource, Task, Tracks, export_mapper, finding, mirrors,
    required, rule, sample, task,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const FINDINGS: &[&str] = &[
    "Disease_Risk",
    "DR",
    "ARMD",
    "MH",
    "DN",
    "MYA",
    "BRVO",
    "TSLN",
    "ERM",
    "LS",
    "MS",
    "CSR",
    "ODC",
    "CRVO",
    "TV",
    "AH",
    "ODP",
    "ODE",
    "ST",
    "AION",
    "PT",
    "RT",
    "RS",
    "CRS",
    "EDN",
    "RPEC",
    "MHL",
    "RP",
    "CWS",
    "CB",
    "ODPM",
    "PRH",
    "MNF",
    "HR",
    "CRAO",
    "TD",
    "CME",
    "PTCR",
    "CF",
    "VH",
    "MCA",
    "VS",
    "BRAO",
    "PLQ",
    "HPED",
    "CL",
];
/// Split, its table's id, top folder, table, photographs.
const SPLITS: [(Split, &str, &str, &str, &str); 3] = [
    (
        Split::Train,
        "train",
        "Training_Set",
        "RFMiD_Training_Labels.csv",
        "Training",
    ),
    (
        Split::Validation,
        "validation",
        "Evaluation_Set",
        "RFMiD_Validation_Labels.csv",
        "Validation",
    ),
    (
        Split::Test,
        "test",
        "Test_Set",
        "RFMiD_Testing_Labels.csv",
        "Test",
    ),
];

struct Rfmid;

impl Mapper for Rfmid {
    fn describe() -> Descriptor {
        let columns = || {
            ["ID"]
                .iter()
                .chain(FINDINGS)
                .map(|name| required(name))
                .collect()
        };
        Descriptor {
            id: "rfmid".into(),
            title: "RFMiD: Retinal Fundus Multi-Disease Image Dataset".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "CC-BY-4.0".into(),
            access: Access::Registration,
            route: "https://ieee-dataport.org/open-access/retinal-fundus-multi-disease-image-dataset-rfmid, or its mirror \
                    on Kaggle"
                .into(),
            citation: "Pachade S, Porwal P, Thulkar D, et al. Retinal Fundus Multi-Disease Image Dataset (RFMiD): A Dataset \
                       for Multi-Disease Detection Research. Data 2021;6(2):14. doi:10.3390/data6020014"
                .into(),
            country: Some("India".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: Some("Topcon 3D OCT-2000, Topcon TRC-NW300, Kowa VX-10a".into()),
            },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "DR = 1"),
                Task {
                    tracks: Tracks::AS_PUBLISHED,
                    ..task("referable_dr", "CME = 1 (DR has no grade; not offered in the corrected track)")
                },
            ],
            fields: Fields::FINDINGS,
            options: Vec::new(),
            tables: SPLITS
                .map(|(_, id, top, table, _)| Table {
                    id: id.into(),
                    source: TableSource::Csv(mirrors(top, table)),
                    required: true,
                    closed: true,
                    columns: columns(),
                    join: None,
                })
                .into(),
            folders: SPLITS
                .map(|(_, id, top, _, photographs)| Folder {
                    id: id.into(),
                    paths: mirrors(top, photographs),
                    required: true,
                    recursive: false,
                    extensions: vec!["png".into(), "jpg".into(), "jpeg".into()],
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
            rule::as_published_only(REFERABLE_DR, row.flag("CME")?.unwrap_or(false)),
        ];
        Ok(Some(Row::mapped(sample)))
    }
}

export_mapper!(super::Rfmid);
