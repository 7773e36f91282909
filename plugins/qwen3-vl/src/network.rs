//! Both networks of a checkpoint, and the adapters on them. Knows no host.

use crate::config::Config;
use crate::tower::VisionTower;
use focus_nn::lm::Decoder;
use focus_nn::lora::{Adaptable, Adapters, Module, Spelling};
use focus_nn::{Checkpoint, DType, Device, Layout, LoadError, Weights};
use std::path::Path;

/// The vision tower and the language model.
#[derive(Debug)]
pub struct Network {
    /// Pictures.
    pub tower: VisionTower,
    /// Text.
    pub decoder: Decoder,
    adapters: Adapters,
}

impl Network {
    /// A folder's checkpoint, every tensor of it.
    pub fn load(
        folder: &Path,
        config: &Config,
        device: &Device,
        dtype: DType,
    ) -> Result<Self, LoadError> {
        let checkpoint = Checkpoint::open_folder(folder, &[], &Layout::default())?;
        focus_nn::weights::load(checkpoint, device, dtype, &[], |w| Self::build(w, config))
    }

    /// The architecture with weights drawn from `seed`.
    pub fn random(
        seed: u64,
        config: &Config,
        device: &Device,
        dtype: DType,
    ) -> Result<Self, LoadError> {
        focus_nn::weights::random(seed, device, dtype, |w| Self::build(w, config))
    }

    fn build(weights: &Weights, config: &Config) -> Result<Self, LoadError> {
        let model = weights.at("model");
        Ok(Self {
            tower: VisionTower::load(&model.at("visual"), &config.vision)?,
            decoder: Decoder::load(&model.at("language_model"), weights, &config.text)?,
            adapters: Adapters::default(),
        })
    }
}

impl Adaptable for Network {
    fn visit(&mut self, visit: &mut dyn FnMut(&str, Module<'_>)) {
        self.tower.visit("model.visual", visit);
        self.decoder.visit("model.language_model", "", visit);
    }

    fn adapters(&mut self) -> &mut Adapters {
        &mut self.adapters
    }

    fn spellings(&self) -> &'static [Spelling] {
        // The family is younger than the last renaming.
        &[]
    }
}
