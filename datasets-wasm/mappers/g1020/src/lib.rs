//! G1020: 1,020 photographs with a label of glaucoma, and masks of disc and cup.
//!
//! * Paper: Bajwa et al., IJCNN 2020, doi 10.1109/IJCNN48605.2020.9207664. The Kaggle mirror says CC BY-NC 4.0; the
//!   original terms are unclear.
//! * Codings, from the paper: binaryLabels 0 healthy, 1 glaucoma. Masks: 0 background, 1 disc, 2 cup; the cup is visible in
//!   791, elsewhere the cup-to-disc ratio is missing, not 0.
//! * Trap: the numbers of the photographs have gaps, which are no missing photographs.
//! * No patient key exists, although several photographs may be of one patient; no split, age, sex or quality.

use focus_mapper_sdk::{
    Access, Descriptor, Device, DeviceKind, Failure, Fate, Fields, Folder, ImageKey, ImageRef,
    Mapper, Mask, Options, Row, Table, TableSource, below, export_mapper, glaucoma_vcdr, required,
    rule, sample, task,
};

const GLAUCOMA: u32 = 0;
const PHOTOGRAPHS: u32 = 0;
const MASKS: u32 = 1;
const PLACES: &[&str] = &["", "G1020", "G1020/G1020"];

struct G1020;

impl Mapper for G1020 {
    fn describe() -> Descriptor {
        Descriptor {
            id: "g1020".into(),
            title: "G1020: retinal fundus images for glaucoma detection".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "CC-BY-NC-4.0 by the Kaggle mirror; original terms unclear".into(),
            access: Access::Registration,
            route: "https://www.kaggle.com/datasets/arnavjain1/glaucoma-datasets".into(),
            citation: "Bajwa MN, Singh GAP, Neumeier W, Malik MI, Dengel A, Ahmed S. G1020: A Benchmark Retinal Fundus Image \
                       Dataset for Computer-Aided Glaucoma Detection. IJCNN 2020. doi:10.1109/IJCNN48605.2020.9207664"
                .into(),
            country: Some("Germany".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: None,
            },
            synthetic: false,
            tasks: vec![task("glaucoma", "binaryLabels = 1"), glaucoma_vcdr()],
            fields: Fields::VCDR | Fields::MASKS,
            options: Vec::new(),
            tables: vec![Table {
                id: "labels".into(),
                source: TableSource::Csv(below(PLACES, "G1020.csv")),
                required: true,
                closed: true,
                columns: vec![required("imageID"), required("binaryLabels")],
                join: None,
            }],
            folders: vec![
                Folder {
                    id: "photographs".into(),
                    paths: below(PLACES, "Images"),
                    required: true,
                    recursive: false,
                    extensions: vec!["jpg".into(), "jpeg".into(), "png".into()],
                    key: ImageKey::NameAnyCase,
                },
                Folder {
                    id: "masks".into(),
                    paths: below(PLACES, "Masks"),
                    required: false,
                    recursive: false,
                    extensions: vec!["png".into()],
                    key: ImageKey::Stem,
                },
            ],
        }
    }

    fn open(_: &Options) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let Some(image) = row.text("imageID") else {
            return Err(row.refuse("imageID", "the name of a photograph, such as `image_0.jpg`"));
        };
        let stem = image.rsplit_once('.').map_or(image, |(stem, _)| stem);
        let mut sample = sample(PHOTOGRAPHS, image);
        sample.labels = vec![rule::label(GLAUCOMA, row.flag("binaryLabels")?)];
        for (what, values, others) in [("disc", vec![1, 2], vec![0]), ("cup", vec![2], vec![0, 1])]
        {
            sample.masks.push(Mask {
                what: what.into(),
                image: ImageRef {
                    folder: MASKS,
                    name: stem.into(),
                },
                values,
                others,
            });
        }
        Ok(Some(Row::mapped(sample)))
    }
}

export_mapper!(super::G1020);
