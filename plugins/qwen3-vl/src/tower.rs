//! The vision tower: patches of one picture to rows for the language model, and the rows that DeepStack adds inside it. Knows no files.

mod merger;
mod position;

use crate::config::VisionConfig;
use crate::processor::Patches;
use focus_nn::candle::{Result, Tensor};
use focus_nn::lm::Features;
use focus_nn::lora::{Module, join};
use focus_nn::{
    Attention, AttentionConfig, DType, Device, Init, LayerNorm, Linear, LoadError, Mlp,
    Projections, Weights, add_residual,
};
use merger::Merger;

/// Added under the root of every layer norm.
const EPS: f64 = 1e-6;

/// The tower.
#[derive(Debug)]
pub struct VisionTower {
    config: VisionConfig,
    patch: Linear,
    /// (table_side^2, hidden).
    table: Tensor,
    blocks: Vec<Block>,
    merger: Merger,
    deep: Vec<Merger>,
    device: Device,
    dtype: DType,
}

#[derive(Debug)]
struct Block {
    before_attention: LayerNorm,
    attention: Attention,
    before_mlp: LayerNorm,
    mlp: Mlp,
}

impl VisionTower {
    /// Load from `model.visual`.
    pub fn load(at: &Weights, config: &VisionConfig) -> std::result::Result<Self, LoadError> {
        let hidden = config.hidden;
        let patch = at.at("patch_embed.proj");
        let side = config.patch;
        // A convolution in time and space whose stride is its size: a product.
        let kernel = [hidden, config.channels, config.frames, side, side];
        let weight = patch
            .get("weight", &kernel, Init::Normal(0.02))?
            .reshape((hidden, config.patch_values()))?;
        let bias = patch.get("bias", &[hidden], Init::Zeros)?;
        let places = config.table_side * config.table_side;
        let table = at
            .at("pos_embed")
            .get("weight", &[places, hidden], Init::Normal(0.02))?;
        let blocks = (0..config.depth)
            .map(|layer| Block::load(&at.at("blocks").at(layer), config))
            .collect::<std::result::Result<_, _>>()?;
        let deep = (0..config.deepstack.len())
            .map(|k| Merger::load(&at.at("deepstack_merger_list").at(k), config, true))
            .collect::<std::result::Result<_, _>>()?;
        Ok(Self {
            config: config.clone(),
            patch: Linear::new(weight, Some(bias)),
            table,
            blocks,
            merger: Merger::load(&at.at("merger"), config, false)?,
            deep,
            device: at.device().clone(),
            dtype: at.dtype(),
        })
    }

    /// One picture. Its patches see each other, and nothing else.
    pub fn forward(&self, patches: &Patches) -> Result<Features> {
        let (rows, columns) = patches.grid;
        let count = rows * columns;
        let config = &self.config;
        let values = Tensor::from_slice(
            &patches.values,
            (count, config.patch_values()),
            &self.device,
        )?
        .to_dtype(self.dtype)?;
        let embedded = self.patch.forward(&values)?;
        let places = position::interpolate(&self.table, config, patches.grid)?;
        let rotary = position::rotary(config, patches.grid, &self.device)?;
        let mut x = (embedded + places)?.unsqueeze(0)?;
        let mut deep = Vec::with_capacity(self.deep.len());
        for (layer, block) in self.blocks.iter().enumerate() {
            let attended = block.attention.forward(
                &block.before_attention.forward(&x)?,
                Some(&rotary),
                None,
            )?;
            x = add_residual(&x, attended, None)?;
            let widened = block.mlp.forward(&block.before_mlp.forward(&x)?)?;
            x = add_residual(&x, widened, None)?;
            if let Some(k) = config.deepstack.iter().position(|&index| index == layer) {
                deep.push(self.deep[k].forward(&x.squeeze(0)?)?);
            }
        }
        Ok(Features {
            rows: self.merger.forward(&x.squeeze(0)?)?,
            deep,
            grid: (rows / config.merge, columns / config.merge),
        })
    }

    /// Show every module that an adapter may change, by its name behind `at`. Convolutions are none.
    pub fn visit(&mut self, at: &str, visit: &mut dyn FnMut(&str, Module<'_>)) {
        for (layer, block) in self.blocks.iter_mut().enumerate() {
            let at = join(at, &format!("blocks.{layer}"));
            if let Projections::Packed(all) = block.attention.projections_mut() {
                visit(&join(&at, "attn.qkv"), Module::Linear(all));
            }
            let output = block.attention.output_mut();
            visit(&join(&at, "attn.proj"), Module::Linear(output));
            if let Mlp::Plain { up, down, .. } = &mut block.mlp {
                visit(&join(&at, "mlp.linear_fc1"), Module::Linear(up));
                visit(&join(&at, "mlp.linear_fc2"), Module::Linear(down));
            }
        }
        self.merger.visit(&join(at, "merger"), visit);
        for (k, merger) in self.deep.iter_mut().enumerate() {
            merger.visit(&join(at, &format!("deepstack_merger_list.{k}")), visit);
        }
    }
}

impl Block {
    fn load(at: &Weights, config: &VisionConfig) -> std::result::Result<Self, LoadError> {
        let hidden = config.hidden;
        let attention = at.at("attn");
        let mlp = at.at("mlp");
        Ok(Self {
            before_attention: LayerNorm::load(&at.at("norm1"), hidden, EPS)?,
            attention: Attention::new(
                Projections::Packed(Linear::load(
                    &attention.at("qkv"),
                    hidden,
                    3 * hidden,
                    true,
                )?),
                Linear::load(&attention.at("proj"), hidden, hidden, true)?,
                AttentionConfig {
                    heads: config.heads,
                    head_dim: config.head_dim(),
                },
            ),
            before_mlp: LayerNorm::load(&at.at("norm2"), hidden, EPS)?,
            mlp: Mlp::Plain {
                up: Linear::load(&mlp.at("linear_fc1"), hidden, config.intermediate, true)?,
                down: Linear::load(&mlp.at("linear_fc2"), config.intermediate, hidden, true)?,
                activation: config.activation,
            },
        })
    }
}
