//! Tower, projector and decoder, loaded from one checkpoint. Knows tensors' names, no text.

use crate::config::Config;
use crate::projector::Projector;
use focus_nn::candle::Result;
use focus_nn::lm::{Decoder, Features};
use focus_nn::lora::{Adaptable, Adapters, Module, Spelling};
use focus_nn::vision::{VisionTower, tower_at};
use focus_nn::{LoadError, Tensor, Weights};

/// How modules were called before transformers 4.52 and in checkpoints, and in the tower until transformers 5.
const SPELLINGS: &[Spelling] = &[
    ("model.vision_tower.vision_model.", "model.vision_tower."),
    ("vision_tower.vision_model.", "model.vision_tower."),
    ("language_model.model.", "model.language_model."),
    ("language_model.lm_head", "lm_head"),
];

/// A whole model.
#[derive(Debug)]
pub struct Network {
    tower: VisionTower,
    projector: Projector,
    decoder: Decoder,
    adapters: Adapters,
}

impl Network {
    /// Claim all tensors.
    pub fn load(config: &Config, at: &Weights) -> std::result::Result<Self, LoadError> {
        let text = at.at("language_model");
        Ok(Self {
            tower: VisionTower::load(&config.vision, &tower_at(&at.at("vision_tower")))?,
            projector: Projector::load(config, &at.at("multi_modal_projector"))?,
            decoder: Decoder::load(&text.at("model"), &text, &config.decoder)?,
            adapters: Adapters::default(),
        })
    }

    /// The language model.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// One picture, (1, 3, size, size), normalised, to its rows.
    pub fn look(&self, pixels: &Tensor) -> Result<Features> {
        let patches = self.tower.last_normed(pixels)?.squeeze(0)?;
        let rows = self.projector.forward(&patches)?;
        Ok(Features {
            grid: (rows.dim(0)?, 1),
            rows,
            deep: Vec::new(),
        })
    }
}

impl Adaptable for Network {
    fn visit(&mut self, visit: &mut dyn FnMut(&str, Module<'_>)) {
        self.tower.visit("model.vision_tower", visit);
        self.decoder.visit("model.language_model", "", visit);
    }

    fn adapters(&mut self) -> &mut Adapters {
        &mut self.adapters
    }

    fn spellings(&self) -> &'static [Spelling] {
        SPELLINGS
    }
}
