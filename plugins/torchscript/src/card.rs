//! `encoder.toml`: what a TorchScript file does not say of itself. Knows no tensors.

use crate::pool::Pool;
use focus_plugin_sdk::{
    Family, Geometry, Group, InterfaceName, ModelDescriptor, PixelMode, PreprocessingCard,
    ResizeFilter,
};
use serde::Deserialize;

/// The model's name.
pub const ID: &str = "encoder";
/// The exported program.
pub const PROGRAM: &str = "encoder.pt";
/// Its card.
pub const CARD: &str = "encoder.toml";

/// Most images in one call.
const LARGEST_BATCH: u32 = 1024;
/// Longest side in pixels.
const LARGEST_SIDE: u32 = 4096;

/// The card as written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// One line: which model this is.
    pub title: String,
    /// Licence of the weights.
    pub licence: String,
    /// Images in one call.
    pub batch: u32,
    /// How pictures are prepared.
    pub preprocessing: Preprocessing,
    /// Which value is the embedding.
    #[serde(default)]
    pub output: Output,
}

/// How pictures are prepared: sizes in pixels, mean and deviation in units of value / 255.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// Final width.
    pub width: u32,
    /// Final height.
    pub height: u32,
    /// From the photograph's shape to the model's: `{ kind = "shortest_edge_crop", edge = 256 }`.
    pub geometry: Geometry,
    /// `box`, `bilinear`, `bicubic` or `lanczos`, as Pillow has them.
    pub filter: ResizeFilter,
    /// Subtracted from each channel.
    pub mean: [f64; 3],
    /// What is left is divided by it.
    pub std: [f64; 3],
}

/// Which of the program's values is the embedding.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Key of a dictionary that the program gives.
    pub key: Option<String>,
    /// Place in a tuple that the program gives, from 0.
    pub index: Option<usize>,
    /// From many vectors to one.
    #[serde(default)]
    pub pooling: Pool,
}

impl Card {
    /// Read and check it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let card: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let within = |name: &str, value: u32, limit: u32| {
            if (1..=limit).contains(&value) {
                return Ok(());
            }
            Err(format!("`{name}`: expected 1 to {limit}, found {value}"))
        };
        let pixels = &card.preprocessing;
        within("batch", card.batch, LARGEST_BATCH)?;
        within("width", pixels.width, LARGEST_SIDE)?;
        within("height", pixels.height, LARGEST_SIDE)?;
        if let Geometry::ShortestEdgeCrop { edge } = pixels.geometry {
            within("edge", edge, LARGEST_SIDE)?;
            let longest = pixels.width.max(pixels.height);
            if edge < longest {
                return Err(format!(
                    "`edge`: expected at least the crop's {longest}, found {edge}"
                ));
            }
        }
        if let Some(mean) = pixels.mean.iter().find(|mean| !mean.is_finite()) {
            return Err(format!("`mean`: expected numbers, found {mean}"));
        }
        if let Some(std) = pixels
            .std
            .iter()
            .find(|std| !(std.is_finite() && **std > 0.0))
        {
            return Err(format!("`std`: expected numbers above 0, found {std}"));
        }
        if card.output.key.is_some() && card.output.index.is_some() {
            return Err("`key` and `index` exclude each other".into());
        }
        Ok(card)
    }

    /// As the host has it.
    pub fn preprocessing(&self) -> PreprocessingCard {
        let pixels = &self.preprocessing;
        PreprocessingCard {
            mode: PixelMode::Resized,
            width: pixels.width,
            height: pixels.height,
            geometry: pixels.geometry,
            filter: pixels.filter,
            mean: pixels.mean,
            std: pixels.std,
        }
    }
}

/// As the host sees the model before a folder is named; size and preprocessing are the folder's.
pub fn descriptor() -> ModelDescriptor {
    ModelDescriptor {
        id: ID.into(),
        title: "An image encoder exported as TorchScript, described by the card beside it".into(),
        family: Family::Vm,
        group: Group::General,
        interfaces: vec![InterfaceName::ImageEncoder],
        preprocessing: PreprocessingCard {
            mode: PixelMode::Resized,
            width: 224,
            height: 224,
            geometry: Geometry::Squash,
            filter: ResizeFilter::Bicubic,
            mean: [0.5; 3],
            std: [0.5; 3],
        },
        embedding_dim: None,
        dtypes: vec!["f32".into()],
        devices: vec!["cpu".into()],
        batch_size: 8,
        weight_files: vec![PROGRAM.into(), CARD.into()],
        pretraining_datasets: None,
        weights_license: None,
        papers: Vec::new(),
        reference_code: None,
        hub: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
title = "x"
licence = "MIT"
batch = 4
[preprocessing]
width = 64
height = 48
geometry = { kind = "shortest_edge_crop", edge = 72 }
filter = "bicubic"
mean = [0.5, 0.5, 0.5]
std = [0.25, 0.25, 0.25]
"#;

    #[test]
    fn a_card_is_read() {
        let card = Card::parse(GOOD).unwrap();
        let pixels = card.preprocessing();
        assert_eq!((pixels.width, pixels.height), (64, 48));
        assert_eq!(pixels.geometry, Geometry::ShortestEdgeCrop { edge: 72 });
        assert_eq!(card.output, Output::default());
        let more = format!("{GOOD}[output]\nkey = \"features\"\npooling = \"first_token\"\n");
        assert_eq!(Card::parse(&more).unwrap().output.pooling, Pool::FirstToken);
    }

    #[test]
    fn senseless_cards_are_refused_by_name() {
        for (from, to, named) in [
            ("batch = 4", "batch = 0", "`batch`"),
            ("batch = 4", "batch = 4\nbatchsize = 3", "batchsize"),
            ("width = 64", "width = 5000", "`width`"),
            ("edge = 72", "edge = 32", "`edge`"),
            ("bicubic", "nearest", "nearest"),
            ("0.25, 0.25, 0.25", "0.25, 0.0, 0.25", "`std`"),
            ("0.5, 0.5, 0.5", "0.5, nan, 0.5", "`mean`"),
            ("title = \"x\"", "", "title"),
        ] {
            let error = Card::parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(error.contains(named), "{to}: {error}");
        }
        let both = format!("{GOOD}[output]\nkey = \"a\"\nindex = 0\n");
        assert!(Card::parse(&both).unwrap_err().contains("exclude"));
    }
}
