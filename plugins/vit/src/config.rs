//! An architecture in numbers, from `config.json` in any of its spellings. Knows no tensors and no files but that one.
//!
//! transformers wrote `torch_dtype` and `rope_theta` up to version 4, `dtype` and `rope_parameters` since; both are read. A file with
//! timm's words (`embed_dim`, `depth`, ...) describes checkpoints of timm's names, which come without a configuration of their own.

use crate::names::Naming;
use focus_nn::Activation;
use focus_nn::position::Interpolation;
use serde::Deserialize;
use serde_json::Value;

/// The feed-forward block's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// Two maps.
    Plain,
    /// Gate and up in one matrix (DINOv2's SwiGLU).
    Packed,
    /// Gate, up and down (DINOv3's larger ones).
    Gated,
}

/// Which maps have a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Biases {
    /// Queries.
    pub query: bool,
    /// Keys.
    pub key: bool,
    /// Values.
    pub value: bool,
    /// Attention's output.
    pub output: bool,
    /// The feed-forward.
    pub feed: bool,
}

impl Biases {
    const ALL: Self = Self {
        query: true,
        key: true,
        value: true,
        output: true,
        feed: true,
    };
}

/// Where a token says where it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Position {
    /// A learnt table, added once.
    Table {
        /// Side in pixels the table was learnt at; `None`: as the checkpoint has it.
        trained: Option<usize>,
        /// Whether its first row belongs to the class token.
        prefixed: bool,
        /// How it is brought to another grid.
        how: Interpolation,
    },
    /// Queries and keys turned by their place, in every block.
    Rotary {
        /// Base of the wavelengths.
        theta: f64,
    },
}

/// A vision transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct VitConfig {
    /// What its tensors are called.
    pub naming: Naming,
    /// Width.
    pub dim: usize,
    /// Blocks.
    pub depth: usize,
    /// Heads; divides `dim`.
    pub heads: usize,
    /// Width of the feed-forward's middle.
    pub hidden: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Added to variances in norms.
    pub eps: f64,
    /// Of the feed-forward.
    pub activation: Activation,
    /// The feed-forward's form.
    pub feed: Feed,
    /// Tokens between class token and patches that belong to no place.
    pub registers: usize,
    /// Initial value of the factors on both branches; `None`: there are none.
    pub layer_scale: Option<f32>,
    /// Biases.
    pub biases: Biases,
    /// Positions.
    pub position: Position,
}

impl VitConfig {
    /// timm's and MAE's plain transformer: `dim`, `depth`, `heads`, feed-forward four times as wide, learnt at `pixels`.
    pub fn timm(
        dim: usize,
        depth: usize,
        heads: usize,
        patch: usize,
        pixels: Option<usize>,
    ) -> Self {
        Self {
            naming: Naming::Timm,
            dim,
            depth,
            heads,
            hidden: 4 * dim,
            patch,
            eps: 1e-6,
            activation: Activation::Gelu,
            feed: Feed::Plain,
            registers: 0,
            layer_scale: None,
            biases: Biases::ALL,
            position: Position::Table {
                trained: pixels,
                prefixed: true,
                how: Interpolation::Size,
            },
        }
    }

    /// ViT-L/16 of the hub, 224 pixels.
    pub fn vit_large() -> Self {
        Self {
            naming: Naming::Vit,
            eps: 1e-12,
            ..Self::timm(1024, 24, 16, 16, Some(224))
        }
    }

    /// DINOv2 ViT-L/14 of the hub, learnt at 518 pixels.
    pub fn dinov2_large() -> Self {
        Self {
            naming: Naming::Dinov2,
            layer_scale: Some(1.0),
            ..Self::timm(1024, 24, 16, 14, Some(518))
        }
    }

    /// DINOv3 ViT-L/16 of the hub.
    pub fn dinov3_large() -> Self {
        Self {
            naming: Naming::Dinov3,
            eps: 1e-5,
            registers: 4,
            layer_scale: Some(1.0),
            biases: Biases {
                key: false,
                ..Biases::ALL
            },
            position: Position::Rotary { theta: 100.0 },
            ..Self::timm(1024, 24, 16, 16, None)
        }
    }

