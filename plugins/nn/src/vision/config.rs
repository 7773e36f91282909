//! A tower in numbers, and `vision_config` read into them. Knows no tensors.

use crate::Activation;
use serde::Deserialize;
use serde_json::Value;

/// A vision tower for pictures of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VisionConfig {
    /// Width.
    pub dim: usize,
    /// Layers.
    pub depth: usize,
    /// Heads; divides `dim`.
    pub heads: usize,
    /// Width of the feed-forward's middle.
    pub hidden: usize,
    /// Side of a picture in pixels.
    pub size: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Added to variances in norms.
    pub eps: f64,
    /// Of the feed-forward.
    pub activation: Activation,
    /// Whether a learnt token stands before the patches.
    pub class_token: bool,
    /// Whether a norm (`pre_layrnorm`) stands before the first layer.
    pub norm_before: bool,
    /// Whether the patch embedding has a bias.
    pub patch_bias: bool,
}

/// `vision_config`; what a file leaves out has its class's default.
#[derive(Deserialize)]
struct Stored {
    model_type: String,
    hidden_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    intermediate_size: Option<usize>,
    image_size: Option<usize>,
    patch_size: Option<usize>,
    num_channels: Option<usize>,
    layer_norm_eps: Option<f64>,
    hidden_act: Option<String>,
}

/// Bound on every size read from a file.
const MOST: usize = 1 << 20;

impl VisionConfig {
    /// CLIP ViT-L/14 at 336 pixels, the tower of the LLaVA models.
    pub fn clip_large_336() -> Self {
        Self {
            dim: 1024,
            depth: 24,
            heads: 16,
            hidden: 4096,
            size: 336,
            patch: 14,
            eps: 1e-5,
            activation: Activation::QuickGelu,
            class_token: true,
            norm_before: true,
            patch_bias: false,
        }
    }

    /// SigLIP So400m/14 at 896 pixels, the tower of Gemma 3.
    pub fn siglip_so400m_896() -> Self {
        Self {
            dim: 1152,
            depth: 27,
            heads: 16,
            hidden: 4304,
            size: 896,
            patch: 14,
            eps: 1e-6,
            activation: Activation::GeluTanh,
            class_token: false,
            norm_before: false,
            patch_bias: true,
        }
    }

    /// Read `vision_config` of a `config.json`. The message says what is wrong.
    pub fn read(value: &Value) -> Result<Self, String> {
        let file: Stored =
            serde_json::from_value(value.clone()).map_err(|e| format!("`vision_config`: {e}"))?;
        let clip = match file.model_type.as_str() {
            "clip_vision_model" => true,
            "siglip_vision_model" => false,
            other => {
                return Err(format!(
                    "`vision_config.model_type`: expected `clip_vision_model` or `siglip_vision_model`, found `{other}`"
                ));
            }
        };
        let channels = file.num_channels.unwrap_or(3);
        if channels != 3 {
            return Err(format!(
                "`vision_config.num_channels`: expected 3, found {channels}"
            ));
        }
        let activation = match &file.hidden_act {
            None if clip => Activation::QuickGelu,
            None => Activation::GeluTanh,
            Some(name) => Activation::from_name(name).ok_or_else(|| {
                format!("`vision_config.hidden_act`: `{name}` is not a known activation")
            })?,
        };
        let config = Self {
            dim: file.hidden_size.unwrap_or(768),
            depth: file.num_hidden_layers.unwrap_or(12),
            heads: file.num_attention_heads.unwrap_or(12),
            hidden: file.intermediate_size.unwrap_or(3072),
            size: file.image_size.unwrap_or(224),
            patch: file.patch_size.unwrap_or(if clip { 32 } else { 16 }),
            eps: file
                .layer_norm_eps
                .unwrap_or(if clip { 1e-5 } else { 1e-6 }),
            activation,
            class_token: clip,
            norm_before: clip,
            patch_bias: !clip,
        };
        config.check()?;
        Ok(config)
    }

    /// Patches along a side.
    pub fn side(&self) -> usize {
        self.size / self.patch
    }

    /// Tokens of a picture, the class token included.
    pub fn tokens(&self) -> usize {
        self.side() * self.side() + usize::from(self.class_token)
    }

    fn check(&self) -> Result<(), String> {
        for (name, value) in [
            ("hidden_size", self.dim),
            ("num_hidden_layers", self.depth),
            ("num_attention_heads", self.heads),
            ("intermediate_size", self.hidden),
            ("image_size", self.size),
            ("patch_size", self.patch),
        ] {
            if value == 0 || value > MOST {
                return Err(format!(
                    "`vision_config.{name}`: expected 1 to {MOST}, found {value}"
                ));
            }
        }
        if !self.dim.is_multiple_of(self.heads) {
            return Err(format!(
                "`vision_config`: expected `hidden_size` a multiple of `num_attention_heads`, found {} and {}",
                self.dim, self.heads
            ));
        }
        if self.patch > self.size {
            return Err(format!(
                "`vision_config`: expected `patch_size` at most `image_size`, found {} and {}",
                self.patch, self.size
            ));
        }
        if !(self.eps.is_finite() && self.eps > 0.0) {
            return Err(format!(
                "`vision_config.layer_norm_eps`: expected a number above 0, found {}",
                self.eps
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_files_leave_out_is_their_class_s() {
        let gemma = json!({"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
            "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false});
        assert_eq!(
            VisionConfig::read(&gemma),
            Ok(VisionConfig::siglip_so400m_896())
        );
        let llava = json!({"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
            "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000});
        assert_eq!(
            VisionConfig::read(&llava),
            Ok(VisionConfig::clip_large_336())
        );
        assert_eq!(VisionConfig::clip_large_336().tokens(), 577);
        assert_eq!(VisionConfig::siglip_so400m_896().tokens(), 4096);
    }

    #[test]
    fn senseless_towers_are_refused() {
        for (field, value, said) in [
            ("model_type", json!("vit"), "found `vit`"),
            ("hidden_size", json!(30), "a multiple"),
            ("num_channels", json!(1), "expected 3, found 1"),
            ("num_hidden_layers", json!(0), "found 0"),
            ("patch_size", json!(300), "at most `image_size`"),
            ("hidden_act", json!("gelu_new2"), "`gelu_new2`"),
            ("layer_norm_eps", json!(0.0), "above 0"),
            ("image_size", json!(9_000_000_000_u64), "found 9000000000"),
        ] {
            let mut file = json!({"model_type": "clip_vision_model"});
            file[field] = value;
            let error = VisionConfig::read(&file).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
