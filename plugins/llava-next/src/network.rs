//! All of the network: tower, projector, language model; and its names, as checkpoints and adapters spell them. Knows no files and no text.

use crate::config::{Config, FILE};
use crate::grid::Size;
use crate::projector::Projector;
use crate::tiles::Tiles;
use focus_nn::candle::Result;
use focus_nn::lm::{Decoder, Features};
use focus_nn::lora::{Adaptable, Adapters, Module, Spelling};
use focus_nn::vision::{VisionTower, tower_at};
use focus_nn::{LoadError, Tensor, Weights};

/// Beginnings of module names before transformers 4.52 and 5.2, and now.
const SPELLINGS: &[Spelling] = &[
    ("model.vision_tower.vision_model.", "model.vision_tower."),
    ("vision_tower.vision_model.", "model.vision_tower."),
    ("language_model.model.", "model.language_model."),
    ("language_model.lm_head", "lm_head"),
    ("multi_modal_projector.", "model.multi_modal_projector."),
];

/// LLaVA-NeXT.
#[derive(Debug)]
pub struct Network {
    tower: VisionTower,
    layer: isize,
    projector: Projector,
    decoder: Decoder,
    adapters: Adapters,
}

impl Network {
    /// Claim every weight, `weights` being the root: the names of the hub's files.
    pub fn load(config: &Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        config.text.check(FILE)?;
        let language = weights.at("language_model");
        Ok(Self {
            tower: VisionTower::load(&config.vision, &tower_at(&weights.at("vision_tower")))?,
            layer: config.layer,
            projector: Projector::load(config, weights)?,
            decoder: Decoder::load(&language.at("model"), &language, &config.text)?,
            adapters: Adapters::default(),
        })
    }

    /// The language model.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Rows of a picture in the language model's stream, the base tile's first.
    pub fn look(&self, tiles: &Tiles) -> Result<Features> {
        let rows = self.project(&tiles.pixels)?;
        let side = self.tower.config().size as u32;
        let tiling = Size::new(
            tiles.resolution.height / side,
            tiles.resolution.width / side,
        );
        let rows = self.projector.pack(&rows, tiling, tiles.original)?;
        Ok(Features {
            grid: (rows.dim(0)?, 1),
            deep: Vec::new(),
            rows,
        })
    }

    /// Tiles (count, 3, side, side), each by itself, to (count, places, dim).
    fn project(&self, pixels: &Tensor) -> Result<Tensor> {
        let hidden = self.tower.hidden_state(pixels, self.layer)?;
        self.projector.forward(&self.tower.patches(&hidden)?)
    }
}

impl Adaptable for Network {
    fn visit(&mut self, visit: &mut dyn FnMut(&str, Module<'_>)) {
        self.tower.visit("model.vision_tower", visit);
        self.projector.visit("model.multi_modal_projector", visit);
        self.decoder.visit("model.language_model", "", visit);
    }

    fn adapters(&mut self) -> &mut Adapters {
        &mut self.adapters
    }

    fn spellings(&self) -> &'static [Spelling] {
        SPELLINGS
    }
}
