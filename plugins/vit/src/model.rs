//! The transformer: tokens from patches, blocks, a pooled vector. Knows no files and no plugin.

use crate::config::{Feed, Position, VitConfig};
use crate::names::Names;
use crate::pool::{Pool, Pooling};
use focus_nn::candle::Result;
use focus_nn::position::{Rotary, interpolate};
use focus_nn::{
    Attention, AttentionConfig, DType, Init, LayerNorm, Linear, LoadError, Mlp, PatchEmbedding,
    Projections, Tensor, Weights, add_residual,
};

/// Standard deviation of drawn tokens and tables.
const DEVIATION: f32 = 0.02;

/// The pooler's matrix; classifiers' checkpoints lack it.
pub const POOLER: &str = "pooler.dense.weight";
/// Seed that an absent pooler is drawn from.
pub const POOLER_SEED: u64 = 0;

/// A vision transformer for pictures of one size.
#[derive(Debug, Clone)]
pub struct Vit {
    patches: PatchEmbedding,
    /// Class token and registers, (1, prefix, dim).
    prefix: Tensor,
    /// Added to the patches, (1, places, dim).
    positions: Option<Tensor>,
    rotary: Option<Rotary>,
    blocks: Vec<Block>,
    pooling: Pooling,
}

#[derive(Debug, Clone)]
struct Block {
    norm1: LayerNorm,
    attention: Attention,
    scale1: Option<Tensor>,
    norm2: LayerNorm,
    mlp: Mlp,
    scale2: Option<Tensor>,
}

impl Vit {
    /// Claim the weights. `size` is the pictures' (height, width) in pixels.
    pub fn load(
        config: &VitConfig,
        pool: Pool,
        size: (usize, usize),
        weights: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let names = config.naming.names();
        let grid = (size.0 / config.patch, size.1 / config.patch);
        if grid.0 == 0 || grid.1 == 0 {
            return Err(unfit(format!(
                "pictures of {} x {} pixels hold no patch of {}",
                size.1, size.0, config.patch
            )));
        }
        let dim = config.dim;
        let mut cls = weights.get(names.cls, &[1, 1, dim], Init::Normal(DEVIATION))?;
        let positions = match config.position {
            Position::Rotary { .. } => None,
            Position::Table { prefixed, .. } => {
                let (own, table) = table(config, names, grid, weights)?;
                if prefixed {
                    cls = (cls + own)?;
                }
                Some(table)
            }
        };
        let prefix = if config.registers > 0 {
            let shape = [1, config.registers, dim];
            let registers = weights.get(names.registers, &shape, Init::Normal(DEVIATION))?;
            Tensor::cat(&[&cls, &registers], 1)?
        } else {
            cls
        };
        let rotary = match config.position {
            Position::Rotary { theta } => Some(Rotary::axial(
                grid,
                dim / config.heads,
                theta,
                weights.device(),
            )?),
            Position::Table { .. } => None,
        };
        let blocks = weights.at(names.block);
        Ok(Self {
            patches: PatchEmbedding::load(&weights.at(names.patches), 3, config.patch, dim, true)?,
            prefix,
            positions,
            rotary,
            blocks: (0..config.depth)
                .map(|number| Block::load(config, names, &blocks.at(number)))
                .collect::<std::result::Result<_, _>>()?,
            pooling: pooling(config, names, pool, weights)?,
        })
    }

    /// Pictures (batch, 3, height, width), normalised, to pooled vectors (batch, dim).
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        self.pooling
            .forward(&self.tokens(pixels)?, self.prefix.dim(1)?)
    }

    /// All tokens before the last norm, (batch, prefix + patches, dim).
    pub fn tokens(&self, pixels: &Tensor) -> Result<Tensor> {
        let mut patches = self.patches.forward(pixels)?;
        if let Some(positions) = &self.positions {
            patches = patches.broadcast_add(positions)?;
        }
        let (batch, _, dim) = patches.dims3()?;
        let prefix = self.prefix.expand((batch, self.prefix.dim(1)?, dim))?;
        let mut x = Tensor::cat(&[&prefix, &patches], 1)?;
        for block in &self.blocks {
            x = block.forward(&x, self.rotary.as_ref())?;
        }
        Ok(x)
    }
}

fn unfit(reason: String) -> LoadError {
    LoadError::Config {
        file: "config.json".into(),
        reason,
    }
}

/// The class token's row (zeros where the table has none) and the patches' rows, brought to the grid.
fn table(
    config: &VitConfig,
    names: &Names,
    grid: (usize, usize),
    weights: &Weights,
) -> std::result::Result<(Tensor, Tensor), LoadError> {
    let Position::Table {
        trained,
        prefixed,
        how,
    } = config.position
    else {
        return Err(unfit("there is no table of positions".into()));
    };
    let (dim, own) = (config.dim, usize::from(prefixed));
    let learnt = match trained {
        Some(pixels) => (pixels / config.patch, pixels / config.patch),
        None => match weights.shape_of(names.positions).as_deref() {
            Some([1, rows, _]) => {
                let side = rows.saturating_sub(own).isqrt();
                (side, side)
            }
            // Random weights, or a table that is missing: reported when it is claimed.
            _ => grid,
        },
    };
    let rows = own + learnt.0 * learnt.1;
    // Interpolated in f32, as the references do, whatever the model runs in.
    let shape = [1, rows, dim];
    let all = weights
        .get_as(names.positions, &shape, Init::Normal(DEVIATION), DType::F32)?
        .squeeze(0)?;
    let patches = interpolate(&all.narrow(0, own, rows - own)?, learnt, grid, how)?;
    let first = if prefixed {
        all.narrow(0, 0, 1)?
    } else {
        all.narrow(0, 0, 1)?.zeros_like()?
    };
    Ok((
        first.unsqueeze(0)?.to_dtype(weights.dtype())?,
        patches.unsqueeze(0)?.to_dtype(weights.dtype())?,
    ))
}

