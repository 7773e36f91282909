//! REFUGE: 1,200 photographs in three splits, a label of glaucoma, the fovea, masks of disc and cup.
//!
//! * Paper: Orlando et al., Medical Image Analysis 59:101570, 2020. Terms of the challenge: research only.
//! * Codings, from the challenge: Label 0 | 1 (glaucoma); training names begin with `g` or `n` for it. Masks of the Kaggle
//!   copy (PNG): 0 background, 1 disc, 2 cup; of the challenge (BMP): 255 background, 128 disc, 0 cup.
//! * Layouts: Kaggle's (`{train,val,test}/index.json`, an object of objects; test has no label and no fovea) and the
//!   challenge's (`REFUGE1-{train,val,test}` with workbooks). A folder that holds both is refused: each photograph would
//!   count twice.
//! * The benchmark tests on the official validation split. Training photographs are of another camera than the rest.
//! * No patient, age, sex or quality exists.

use focus_mapper_sdk::{
    Access, Column, Descriptor, Device, DeviceKind, Failure, Fate, Fields, Folder, Frame, ImageKey,
    ImageRef, Landmark, LandmarkKind, Mapper, Mask, Options, Outcome, Row, Split, Table,
    TableSource, alias, below, export_mapper, glaucoma_vcdr, optional, required, rule, sample,
    sheet, task,
};

const GLAUCOMA: u32 = 0;
const KAGGLE: &[&str] = &["", "REFUGE", "REFUGE/REFUGE", "refuge", "REFUGE2"];
const CHALLENGE: &[&str] = &["", "REFUGE", "Train", "REFUGE2/Train", "REFUGE2"];

/// A split's table in one of the two layouts. Its place is that of its table; its folders are at twice that and one more.
struct Part {
    id: &'static str,
    split: Split,
    kaggle: bool,
    /// Below the layout's top: table, photographs, masks.
    table: &'static str,
    photographs: &'static str,
    masks: &'static str,
}

const PARTS: [Part; 6] = [
    kaggle(
        "train",
        Split::Train,
        "train/index.json",
        "train/Images",
        "train/Masks",
    ),
    kaggle(
        "val",
        Split::Validation,
        "val/index.json",
        "val/Images",
        "val/Masks",
    ),
    kaggle(
        "test",
        Split::Test,
        "test/index.json",
        "test/Images",
        "test/Masks",
    ),
    Part {
        id: "challenge-train",
        split: Split::Train,
        kaggle: false,
        table: "REFUGE1-train/Fovea_location.xlsx",
        photographs: "REFUGE1-train/Training400",
        masks: "REFUGE1-train/Disc_Cup_Masks",
    },
    Part {
        id: "challenge-val",
        split: Split::Validation,
        kaggle: false,
        table: "REFUGE1-val/Fovea_locations.xlsx",
        photographs: "REFUGE1-val/REFUGE-Validation400",
        masks: "REFUGE1-val/Disc_Cup_Masks",
    },
    Part {
        id: "challenge-test",
        split: Split::Test,
        kaggle: false,
        table: "REFUGE1-test/Glaucoma_label_and_Fovea_location.xlsx",
        photographs: "REFUGE1-test/Test400",
        masks: "REFUGE1-test/Disc_Cup_Masks",
    },
];

const fn kaggle(
    id: &'static str,
    split: Split,
    table: &'static str,
    photographs: &'static str,
    masks: &'static str,
) -> Part {
    Part {
        id,
        split,
        kaggle: true,
        table,
        photographs,
        masks,
    }
}

impl Part {
    fn places(&self, path: &str) -> Vec<String> {
        below(if self.kaggle { KAGGLE } else { CHALLENGE }, path)
    }

    fn table(&self) -> Table {
        let mut columns = vec![required("ImgName")];
        if self.kaggle {
            columns.extend([
                required("Size_X"),
                required("Size_Y"),
                optional("Fovea_X"),
                optional("Fovea_Y"),
            ]);
            if self.split != Split::Test {
                columns.push(required("Label"));
            }
        } else {
            columns.extend([required("Fovea_X"), required("Fovea_Y"), optional("ID")]);
            if self.split != Split::Train {
                columns.push(label_column());
            }
        }
        let paths = self.places(self.table);
        let source = if self.kaggle {
            TableSource::Json(paths)
        } else {
            sheet(&paths.iter().map(String::as_str).collect::<Vec<_>>(), 1)
        };
        Table {
            id: self.id.into(),
            source,
            required: false,
            closed: true,
            columns,
            join: None,
        }
    }

    fn folders(&self) -> [Folder; 2] {
        let folder = |suffix: &str, path: &str, key| Folder {
            id: format!("{}{suffix}", self.id),
            paths: self.places(path),
            required: false,
            // The challenge sorts its training split into Glaucoma and Non-Glaucoma.
            recursive: !self.kaggle && self.split == Split::Train,
            extensions: ["jpg", "jpeg", "png", "bmp"].map(Into::into).into(),
            key,
        };
        [
            folder("", self.photographs, ImageKey::Name),
            folder("-masks", self.masks, ImageKey::Stem),
        ]
    }
}

fn label_column() -> Column {
    alias(required("Label"), &["Glaucoma Label", "Label(Glaucoma=1)"])
}

#[derive(Default)]
struct Refuge {
    seen: [bool; 6],
}

