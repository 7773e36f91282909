//! The network: pictures to the hidden states of a chosen layer. Knows no projector and no language model.

use super::VisionConfig;
use super::block::Block;
use crate::lora::{Module, join};
use crate::{Init, LayerNorm, LoadError, PatchEmbedding, Tensor, Weights};
use candle_core::Result;

/// Standard deviation of drawn tables.
const DEVIATION: f32 = 0.02;
/// Level between a multimodal model's tower and its tensors, in files of transformers 4 and on the hub.
const INNER: &str = "vision_model";

/// The place of a tower in either spelling: `vision_tower.vision_model.*` (hub, transformers 4) or `vision_tower.*` (models that
/// transformers 5 created). `outer` is the tower's own place. A checkpoint with neither is told what it lacks in the first.
#[must_use]
pub fn tower_at(outer: &Weights) -> Weights {
    if outer
        .shape_of("embeddings.patch_embedding.weight")
        .is_some()
    {
        outer.clone()
    } else {
        outer.at(INNER)
    }
}

/// A vision transformer with all its layers, those too that a chosen hidden state leaves out: files hold them, and adapters name them.
#[derive(Debug, Clone)]
pub struct VisionTower {
    config: VisionConfig,
    patches: PatchEmbedding,
    /// Added to the patches, (1, places, dim).
    positions: Tensor,
    /// With its position added, (1, 1, dim).
    class: Option<Tensor>,
    before: Option<LayerNorm>,
    blocks: Vec<Block>,
    after: LayerNorm,
}

impl VisionTower {
    /// Claim `embeddings.*`, `pre_layrnorm.*`, `encoder.layers.N.*` and `post_layernorm.*` at a place; see [`tower_at`].
    pub fn load(config: &VisionConfig, at: &Weights) -> std::result::Result<Self, LoadError> {
        let dim = config.dim;
        let embeddings = at.at("embeddings");
        let own = usize::from(config.class_token);
        let places = config.tokens() - own;
        let table = embeddings.at("position_embedding").get(
            "weight",
            &[own + places, dim],
            Init::Normal(DEVIATION),
        )?;
        let class = if config.class_token {
            let token = embeddings.get("class_embedding", &[dim], Init::Normal(DEVIATION))?;
            Some((token + table.narrow(0, 0, 1)?.squeeze(0)?)?.reshape((1, 1, dim))?)
        } else {
            None
        };
        // The first norm's name is misspelt in every file.
        let before = config
            .norm_before
            .then(|| LayerNorm::load(&at.at("pre_layrnorm"), dim, config.eps))
            .transpose()?;
        let layers = at.at("encoder").at("layers");
        Ok(Self {
            config: *config,
            patches: PatchEmbedding::load(
                &embeddings.at("patch_embedding"),
                3,
                config.patch,
                dim,
                config.patch_bias,
            )?,
            positions: table.narrow(0, own, places)?.unsqueeze(0)?,
            class,
            before,
            blocks: (0..config.depth)
                .map(|number| Block::load(config, &layers.at(number)))
                .collect::<std::result::Result<_, _>>()?,
            after: LayerNorm::load(&at.at("post_layernorm"), dim, config.eps)?,
        })
    }

    /// Its numbers.
    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// A hidden state of pictures (batch, 3, size, size), normalised: (batch, tokens, dim), the class token first where there is one.
    /// `layer` counts as transformers does: 0 is what enters the first layer, `depth` what leaves the last, and -1 is the last, -2
    /// the one before. No norm is applied to it.
    pub fn hidden_state(&self, pixels: &Tensor, layer: isize) -> Result<Tensor> {
        let depth = self.blocks.len() as isize;
        let run = if layer < 0 { layer + depth + 1 } else { layer };
        if !(0..=depth).contains(&run) {
            candle_core::bail!(
                "A hidden state that the tower lacks: expected -{} to {depth}, found {layer}",
                depth + 1
            );
        }
        self.blocks[..run as usize]
            .iter()
            .try_fold(self.embed(pixels)?, |x, block| block.forward(&x))
    }

    /// The last hidden state behind the last norm (`last_hidden_state` of SigLIP), (batch, tokens, dim).
    pub fn last_normed(&self, pixels: &Tensor) -> Result<Tensor> {
        self.after.forward(&self.hidden_state(pixels, -1)?)
    }

    /// A hidden state's patches without the class token, (batch, side * side, dim), row by row.
    pub fn patches(&self, hidden: &Tensor) -> Result<Tensor> {
        let own = usize::from(self.config.class_token);
        hidden.narrow(1, own, hidden.dim(1)? - own)?.contiguous()
    }

    /// Show every linear layer that an adapter may change, by its name behind `at` (`model.vision_tower`, in the newest spelling).
    pub fn visit(&mut self, at: &str, visit: &mut dyn FnMut(&str, Module<'_>)) {
        for (number, block) in self.blocks.iter_mut().enumerate() {
            block.visit(&join(at, &format!("encoder.layers.{number}")), visit);
        }
    }

    /// Tokens that enter the first layer.
    fn embed(&self, pixels: &Tensor) -> Result<Tensor> {
        let (batch, _, height, width) = pixels.dims4()?;
        let size = self.config.size;
        if (height, width) != (size, size) {
            candle_core::bail!(
                "Pictures of the wrong size: expected {size} x {size}, found {width} x {height}"
            );
        }
        let mut x = self
            .patches
            .forward(pixels)?
            .broadcast_add(&self.positions)?;
        if let Some(class) = &self.class {
            let class = class.expand((batch, 1, self.config.dim))?;
            x = Tensor::cat(&[&class, &x], 1)?;
        }
        match &self.before {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
    }
}
