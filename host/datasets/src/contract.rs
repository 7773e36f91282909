//! The contract `focus:mapper@0.2.0` as the host sees it, and its conversion to the host's own types. No other file
//! names the generated types of a descriptor; a second version of the contract gets a file beside this one.

use crate::descriptor as own;
use crate::record;

wasmtime::component::bindgen!({
    path: "../../datasets-wasm/wit/v1",
    world: "mapper",
});

pub(crate) use exports::focus::mapper::mapping as wit;

pub(crate) fn descriptor(from: wit::Descriptor) -> own::Descriptor {
    own::Descriptor {
        id: from.id,
        title: from.title,
        version: from.version,
        licence: from.licence,
        access: match from.access {
            wit::Access::Open => own::Access::Open,
            wit::Access::Registration => own::Access::Registration,
            wit::Access::Credentialed => own::Access::Credentialed,
            wit::Access::Request => own::Access::Request,
        },
        route: from.route,
        citation: from.citation,
        country: from.country,
        device: own::Device {
            kind: match from.device.kind {
                wit::DeviceKind::Desktop => own::DeviceKind::Desktop,
                wit::DeviceKind::Mobile => own::DeviceKind::Mobile,
                wit::DeviceKind::Unknown => own::DeviceKind::Unknown,
            },
            camera: from.device.camera,
        },
        synthetic: from.synthetic,
        tasks: from.tasks.into_iter().map(task).collect(),
        fields: fields(from.fields),
        options: from
            .options
            .into_iter()
            .map(|o| own::OptionSpec {
                name: o.name,
                title: o.title,
                values: o.values,
            })
            .collect(),
        tables: from.tables.into_iter().map(table).collect(),
        folders: from.folders.into_iter().map(folder).collect(),
    }
}

fn task(from: wit::Task) -> own::Task {
    let tracks = [
        (wit::Tracks::AS_PUBLISHED, record::Track::AsPublished),
        (wit::Tracks::CORRECTED, record::Track::Corrected),
    ];
    let tracks = tracks
        .into_iter()
        .filter(|(flag, _)| from.tracks.contains(*flag))
        .map(|(_, track)| track)
        .collect();
    own::Task {
        id: from.id,
        tracks,
        rule: from.rule,
        vcdr_at_least: from.vcdr_at_least,
    }
}

fn fields(from: wit::Fields) -> Vec<own::Field> {
    use own::Field;
    use wit::Fields;
    [
        (Fields::PATIENT, Field::Patient),
        (Fields::EYE, Field::Eye),
        (Fields::AGE, Field::Age),
        (Fields::SEX, Field::Sex),
        (Fields::QUALITY, Field::Quality),
        (Fields::GRADE, Field::Grade),
        (Fields::EDEMA, Field::Edema),
        (Fields::VIEW, Field::View),
        (Fields::VCDR, Field::Vcdr),
        (Fields::FINDINGS, Field::Findings),
        (Fields::LANDMARKS, Field::Landmarks),
        (Fields::BOXES, Field::Boxes),
        (Fields::MASKS, Field::Masks),
        (Fields::CONTOURS, Field::Contours),
        (Fields::DEVICE, Field::Device),
    ]
    .into_iter()
    .filter(|(flag, _)| from.contains(*flag))
    .map(|(_, field)| field)
    .collect()
}

fn table(from: wit::Table) -> own::Table {
    own::Table {
        id: from.id,
        source: match from.source {
            wit::TableSource::Csv(paths) => own::TableSource::Csv(paths),
            wit::TableSource::Xlsx(sheet) => own::TableSource::Xlsx(own::Sheet {
                paths: sheet.paths,
                name: sheet.name,
                header_rows: sheet.header_rows,
            }),
            wit::TableSource::Json(paths) => own::TableSource::Json(paths),
            wit::TableSource::Listing(folder) => own::TableSource::Listing(folder),
        },
        required: from.required,
        closed: from.closed,
        columns: from
            .columns
            .into_iter()
            .map(|c| own::Column {
                name: c.name,
                aliases: c.aliases,
                required: c.required,
            })
            .collect(),
        join: from.join.map(|j| own::Join {
            onto: j.onto,
            keys: j.keys,
            many_to_one: matches!(j.cardinality, wit::Cardinality::ManyToOne),
            every_primary: j.every_primary,
            every_secondary: j.every_secondary,
        }),
    }
}

fn folder(from: wit::Folder) -> own::Folder {
    own::Folder {
        id: from.id,
        paths: from.paths,
        required: from.required,
        recursive: from.recursive,
        extensions: from.extensions,
        key: match from.key {
            wit::ImageKey::Name => own::ImageKey::Name,
            wit::ImageKey::Stem => own::ImageKey::Stem,
            wit::ImageKey::NameAnyCase => own::ImageKey::NameAnyCase,
            wit::ImageKey::StemAnyCase => own::ImageKey::StemAnyCase,
        },
    }
}

impl From<wit::Truth> for record::Truth {
    fn from(from: wit::Truth) -> Self {
        match from {
            wit::Truth::Negative => Self::Negative,
            wit::Truth::Positive => Self::Positive,
            wit::Truth::Unknown => Self::Unknown,
        }
    }
}

macro_rules! same_words {
    ($($type:ident { $($variant:ident),+ })+) => {$(
        impl From<wit::$type> for record::$type {
            fn from(from: wit::$type) -> Self {
                match from { $(wit::$type::$variant => Self::$variant),+ }
            }
        }
    )+};
}

same_words! {
    Split { Train, Validation, Test }
    Eye { Right, Left }
    Sex { Female, Male }
    Quality { Good, Poor }
    View { Macula, Disc }
    LandmarkKind { Disc, Fovea }
    Structure { Disc, Cup }
}

impl From<wit::Frame> for record::Frame {
    fn from(from: wit::Frame) -> Self {
        Self {
            width: from.width,
            height: from.height,
        }
    }
}
