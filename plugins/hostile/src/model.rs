//! The encoder of images and texts: honest but for its misdeed. Must not know how a misdeed is done, nor the generator.

use crate::misdeed::{Misdeed, When};
use focus_plugin_sdk::{
    DualEncoder, Embeddings, Error, Family, Geometry, Group, Host, ImageBatch, ImageEncoder,
    InterfaceName, Model, ModelDescriptor, OpenOptions, OpenedModel, PixelMode, PreprocessingCard,
    ResizeFilter, TextEmbeddings, deny_unknown_settings, opened,
};

/// Values in an embedding.
pub const DIM: usize = 8;

const BATCH: u32 = 4;
const EDGE: u32 = 16;
const SETTINGS: &[&str] = &[
    "misdeed", "marker", "batch", "edge", "path", "address", "amount",
];

/// The true embedding of one image (u8 RGB): mean of each channel and first pixel, both in units of pixel/255, then the mean of all
/// values weighted by position modulo 7, then 1.
pub fn embedding(rgb: &[u8]) -> [f32; DIM] {
    let pixels = (rgb.len() / 3).max(1) as f32;
    let mean = |channel: usize| {
        rgb.iter()
            .skip(channel)
            .step_by(3)
            .map(|&v| f32::from(v))
            .sum::<f32>()
            / (255.0 * pixels)
    };
    let first = |channel: usize| rgb.get(channel).map_or(0.0, |&v| f32::from(v) / 255.0);
    let weighted = rgb
        .iter()
        .enumerate()
        .map(|(at, &v)| (at % 7) as f32 * f32::from(v))
        .sum::<f32>()
        / (255.0 * 3.0 * pixels);
    [
        mean(0),
        mean(1),
        mean(2),
        first(0),
        first(1),
        first(2),
        weighted,
        1.0,
    ]
}

/// The true embedding of a text: [`embedding`] of its bytes.
pub fn text_embedding(text: &str) -> [f32; DIM] {
    embedding(text.as_bytes())
}

struct Hostile {
    opened: OpenedModel,
    intent: Intent,
}

/// What was asked for at opening.
pub(crate) struct Intent {
    pub(crate) misdeed: Misdeed,
    pub(crate) marker: Option<[u8; 3]>,
}

impl Model for Hostile {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }

    fn dual_encoder(&mut self) -> Option<&mut dyn DualEncoder> {
        Some(self)
    }
}

impl ImageEncoder for Hostile {
    fn encode(&mut self, images: &ImageBatch<'_>, host: &Host) -> Result<Embeddings, Error> {
        let mut values: Vec<f32> = images.iter().flat_map(embedding).collect();
        let Intent { misdeed, marker } = &self.intent;
        let hit = match *marker {
            None => Some(0),
            Some(colour) => images.iter().position(|rgb| rgb[..3] == colour),
        };
        let Some(row) = hit else {
            return Embeddings::new(DIM, values);
        };
        let dim = misdeed.during_encode(host, row, images.used(), &mut values)?;
        Embeddings::new(dim, values)
    }
}

impl DualEncoder for Hostile {
    fn encode_texts(&mut self, texts: &[String], host: &Host) -> Result<TextEmbeddings, Error> {
        let mut values: Vec<f32> = texts.iter().flat_map(|text| text_embedding(text)).collect();
        let mut tokens: Vec<Vec<u32>> = texts
            .iter()
            .map(|text| text.bytes().map(u32::from).collect())
            .collect();
        let Intent { misdeed, marker } = &self.intent;
        let hit = match marker {
            None => Some(0),
            Some(_) => texts.iter().position(|text| text.contains('!')),
        };
        let mut dim = DIM;
        if let Some(row) = hit {
            dim = misdeed.during_encode(host, row, texts.len(), &mut values)?;
            if *misdeed == Misdeed::LyingRows {
                tokens.push(Vec::new());
            }
        }
        Ok(TextEmbeddings {
            rows: Embeddings::new(dim, values)?,
            tokens,
            truncated: vec![false; texts.len()],
        })
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        self.misdeed.at(When::Drop);
    }
}

pub(crate) fn card() -> ModelDescriptor {
    ModelDescriptor {
        id: "hostile".into(),
        title: "Mean colours, and a misdeed on request".into(),
        family: Family::Vlm,
        group: Group::Baseline,
        interfaces: vec![InterfaceName::ImageEncoder, InterfaceName::DualEncoder],
        preprocessing: PreprocessingCard {
            mode: PixelMode::Resized,
            width: EDGE,
            height: EDGE,
            geometry: Geometry::Squash,
            filter: ResizeFilter::Box,
            mean: [0.0; 3],
            std: [1.0; 3],
        },
        embedding_dim: Some(DIM as u32),
        dtypes: vec!["f32".into()],
        devices: vec!["cpu".into()],
        batch_size: BATCH,
        weight_files: Vec::new(),
        pretraining_datasets: Some(Vec::new()),
        weights_license: None,
        papers: Vec::new(),
        reference_code: None,
        hub: None,
    }
}

/// A whole number above 0.
pub(crate) fn number(options: &OpenOptions, name: &str, default: u32) -> Result<u32, Error> {
    match options.settings.get(name) {
        None => Ok(default),
        Some(text) => text.parse().ok().filter(|&n| n > 0).ok_or_else(|| {
            Error::invalid_request(format!(
                "Setting `{name}` must be a whole number above 0, found `{text}`"
            ))
        }),
    }
}

/// Read the settings, and do what is to be done while opening.
pub(crate) fn intent(options: &OpenOptions, host: &Host) -> Result<Intent, Error> {
    deny_unknown_settings(options, SETTINGS)?;
    let setting = |name: &str| options.settings.get(name).map(String::as_str);
    let marker = setting("marker")
        .map(|text| {
            let value = (text.len() == 6)
                .then(|| u32::from_str_radix(text, 16).ok())
                .flatten();
            let [_, r, g, b] = value
                .ok_or_else(|| {
                    Error::invalid_request(format!(
                        "Setting `marker` must be `RRGGBB`, found `{text}`"
                    ))
                })?
                .to_be_bytes();
            Ok::<_, Error>([r, g, b])
        })
        .transpose()?;
    let misdeed = Misdeed::from_settings(setting("misdeed").unwrap_or("none"), &setting)?;
    host.info(format!(
        "opened with misdeed `{}`",
        setting("misdeed").unwrap_or("none")
    ));
    misdeed.at(When::Open);
    Ok(Intent { misdeed, marker })
}

fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    let intent = intent(options, host)?;
    let mut opened = opened(&card(), options);
    opened.batch_size = number(options, "batch", BATCH)?;
    let edge = number(options, "edge", EDGE)?;
    (opened.preprocessing.width, opened.preprocessing.height) = (edge, edge);
    Ok(Box::new(Hostile { opened, intent }))
}

focus_plugin_sdk::register_model! { describe: card, open: open }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedding_is_what_it_says() {
        let e = embedding(&[255, 0, 51, 0, 255, 51]);
        assert_eq!(e[..6], [0.5, 0.5, 0.2, 1.0, 0.0, 0.2]);
        // (2 * 51 + 4 * 255 + 5 * 51) / (255 * 6)
        assert!((e[6] - 0.9).abs() < 1e-6 && e[7] == 1.0, "{e:?}");
    }
}