impl Mapper for Refuge {
    fn describe() -> Descriptor {
        Descriptor {
            id: "refuge".into(),
            title: "REFUGE: Retinal Fundus Glaucoma Challenge".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            licence: "Terms of the challenge: research only".into(),
            access: Access::Registration,
            route: "https://refuge.grand-challenge.org, or a mirror on Kaggle with index.json files".into(),
            citation: "Orlando JI, Fu H, Barbosa Breda J, et al. REFUGE Challenge: A unified framework for evaluating \
                       automated methods for glaucoma assessment from fundus photographs. Medical Image Analysis \
                       2020;59:101570. doi:10.1016/j.media.2019.101570"
                .into(),
            country: Some("China".into()),
            device: Device {
                kind: DeviceKind::Desktop,
                camera: Some("Zeiss Visucam 500 (train), Canon CR-2 (validation, test)".into()),
            },
            synthetic: false,
            tasks: vec![task("glaucoma", "Label = 1"), glaucoma_vcdr()],
            fields: Fields::LANDMARKS | Fields::VCDR | Fields::MASKS | Fields::DEVICE,
            options: Vec::new(),
            tables: PARTS.iter().map(Part::table).collect(),
            folders: PARTS.iter().flat_map(Part::folders).collect(),
        }
    }

    fn open(_: &Options) -> Result<Self, Failure> {
        Ok(Self::default())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let place = row.reference().table;
        let part = &PARTS[place as usize];
        self.seen[place as usize] = true;
        let Some(image) = row.text("ImgName") else {
            return Err(row.refuse("ImgName", "the name of a photograph, such as `g0001.jpg`"));
        };
        let named = match (part.split, image.chars().next()) {
            (Split::Train, Some('g')) => Some(true),
            (Split::Train, Some('n')) => Some(false),
            (Split::Train, _) => {
                return Err(row.refuse("ImgName", "a name that begins with `g` or `n`"));
            }
            _ => None,
        };
        let label = match (part.split, part.kaggle) {
            (Split::Train, false) => named,
            (Split::Test, true) => None,
            _ => row.flag("Label")?,
        };
        if named.is_some() && label != named {
            return Err(row.refuse("Label", "the label that the photograph's first letter says"));
        }
        // The challenge's training folder is sorted by label.
        let sub = match named {
            Some(true) if !part.kaggle => "Glaucoma/",
            Some(false) if !part.kaggle => "Non-Glaucoma/",
            _ => "",
        };
        let mut sample = sample(2 * place, format!("{sub}{image}"));
        sample.split = Some(part.split);
        sample.camera = Some(
            if part.split == Split::Train {
                "Zeiss Visucam 500"
            } else {
                "Canon CR-2"
            }
            .into(),
        );
        sample.labels = vec![rule::label(GLAUCOMA, label)];
        sample.landmarks.extend(fovea(row, part)?);
        let stem = image.rsplit_once('.').map_or(image, |(stem, _)| stem);
        let (background, disc, cup) = if part.kaggle {
            (0, 1, 2)
        } else {
            (255, 128, 0)
        };
        for (what, values, others) in [
            ("disc", vec![disc, cup], vec![background]),
            ("cup", vec![cup], vec![background, disc]),
        ] {
            sample.masks.push(Mask {
                what: what.into(),
                image: ImageRef {
                    folder: 2 * place + 1,
                    name: format!("{sub}{stem}"),
                },
                values,
                others,
            });
        }
        Ok(Some(Row::mapped(sample)))
    }

    /// Half a dataset would pass for a small one.
    fn finish(&mut self) -> Result<Vec<Outcome>, Failure> {
        let [train, val, test, other_train, other_val, other_test] = self.seen;
        let (kaggle, challenge) = (train || val || test, other_train || other_val || other_test);
        let failure = |rule: &str, found: &str| Failure {
            row: None,
            column: None,
            rule: rule.into(),
            found: found.into(),
        };
        if kaggle && challenge {
            return Err(failure("one layout, Kaggle's or the challenge's", "both"));
        }
        let whole = (train && val) || (other_train && other_val);
        if !whole {
            let found = if train || other_train {
                "training rows alone"
            } else {
                "no training rows"
            };
            return Err(failure(
                "rows of the training and the validation split",
                found,
            ));
        }
        Ok(Vec::new())
    }
}

fn fovea(row: &Row<'_>, part: &Part) -> Result<Option<Landmark>, Failure> {
    let frame = if part.kaggle {
        let (width, height) = (
            row.whole("Size_X", 1..=10_000)?,
            row.whole("Size_Y", 1..=10_000)?,
        );
        let (Some(width), Some(height)) = (width, height) else {
            return Err(row.refuse("Size_X", "the photograph's width and height"));
        };
        Frame { width, height }
    } else if part.split == Split::Train {
        Frame {
            width: 2124,
            height: 2056,
        }
    } else {
        Frame {
            width: 1634,
            height: 1634,
        }
    };
    let x = row.number("Fovea_X", 0.0..=f64::from(frame.width))?;
    let y = row.number("Fovea_Y", 0.0..=f64::from(frame.height))?;
    match (x, y) {
        (Some(x), Some(y)) => Ok(Some(Landmark {
            kind: LandmarkKind::Fovea,
            x,
            y,
            frame,
        })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(row.refuse("Fovea_X", "a coordinate, since the other one is there")),
        (Some(_), None) => Err(row.refuse("Fovea_Y", "a coordinate, since the other one is there")),
    }
}

export_mapper!(super::Refuge);