    /// The same architecture at toy size: two blocks, 32 wide.
    #[must_use]
    pub fn tiny(self) -> Self {
        let position = match self.position {
            Position::Table { prefixed, how, .. } => Position::Table {
                trained: Some(2 * self.patch),
                prefixed,
                how,
            },
            rotary @ Position::Rotary { .. } => rotary,
        };
        Self {
            dim: 32,
            depth: 2,
            heads: 2,
            hidden: 64,
            position,
            ..self
        }
    }

    /// Tokens before the patches.
    pub fn prefix(&self) -> usize {
        1 + self.registers
    }

    /// Most bytes of intermediate values an image of `size` (height, width) in pixels takes.
    pub fn image_bytes(&self, size: (usize, usize), dtype: focus_nn::DType) -> u64 {
        let patches = (size.0 / self.patch) * (size.1 / self.patch);
        let tokens = self.prefix() + patches;
        focus_nn::batch::transformer_bytes(tokens, self.dim, self.hidden, self.heads, dtype)
    }

    /// Read a `config.json`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
        let config = match json.get("model_type").and_then(Value::as_str) {
            Some("vit") => hub_vit(read(&json)?),
            Some("dinov2" | "dinov2_with_registers") => hub_dinov2(read(&json)?),
            Some("dinov3_vit") => hub_dinov3(read(&json)?),
            Some(other) => {
                return Err(format!(
                    "expected `model_type` `vit`, `dinov2`, `dinov2_with_registers` or `dinov3_vit`, found `{other}`"
                ));
            }
            None if json.get("embed_dim").is_some() => timm(read(&json)?),
            None => return Err("expected `model_type` or timm's `embed_dim`, found neither".into()),
        }?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let sides = [self.dim, self.depth, self.heads, self.hidden, self.patch];
        if sides.iter().any(|&side| side == 0 || side > 1 << 20) {
            return Err(format!("sizes must be 1 to {}: found {sides:?}", 1 << 20));
        }
        if !self.dim.is_multiple_of(self.heads) {
            return Err(format!(
                "heads must divide the width: found {} heads and width {}",
                self.heads, self.dim
            ));
        }
        if !(self.eps > 0.0 && self.eps < 1.0) || self.registers > 1024 {
            return Err(format!(
                "`eps` {} or {} registers make no sense",
                self.eps, self.registers
            ));
        }
        Ok(())
    }
}

fn read<T: serde::de::DeserializeOwned>(json: &Value) -> Result<T, String> {
    serde_json::from_value(json.clone()).map_err(|error| error.to_string())
}

fn activation(name: &str) -> Result<Activation, String> {
    Activation::from_name(name).ok_or_else(|| format!("`hidden_act` `{name}` is not known"))
}

/// Fields of the hub's files; what one leaves out has the default of transformers' class.
#[derive(Deserialize)]
struct Hub {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: Option<usize>,
    mlp_ratio: Option<f64>,
    image_size: Option<usize>,
    patch_size: usize,
    layer_norm_eps: Option<f64>,
    hidden_act: Option<String>,
    num_channels: Option<usize>,
    qkv_bias: Option<bool>,
    use_swiglu_ffn: Option<bool>,
    num_register_tokens: Option<usize>,
    layerscale_value: Option<f32>,
    use_gated_mlp: Option<bool>,
    query_bias: Option<bool>,
    key_bias: Option<bool>,
    value_bias: Option<bool>,
    proj_bias: Option<bool>,
    mlp_bias: Option<bool>,
    rope_theta: Option<f64>,
    rope_parameters: Option<RopeParameters>,
}

#[derive(Deserialize)]
struct RopeParameters {
    rope_theta: Option<f64>,
}

impl Hub {
    fn base(&self, naming: Naming, eps: f64) -> Result<VitConfig, String> {
        if self.num_channels.unwrap_or(3) != 3 {
            return Err(format!(
                "expected 3 channels, found {:?}",
                self.num_channels
            ));
        }
        Ok(VitConfig {
            naming,
            hidden: self.intermediate_size.unwrap_or(4 * self.hidden_size),
            eps: self.layer_norm_eps.unwrap_or(eps),
            activation: activation(self.hidden_act.as_deref().unwrap_or("gelu"))?,
            ..VitConfig::timm(
                self.hidden_size,
                self.num_hidden_layers,
                self.num_attention_heads,
                self.patch_size,
                Some(self.image_size.unwrap_or(224)),
            )
        })
    }

