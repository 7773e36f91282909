//! A mapper that misbehaves on request: one misdeed per value of the option `misdeed`, for the tests of the host's
//! limits and checks. Misdeeds that come before an option is read are features, built as components of their own.
//!
//! With `misdeed=none` it maps the rows of `labels.csv` (columns `image`, `label`) as it should.

#![allow(clippy::pedantic)]

use focus_mapper_sdk::{
    Access, Age, BoundingBox, Contour, Descriptor, Device, DeviceKind, Drop, Failure, Fate, Fields,
    Finding, Folder, Frame, ImageKey, ImageRef, Landmark, LandmarkKind, Mapper, Mask, OptionSpec,
    Options, Outcome, Row, RowRef, Sample, Structure, Table, Task, Tracks, Truth, export_mapper,
    files, glaucoma_vcdr, required, rule, sample,
};

/// A clock imported from the host: the host must refuse the component before anything of it runs.
#[cfg(feature = "clock")]
mod clock {
    wit_bindgen::generate!({
        inline: "
            package hostile:clock;
            interface clock { now: func() -> u64; }
            world wants-clock { import clock; }
        ",
    });
    pub use hostile::clock::clock::now;
}

const MISDEEDS: &[&str] = &[
    "none",
    "loop-open",
    "loop-push",
    "loop-finish",
    "memory",
    "panic",
    "long-panic",
    "huge-list",
    "huge-string",
    "long-reason",
    "many-samples",
    "empty-samples",
    "double-row",
    "lose-row",
    "foreign-row",
    "foreign-table",
    "parent-path",
    "absolute-path",
    "unknown-folder",
    "unknown-task",
    "double-task",
    "untracked-label",
    "undeclared-field",
    "bad-age",
    "bad-grade",
    "bad-vcdr",
    "bad-landmark",
    "bad-box",
    "bad-mask",
    "mask-without-values",
    "mask-of-two-minds",
    "bad-contour",
    "host-label",
    "same-image",
    "control-text",
    "long-failure",
    "failure-elsewhere",
    "refuse-open",
    "hold-back",
];

struct Hostile {
    misdeed: String,
    held: Vec<RowRef>,
    images: Vec<String>,
}