fn pooling(
    config: &VitConfig,
    names: &Names,
    pool: Pool,
    weights: &Weights,
) -> std::result::Result<Pooling, LoadError> {
    let dim = config.dim;
    let norm = || LayerNorm::load(&weights.at(names.norm), dim, config.eps);
    Ok(match pool {
        Pool::Cls => Pooling::Cls(norm()?),
        Pool::PatchMean => Pooling::PatchMean(norm()?),
        Pool::GapFcNorm => {
            // A fine-tuned checkpoint has a norm of its own here and none at the end; a pretrained one the other way round.
            if weights
                .shape_of(&format!("{}.weight", names.norm))
                .is_some()
            {
                norm()?;
            }
            Pooling::GapFcNorm(if weights.shape_of("fc_norm.weight").is_some() {
                LayerNorm::load(&weights.at("fc_norm"), dim, config.eps)?
            } else {
                let (device, dtype) = (weights.device(), weights.dtype());
                LayerNorm::new(
                    Tensor::ones(dim, dtype, device)?,
                    Tensor::zeros(dim, dtype, device)?,
                    config.eps,
                )
            })
        }
        Pool::Pooler => {
            let load =
                |weights: &Weights| Linear::load(&weights.at("pooler.dense"), dim, dim, true);
            let absent = !weights.is_random() && weights.shape_of(POOLER).is_none();
            let dense = if absent {
                let (device, dtype) = (weights.device(), weights.dtype());
                focus_nn::weights::random(POOLER_SEED, device, dtype, load)?
            } else {
                load(weights)?
            };
            Pooling::Pooler(norm()?, dense)
        }
    })
}

impl Block {
    fn load(
        config: &VitConfig,
        names: &Names,
        at: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let (dim, hidden, biases) = (config.dim, config.hidden, config.biases);
        let linear = |name: &str, from: usize, to: usize, bias: bool| {
            Linear::load(&at.at(name), from, to, bias)
        };
        let scale = |name: &str| {
            config
                .layer_scale
                .map(|value| at.get(name, &[dim], Init::Constant(value)))
                .transpose()
        };
        let projections = match names.attention {
            [all] => Projections::Packed(linear(all, dim, 3 * dim, biases.query)?),
            [query, key, value] => {
                let query = linear(query, dim, dim, biases.query)?;
                let key = linear(key, dim, dim, biases.key)?;
                let value = linear(value, dim, dim, biases.value)?;
                match config.position {
                    Position::Rotary { .. } => Projections::Separate { query, key, value },
                    Position::Table { .. } => Projections::joined(&query, &key, &value)?,
                }
            }
            _ => return Err(unfit("attention has one map or three".into())),
        };
        let activation = config.activation;
        let mlp = match config.feed {
            Feed::Plain => Mlp::Plain {
                up: linear(names.up, dim, hidden, biases.feed)?,
                down: linear(names.down, hidden, dim, biases.feed)?,
                activation,
            },
            Feed::Packed => Mlp::Packed {
                both: linear(names.gate, dim, 2 * hidden, biases.feed)?,
                down: linear("mlp.weights_out", hidden, dim, biases.feed)?,
                activation,
            },
            Feed::Gated => Mlp::Gated {
                gate: linear(names.gate, dim, hidden, biases.feed)?,
                up: linear(names.up, dim, hidden, biases.feed)?,
                down: linear(names.down, hidden, dim, biases.feed)?,
                activation,
            },
        };
        let attention = AttentionConfig {
            heads: config.heads,
            head_dim: dim / config.heads,
        };
        Ok(Self {
            norm1: LayerNorm::load(&at.at(names.norm1), dim, config.eps)?,
            attention: Attention::new(
                projections,
                linear(names.output, dim, dim, biases.output)?,
                attention,
            ),
            scale1: scale(names.scale1)?,
            norm2: LayerNorm::load(&at.at(names.norm2), dim, config.eps)?,
            mlp,
            scale2: scale(names.scale2)?,
        })
    }

    fn forward(&self, x: &Tensor, rotary: Option<&Rotary>) -> Result<Tensor> {
        let branch = self
            .attention
            .forward(&self.norm1.forward(x)?, rotary, None)?;
        let x = add_residual(x, branch, self.scale1.as_ref())?;
        let branch = self.mlp.forward(&self.norm2.forward(&x)?)?;
        add_residual(&x, branch, self.scale2.as_ref())
    }
}