    fn packed_biases(&self) -> Biases {
        let bias = self.qkv_bias.unwrap_or(true);
        Biases {
            query: bias,
            key: bias,
            value: bias,
            ..Biases::ALL
        }
    }
}

fn hub_vit(hub: Hub) -> Result<VitConfig, String> {
    Ok(VitConfig {
        biases: hub.packed_biases(),
        ..hub.base(Naming::Vit, 1e-12)?
    })
}

fn hub_dinov2(hub: Hub) -> Result<VitConfig, String> {
    let widened = (hub.hidden_size as f64 * hub.mlp_ratio.unwrap_or(4.0)) as usize;
    let swiglu = hub.use_swiglu_ffn.unwrap_or(false);
    Ok(VitConfig {
        // Two thirds, rounded up to a multiple of 8, so that the gate costs no more.
        hidden: if swiglu {
            (widened * 2 / 3).next_multiple_of(8)
        } else {
            widened
        },
        feed: if swiglu { Feed::Packed } else { Feed::Plain },
        activation: if swiglu {
            Activation::Silu
        } else {
            activation(hub.hidden_act.as_deref().unwrap_or("gelu"))?
        },
        registers: hub.num_register_tokens.unwrap_or(0),
        layer_scale: Some(hub.layerscale_value.unwrap_or(1.0)),
        biases: hub.packed_biases(),
        ..hub.base(Naming::Dinov2, 1e-6)?
    })
}

fn hub_dinov3(hub: Hub) -> Result<VitConfig, String> {
    let nested = hub
        .rope_parameters
        .as_ref()
        .and_then(|rope| rope.rope_theta);
    Ok(VitConfig {
        feed: if hub.use_gated_mlp.unwrap_or(false) {
            Feed::Gated
        } else {
            Feed::Plain
        },
        registers: hub.num_register_tokens.unwrap_or(0),
        layer_scale: Some(hub.layerscale_value.unwrap_or(1.0)),
        biases: Biases {
            query: hub.query_bias.unwrap_or(true),
            key: hub.key_bias.unwrap_or(false),
            value: hub.value_bias.unwrap_or(true),
            output: hub.proj_bias.unwrap_or(true),
            feed: hub.mlp_bias.unwrap_or(true),
        },
        position: Position::Rotary {
            theta: hub.rope_theta.or(nested).unwrap_or(100.0),
        },
        ..hub.base(Naming::Dinov3, 1e-5)?
    })
}

/// timm's words. `num_prefix_tokens` counts the class token.
#[derive(Deserialize)]
struct Timm {
    embed_dim: usize,
    depth: usize,
    num_heads: usize,
    patch_size: usize,
    img_size: Option<usize>,
    mlp_ratio: Option<f64>,
    ln_eps: Option<f64>,
    num_prefix_tokens: Option<usize>,
    no_embed_class: Option<bool>,
    layer_scale: Option<bool>,
}

fn timm(timm: Timm) -> Result<VitConfig, String> {
    let registers = timm.num_prefix_tokens.unwrap_or(1).checked_sub(1);
    let base = VitConfig::timm(
        timm.embed_dim,
        timm.depth,
        timm.num_heads,
        timm.patch_size,
        timm.img_size,
    );
    Ok(VitConfig {
        hidden: (timm.embed_dim as f64 * timm.mlp_ratio.unwrap_or(4.0)) as usize,
        eps: timm.ln_eps.unwrap_or(1e-6),
        registers: registers.ok_or("`num_prefix_tokens` must count the class token")?,
        layer_scale: timm.layer_scale.unwrap_or(false).then_some(1e-5),
        position: Position::Table {
            trained: timm.img_size,
            prefixed: !timm.no_embed_class.unwrap_or(false),
            how: Interpolation::Size,
        },
        ..base
    })
}