fn spin() -> ! {
    let mut n = 0u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

impl Mapper for Hostile {
    fn describe() -> Descriptor {
        if cfg!(feature = "describe-loop") {
            spin();
        }
        #[cfg(feature = "clock")]
        std::hint::black_box(clock::now());
        let title = if cfg!(feature = "describe-huge") {
            "x".repeat(10_000_000)
        } else {
            "Hostile".into()
        };
        let id = if cfg!(feature = "describe-odd") {
            "../odd"
        } else {
            "hostile"
        };
        Descriptor {
            id: id.into(),
            title,
            version: "6.6.6".into(),
            licence: "none".into(),
            access: Access::Open,
            route: "nowhere".into(),
            citation: "none".into(),
            country: None,
            device: Device {
                kind: DeviceKind::Unknown,
                camera: None,
            },
            synthetic: true,
            tasks: vec![
                Task {
                    id: "binary_dr".into(),
                    tracks: Tracks::AS_PUBLISHED | Tracks::CORRECTED,
                    rule: "label".into(),
                    vcdr_at_least: None,
                },
                Task {
                    id: "referable_dr".into(),
                    tracks: Tracks::AS_PUBLISHED,
                    rule: "label".into(),
                    vcdr_at_least: None,
                },
                glaucoma_vcdr(),
            ],
            fields: Fields::AGE
                | Fields::GRADE
                | Fields::VCDR
                | Fields::LANDMARKS
                | Fields::BOXES
                | Fields::MASKS
                | Fields::CONTOURS,
            options: vec![OptionSpec {
                name: "misdeed".into(),
                title: "What to do wrong".into(),
                values: MISDEEDS.iter().map(|m| (*m).into()).collect(),
            }],
            tables: vec![Table {
                id: "labels".into(),
                source: files(&["labels.csv"]),
                required: true,
                closed: false,
                columns: vec![required("image"), required("label")],
                join: None,
            }],
            folders: vec![Folder {
                id: "images".into(),
                paths: vec!["images".into()],
                required: true,
                recursive: false,
                extensions: vec!["png".into(), "jpg".into()],
                key: ImageKey::Name,
            }],
        }
    }

    fn open(options: &Options) -> Result<Self, Failure> {
        let misdeed = options.get("misdeed").to_owned();
        match misdeed.as_str() {
            "loop-open" => spin(),
            "refuse-open" => {
                return Err(Failure {
                    row: None,
                    column: None,
                    rule: "an option that suits me".into(),
                    found: "refuse-open".into(),
                });
            }
            _ => {}
        }
        Ok(Self {
            misdeed,
            held: Vec::new(),
            images: Vec::new(),
        })
    }

    fn row(&mut self, row: &Row<'_>) -> Result<Option<Fate>, Failure> {
        let name = row.text("image").unwrap_or("");
        let state = row.code("label", &[("0", false), ("1", true)])?;
        let mut good = sample(0, name);
        good.labels = vec![rule::label(0, state)];
        self.images.push(name.into());
        match self.misdeed.as_str() {
            "loop-push" => spin(),
            "memory" => {
                let mut hoard: Vec<Vec<u8>> = Vec::new();
                loop {
                    hoard.push(vec![1; 1 << 20]);
                    std::hint::black_box(&hoard);
                }
            }
            "panic" => panic!("a guest's panic"),
            "long-panic" => panic!("{}", "long ".repeat(100_000)),
            "huge-list" => {
                let one = Finding {
                    name: String::new(),
                    state: Truth::Unknown,
                };
                good.findings = vec![one; 1_000_000];
            }
            "huge-string" => good.patient = Some("p".repeat(2_000_000)),
            "control-text" => good.image.name = "a\u{1b}[31m\n.png".into(),
            "many-samples" => return Ok(Some(Fate::Mapped(vec![good; 1000]))),
            "empty-samples" => return Ok(Some(Fate::Mapped(Vec::new()))),
            "long-reason" => {
                return Ok(Some(Fate::Dropped(Drop {
                    reason: "because ".repeat(10_000),
                    detail: None,
                })));
            }
            "lose-row" if row.reference().row == 1 => return Ok(None),
            "double-row" | "foreign-row" | "foreign-table" | "hold-back" => {
                self.held.push(row.reference());
                if self.misdeed == "hold-back" {
                    return Ok(None);
                }
            }
            "parent-path" => good.image.name = "../../etc/passwd".into(),
            "absolute-path" => good.image.name = "/etc/passwd".into(),
            "unknown-folder" => good.image.folder = 7,
            "unknown-task" => good.labels = vec![rule::label(9, state)],
            "double-task" => good.labels = vec![rule::label(0, state), rule::label(0, state)],
            "untracked-label" => good.labels = vec![rule::label(1, state)],
            "undeclared-field" => good.patient = Some("p1".into()),
            "bad-age" => {
                good.age = Some(Age {
                    years: f64::NAN,
                    at_least: false,
                })
            }
            "bad-grade" => good.grade = Some(9),
            "bad-vcdr" => good.vcdr = Some(1.5),
            "bad-landmark" => {
                let frame = Frame {
                    width: 100,
                    height: 100,
                };
                good.landmarks = vec![Landmark {
                    kind: LandmarkKind::Disc,
                    x: 500.0,
                    y: 1.0,
                    frame,
                }];
            }
            "bad-box" => {
                let frame = Frame {
                    width: 100,
                    height: 100,
                };
                good.boxes = vec![BoundingBox {
                    what: "lesion".into(),
                    x1: 9.0,
                    y1: 9.0,
                    x2: 3.0,
                    y2: 3.0,
                    frame,
                }];
            }
            "bad-mask" => {
                let image = ImageRef {
                    folder: 0,
                    name: "../mask.png".into(),
                };
                good.masks = vec![Mask {
                    what: "disc".into(),
                    image,
                    values: vec![1],
                    others: vec![0],
                }];
            }
            "mask-without-values" => {
                let image = ImageRef {
                    folder: 0,
                    name: name.into(),
                };
                good.masks = vec![Mask {
                    what: "disc".into(),
                    image,
                    values: Vec::new(),
                    others: vec![0],
                }];
            }
            "mask-of-two-minds" => {
                let image = ImageRef {
                    folder: 0,
                    name: name.into(),
                };
                good.masks = vec![Mask {
                    what: "disc".into(),
                    image,
                    values: vec![1, 2],
                    others: vec![0, 2],
                }];
            }
            "bad-contour" => {
                let file = ImageRef {
                    folder: 0,
                    name: "../../etc/passwd".into(),
                };
                good.contours = vec![Contour {
                    structure: Structure::Disc,
                    annotator: "me".into(),
                    file,
                }];
            }
            "host-label" => good.labels = vec![rule::label(2, state)],
            "same-image" => good.image.name.clone_from(&self.images[0]),
            "long-failure" => {
                return Err(Failure {
                    row: None,
                    column: None,
                    rule: "r".repeat(50_000),
                    found: "f".repeat(50_000),
                });
            }
            "failure-elsewhere" => {
                let row = Some(RowRef {
                    table: 99,
                    row: 12345,
                });
                return Err(Failure {
                    row,
                    column: None,
                    rule: "a rule".into(),
                    found: "something".into(),
                });
            }
            _ => {}
        }
        Ok(Some(Row::mapped(good)))
    }

    fn finish(&mut self) -> Result<Vec<Outcome>, Failure> {
        let mapped = |row: RowRef, name: &String| Outcome {
            row,
            fate: Fate::Mapped(vec![plain(name)]),
        };
        match self.misdeed.as_str() {
            "loop-finish" => spin(),
            "double-row" => Ok(vec![mapped(self.held[0], &self.images[0])]),
            "foreign-row" => Ok(vec![mapped(
                RowRef {
                    table: 0,
                    row: 1_000_000,
                },
                &self.images[0],
            )]),
            "foreign-table" => Ok(vec![mapped(RowRef { table: 5, row: 0 }, &self.images[0])]),
            "hold-back" => Ok(self
                .held
                .iter()
                .zip(&self.images)
                .map(|(row, name)| mapped(*row, name))
                .collect()),
            _ => Ok(Vec::new()),
        }
    }
}

fn plain(name: &str) -> Sample {
    sample(0, name)
}

export_mapper!(super::Hostile);
