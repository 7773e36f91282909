//! JSIEC1000: 1,000 photographs sorted into 39 folders, one a disease or condition. The folder is the label.
//!
//! * Paper: Cen et al., Nature Communications 12:4828, 2021. Kaggle linchundan/fundusimage1000: ODbL and DbCL,
//!   "copyright JSIEC".
//! * Codings, from the paper: DR1 mild, DR2 moderate or severe, DR3 proliferative, each in a folder of its own. DR2 is no
//!   single ICDR grade, so that no grade is given.
//! * As published, any DR is DR1, DR2, DR3 and 29.1 (suspected proliferative DR behind a blur), referable DR those without
//!   DR1, and everything else is negative. Corrected: a fundus too blurred to tell, hard exudates, cotton-wool spots,
//!   preretinal haemorrhage and laser spots are signs that DR may be there: unknown.
//! * Glaucoma has no negatives here (large cups and possible glaucoma only): not offered.
//! * Traps: names with two dots (`<uuid>..JPG`); three TIFF files; mirrors hold a second copy of all folders one level down,
//!   which is dropped row by row where the first copy is there.
//! * No patient, age, sex or split exists.

use std::collections::HashSet;

use focus_mapper_sdk::{
    Access, Descriptor, Device, DeviceKind, Failure, Fate, Fields, Folder, ImageKey, Label, Mapper,
    Options, Outcome, Quality, Row, RowRef, Sample, Table, TableSource, Truth, export_mapper,
    finding, required, rule, sample, task,
};

const BINARY_DR: u32 = 0;
const REFERABLE_DR: u32 = 1;
const TOP: &str = "1000images";

/// What a class says about diabetic retinopathy.
#[derive(Clone, Copy)]
enum Dr {
    None,
    Mild,
    Referable,
    Unclear,
}

const CLASSES: [(&str, Dr); 39] = [
    ("0.0.Normal", Dr::None),
    ("0.1.Tessellated fundus", Dr::None),
    ("0.2.Large optic cup", Dr::None),
    ("0.3.DR1", Dr::Mild),
    ("1.0.DR2", Dr::Referable),
    ("1.1.DR3", Dr::Referable),
    ("2.0.BRVO", Dr::None),
    ("2.1.CRVO", Dr::None),
    ("3.RAO", Dr::None),
    ("4.Rhegmatogenous RD", Dr::None),
    ("5.0.CSCR", Dr::None),
    ("5.1.VKH disease", Dr::None),
    ("6.Maculopathy", Dr::None),
    ("7.ERM", Dr::None),
    ("8.MH", Dr::None),
    ("9.Pathological myopia", Dr::None),
    ("10.0.Possible glaucoma", Dr::None),
    ("10.1.Optic atrophy", Dr::None),
    ("11.Severe hypertensive retinopathy", Dr::None),
    ("12.Disc swelling and elevation", Dr::None),
    ("13.Dragged Disc", Dr::None),
    ("14.Congenital disc abnormality", Dr::None),
    ("15.0.Retinitis pigmentosa", Dr::None),
    ("15.1.Bietti crystalline dystrophy", Dr::None),
    ("16.Peripheral retinal degeneration and break", Dr::None),
    ("17.Myelinated nerve fiber", Dr::None),
    ("18.Vitreous particles", Dr::None),
    ("19.Fundus neoplasm", Dr::None),
    ("20.Massive hard exudates", Dr::Unclear),
    ("21.Yellow-white spots-flecks", Dr::None),
    ("22.Cotton-wool spots", Dr::Unclear),
    ("23.Vessel tortuosity", Dr::None),
    ("24.Chorioretinal atrophy-coloboma", Dr::None),
    ("25.Preretinal hemorrhage", Dr::Unclear),
    ("26.Fibrosis", Dr::None),
    ("27.Laser Spots", Dr::Unclear),
    ("28.Silicon oil in eye", Dr::None),
    ("29.0.Blur fundus without PDR", Dr::Unclear),
    ("29.1.Blur fundus with suspected PDR", Dr::Referable),
];

