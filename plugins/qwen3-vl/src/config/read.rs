//! The spellings of `config.json`: transformers 4 (`rope_theta`, `rope_scaling`) and 5 (`rope_parameters`). Knows no rules between numbers.

use super::{Config, VisionConfig, text};
use focus_nn::Activation;
use focus_nn::lm::{DecoderConfig, LayerKind};
use serde::Deserialize;
use serde_json::Value;

/// Bound on layers.
const MOST_LAYERS: usize = 1 << 12;

#[derive(Deserialize)]
struct File {
    model_type: String,
    text_config: Text,
    vision_config: Vision,
    #[serde(default = "image_token")]
    image_token_id: u32,
    tie_word_embeddings: Option<bool>,
    eos_token_id: Option<Value>,
}

fn image_token() -> u32 {
    151_655
}

#[derive(Deserialize)]
#[serde(default)]
struct Text {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: usize,
    head_dim: Option<usize>,
    hidden_act: String,
    rms_norm_eps: f64,
    attention_bias: bool,
    rope_theta: Option<f64>,
    rope_scaling: Option<RopeFile>,
    rope_parameters: Option<RopeFile>,
    tie_word_embeddings: Option<bool>,
    eos_token_id: Option<Value>,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            vocab_size: 151_936,
            hidden_size: 4096,
            intermediate_size: 22_016,
            num_hidden_layers: 32,
            num_attention_heads: 32,
            num_key_value_heads: 32,
            head_dim: Some(128),
            hidden_act: "silu".into(),
            rms_norm_eps: 1e-6,
            attention_bias: false,
            rope_theta: None,
            rope_scaling: None,
            rope_parameters: None,
            tie_word_embeddings: None,
            eos_token_id: None,
        }
    }
}

#[derive(Deserialize)]
struct RopeFile {
    rope_theta: Option<f64>,
    mrope_section: Option<[usize; 3]>,
    mrope_interleaved: Option<bool>,
    rope_type: Option<String>,
    /// The older spelling; newer files may have both, which an alias would refuse.
    #[serde(rename = "type")]
    older_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(default)]
struct Vision {
    depth: usize,
    hidden_size: usize,
    hidden_act: String,
    intermediate_size: usize,
    num_heads: usize,
    in_channels: usize,
    patch_size: usize,
    spatial_merge_size: usize,
    temporal_patch_size: usize,
    out_hidden_size: usize,
    num_position_embeddings: usize,
    deepstack_visual_indexes: Vec<usize>,
    rope_parameters: Option<VisionRope>,
}

#[derive(Deserialize)]
struct VisionRope {
    rope_theta: Option<f64>,
}

impl Default for Vision {
    fn default() -> Self {
        Self {
            depth: 27,
            hidden_size: 1152,
            hidden_act: "gelu_pytorch_tanh".into(),
            intermediate_size: 4304,
            num_heads: 16,
            in_channels: 3,
            patch_size: 16,
            spatial_merge_size: 2,
            temporal_patch_size: 2,
            out_hidden_size: 3584,
            num_position_embeddings: 2304,
            deepstack_visual_indexes: vec![8, 16, 24],
            rope_parameters: None,
        }
    }
}

pub(super) fn parse(json: &str) -> Result<Config, String> {
    let file: File = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if file.model_type != "qwen3_vl" {
        return Err(format!(
            "expected `model_type` `qwen3_vl`, found `{}`",
            file.model_type
        ));
    }
    let end = file.eos_token_id.or(file.text_config.eos_token_id.clone());
    let tied = file
        .tie_word_embeddings
        .or(file.text_config.tie_word_embeddings)
        .unwrap_or(false);
    Ok(Config {
        text: DecoderConfig {
            tied,
            ..decoder(file.text_config)?
        },
        vision: vision(file.vision_config)?,
        image_token: file.image_token_id,
        end_tokens: end.as_ref().map_or(Ok(Vec::new()), ids)?,
    })
}

/// `eos_token_id`: a number, a list, or null.
pub(crate) fn ids(value: &Value) -> Result<Vec<u32>, String> {
    let number = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let all = match value {
        Value::Null => Some(Vec::new()),
        Value::Array(list) => list.iter().map(number).collect(),
        one => number(one).map(|id| vec![id]),
    };
    all.ok_or_else(|| format!("expected `eos_token_id` as an id or a list of them, found {value}"))
}

fn activation(name: &str) -> Result<Activation, String> {
    Activation::from_name(name).ok_or_else(|| format!("`hidden_act` `{name}` is not supported"))
}

fn decoder(file: Text) -> Result<DecoderConfig, String> {
    let spelt = file.rope_parameters.or(file.rope_scaling);
    let mut theta = file.rope_theta;
    let mut sections = None;
    if let Some(rope) = spelt {
        if let Some(kind) = rope
            .rope_type
            .or(rope.older_type)
            .filter(|kind| kind != "default" && kind != "mrope")
        {
            return Err(format!("`rope_type` `{kind}` is not supported"));
        }
        if rope.mrope_interleaved == Some(false) {
            return Err("`mrope_interleaved` false is not supported".into());
        }
        theta = rope.rope_theta.or(theta);
        sections = rope.mrope_section;
    }
    // Before a list of as many is made.
    let depth = file.num_hidden_layers;
    if depth > MOST_LAYERS {
        return Err(format!(
            "`num_hidden_layers`: expected at most {MOST_LAYERS}, found {depth}"
        ));
    }
    let head_dim = file
        .head_dim
        .or_else(|| file.hidden_size.checked_div(file.num_attention_heads))
        .unwrap_or(0);
    let sections = sections.unwrap_or([24, 20, 20]);
    Ok(DecoderConfig {
        vocab: file.vocab_size,
        hidden: file.hidden_size,
        intermediate: file.intermediate_size,
        heads: file.num_attention_heads,
        kv_heads: file.num_key_value_heads,
        activation: activation(&file.hidden_act)?,
        norm_eps: file.rms_norm_eps,
        attention_bias: file.attention_bias,
        layers: vec![LayerKind::Full; depth],
        ..text(head_dim, sections, theta.unwrap_or(5e6))
    })
}

fn vision(file: Vision) -> Result<VisionConfig, String> {
    let places = file.num_position_embeddings;
    let side = places.isqrt();
    if side * side != places {
        return Err(format!(
            "expected a square in `num_position_embeddings`, found {places}"
        ));
    }
    Ok(VisionConfig {
        depth: file.depth,
        hidden: file.hidden_size,
        intermediate: file.intermediate_size,
        heads: file.num_heads,
        activation: activation(&file.hidden_act)?,
        channels: file.in_channels,
        patch: file.patch_size,
        merge: file.spatial_merge_size,
        frames: file.temporal_patch_size,
        out: file.out_hidden_size,
        table_side: side,
        theta: file
            .rope_parameters
            .and_then(|rope| rope.rope_theta)
            .unwrap_or(1e4),
        deepstack: file.deepstack_visual_indexes,
    })
}
