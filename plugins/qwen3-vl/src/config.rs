//! The architecture's numbers, and what must hold between them. Knows no tensors.

mod read;

pub(crate) use read::ids;

use focus_nn::lm::{DecoderConfig, LayerKind, NormStyle, Rope};
use focus_nn::{Activation, LoadError};

/// The file they are read from.
pub const FILE: &str = "config.json";

/// Bound on widths.
const MOST: usize = 1 << 24;
/// Bound on sides of patches, on patches of a row and on frames: their products are sizes too.
const MOST_SMALL: usize = 1 << 10;
/// Bound on the tower's layers and on places along a side.
const MOST_LAYERS: usize = 1 << 12;

/// All numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The language model.
    pub text: DecoderConfig,
    /// The vision tower.
    pub vision: VisionConfig,
    /// Id that stands for a row of a picture.
    pub image_token: u32,
    /// Ids that `config.json` says end an answer; `generation_config.json` goes before it.
    pub end_tokens: Vec<u32>,
}

/// Numbers of the vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    /// Layers.
    pub depth: usize,
    /// Width of the stream.
    pub hidden: usize,
    /// Width inside the feed-forward.
    pub intermediate: usize,
    /// Heads.
    pub heads: usize,
    /// Of the layers' feed-forward; the mergers have GELU with the error function whatever this says.
    pub activation: Activation,
    /// Colours.
    pub channels: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Patches along a side that become one row for the language model.
    pub merge: usize,
    /// Frames of a patch: a still picture is given that often.
    pub frames: usize,
    /// Width of the language model.
    pub out: usize,
    /// Places along a side of the learnt position table.
    pub table_side: usize,
    /// Base of the rotary wavelengths.
    pub theta: f64,
    /// Layers whose output is also added inside the language model, after its layers 0, 1, ...
    pub deepstack: Vec<usize>,
}

impl VisionConfig {
    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }

    /// Values of a patch.
    pub fn patch_values(&self) -> usize {
        self.channels * self.frames * self.patch * self.patch
    }
}

impl Config {
    /// `config.json` as transformers 4 or 5 writes it. Fields that are absent have the values of the reference's classes.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let config = read::parse(text).map_err(wrong)?;
        config.check()?;
        Ok(config)
    }

    /// Qwen/Qwen3-VL-8B-Instruct.
    pub fn qwen3_vl_8b() -> Self {
        Self {
            text: DecoderConfig {
                vocab: 151_936,
                hidden: 4096,
                intermediate: 12_288,
                heads: 32,
                kv_heads: 8,
                layers: vec![LayerKind::Full; 36],
                ..text(128, [24, 20, 20], 5e6)
            },
            vision: VisionConfig {
                depth: 27,
                hidden: 1152,
                intermediate: 4304,
                heads: 16,
                activation: Activation::GeluTanh,
                channels: 3,
                patch: 16,
                merge: 2,
                frames: 2,
                out: 4096,
                table_side: 48,
                theta: 1e4,
                deepstack: vec![8, 16, 24],
            },
            image_token: 151_655,
            end_tokens: vec![151_645, 151_643],
        }
    }

    /// A toy of the same make.
    pub fn tiny() -> Self {
        Self {
            text: DecoderConfig {
                vocab: 320,
                hidden: 32,
                intermediate: 64,
                heads: 2,
                kv_heads: 1,
                layers: vec![LayerKind::Full; 2],
                ..text(16, [4, 2, 2], 1e4)
            },
            vision: VisionConfig {
                depth: 2,
                hidden: 32,
                intermediate: 64,
                heads: 2,
                activation: Activation::GeluTanh,
                channels: 3,
                patch: 16,
                merge: 2,
                frames: 2,
                out: 32,
                table_side: 4,
                theta: 1e4,
                deepstack: vec![0],
            },
            image_token: 0,
            end_tokens: Vec::new(),
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        self.text.check(FILE)?;
        let vision = &self.vision;
        let rule = |holds: bool, reason: &str| if holds { Ok(()) } else { Err(wrong(reason)) };
        rule(
            ![
                vision.depth,
                vision.hidden,
                vision.heads,
                vision.patch,
                vision.merge,
                vision.frames,
                vision.table_side,
                vision.intermediate,
            ]
            .contains(&0),
            "a size in `vision_config` is 0",
        )?;
        let small = [vision.patch, vision.merge, vision.frames];
        let sizes = [vision.hidden, vision.heads, vision.intermediate, vision.out];
        rule(
            small.iter().all(|&size| size <= MOST_SMALL)
                && sizes.iter().all(|&size| size <= MOST)
                && vision.depth.max(vision.table_side) <= MOST_LAYERS,
            "a size in `vision_config` is beyond all reason",
        )?;
        rule(
            vision.hidden.is_multiple_of(vision.heads) && vision.head_dim().is_multiple_of(4),
            "the heads of `vision_config` are not a multiple of 4 wide",
        )?;
        rule(
            vision.channels == 3,
            "expected `in_channels` 3 in `vision_config`",
        )?;
        rule(
            vision.out == self.text.hidden,
            "`out_hidden_size` of `vision_config` differs from `hidden_size` of `text_config`",
        )?;
        rule(
            vision.deepstack.is_sorted_by(|a, b| a < b)
                && vision.deepstack.iter().all(|&layer| layer < vision.depth),
            "`deepstack_visual_indexes` does not ascend below `depth`",
        )?;
        rule(
            vision.deepstack.len() <= self.text.layers.len(),
            "`deepstack_visual_indexes` has more entries than the language model has layers",
        )
    }
}

/// What all sizes have in common; sizes are to be filled in.
fn text(head_dim: usize, sections: [usize; 3], theta: f64) -> DecoderConfig {
    let rope = Rope {
        sections: Some(sections),
        ..Rope::plain(theta)
    };
    DecoderConfig {
        vocab: 0,
        hidden: 0,
        intermediate: 0,
        heads: 0,
        kv_heads: 0,
        head_dim,
        activation: Activation::Silu,
        norm: NormStyle::Pre,
        norm_eps: 1e-6,
        qk_norm: true,
        attention_bias: false,
        scale: (head_dim as f64).powf(-0.5),
        embedding_scale: None,
        layers: Vec::new(),
        sliding_rope: rope.clone(),
        rope,
        window: 0,
        tied: false,
        bidirectional_images: false,
    }
}

fn wrong(reason: impl Into<String>) -> LoadError {
    LoadError::Config {
        file: FILE.into(),
        reason: reason.into(),
    }
}