#[derive(Default)]
struct Jsiec {
    /// Paths below the top folder of the photographs seen, without a nested copy's folder.
    seen: HashSet<String>,
    /// Rows of a nested copy wait until the first copy has been listed.
    nested: Vec<(RowRef, String, Sample)>,
}

impl Mapper for Jsiec {
    fn describe() -> Descriptor {
        Descriptor {
            id: "jsiec1000".into(),
            title: "JSIEC1000: 39 fundus diseases and conditions".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "ODbL-1.0 and DbCL-1.0 (Kaggle; copyright JSIEC)".into(),
            access: Access::Registration,
            route: "https://www.kaggle.com/datasets/linchundan/fundusimage1000".into(),
            citation: "Cen LP, Ji J, Lin JW, et al. Automatic detection of 39 fundus diseases and conditions in retinal \
                       photographs using deep neural networks. Nature Communications 2021;12:4828. \
                       doi:10.1038/s41467-021-25138-w"
                .into(),
            country: Some("China".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: None,
            },
            synthetic: false,
            tasks: vec![
                task("binary_dr", "Folder 0.3.DR1, 1.0.DR2, 1.1.DR3 or 29.1"),
                task("referable_dr", "Folder 1.0.DR2, 1.1.DR3 or 29.1"),
            ],
            fields: Fields::FINDINGS | Fields::QUALITY,
            options: Vec::new(),
            tables: vec![Table {
                id: "photographs".into(),
                source: TableSource::Listing("classes".into()),
                required: true,
                closed: false,
                columns: vec![required("path"), required("folder"), required("name")],
                join: None,
            }],
            folders: vec![Folder {
                id: "classes".into(),
                paths: vec![TOP.into(), format!("*/{TOP}")],
                required: true,
                recursive: true,
                extensions: ["jpg", "jpeg", "tif", "tiff", "png"].map(Into::into).into(),
                key: ImageKey::Name,
            }],
        }
    }

    fn open(_: &Options) -> Result<Self, Failure> {
        Ok(Self::default())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let path = row.text("path").unwrap_or("");
        let (class, name) = (
            row.text("folder").unwrap_or(""),
            row.text("name").unwrap_or(""),
        );
        let Some((class, dr)) = CLASSES.iter().find(|(known, _)| *known == class) else {
            return Err(row.refuse(
                "path",
                "a photograph in one of the 39 folders, such as `0.0.Normal`",
            ));
        };
        let mut sample = sample(0, path);
        sample.findings = vec![finding(class, Some(true))];
        sample.quality = class.starts_with("29.").then_some(Quality::Poor);
        sample.labels = labels(*dr).into();
        let inner = format!("{class}/{name}");
        if path == inner {
            self.seen.insert(inner);
            return Ok(Some(Row::mapped(sample)));
        }
        if path == format!("{TOP}/{inner}") {
            self.nested.push((row.reference(), inner, sample));
            return Ok(None);
        }
        Err(row.refuse("path", "a photograph right in its class's folder"))
    }

    fn finish(&mut self) -> Result<Vec<Outcome>, Failure> {
        let seen = &self.seen;
        let settle = |(row, inner, sample): (RowRef, String, Sample)| {
            let fate = if seen.contains(&inner) {
                Row::dropped("in a second copy of the folders, one level down", None)
            } else {
                Row::mapped(sample)
            };
            Outcome { row, fate }
        };
        Ok(self.nested.drain(..).map(settle).collect())
    }
}

fn labels(dr: Dr) -> [Label; 2] {
    let (any, referable) = match dr {
        Dr::None | Dr::Unclear => (false, false),
        Dr::Mild => (true, false),
        Dr::Referable => (true, true),
    };
    [(BINARY_DR, any), (REFERABLE_DR, referable)].map(|(task, positive)| {
        let label = rule::label(task, Some(positive));
        let corrected = if matches!(dr, Dr::Unclear) {
            Truth::Unknown
        } else {
            label.corrected
        };
        Label { corrected, ..label }
    })
}

export_mapper!(super::Jsiec);
