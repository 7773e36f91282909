//! An architecture in numbers, and `config.json` read into them, in the spellings of transformers 4 and 5. Knows no tensors.

use crate::grid::Size;
use focus_nn::Activation;
use focus_nn::lm::{DecoderConfig, LayerKind, Llama3Scaling, NormStyle, Rope};
use focus_nn::vision::VisionConfig;
use serde::Deserialize;
use serde_json::Value;

/// The file's name.
pub const FILE: &str = "config.json";
/// Most resolutions of a file.
const MOST_PINPOINTS: usize = 256;
/// Longest side of a resolution in pixels.
const MOST_PIXELS: u64 = 1 << 14;

/// LLaVA-NeXT in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The tower.
    pub vision: VisionConfig,
    /// Which hidden state the projector sees, as [`focus_nn::vision::VisionTower::hidden_state`] counts.
    pub layer: isize,
    /// Of the projector.
    pub projector: Activation,
    /// Whether the projector's maps have biases.
    pub projector_bias: bool,
    /// The language model.
    pub text: DecoderConfig,
    /// Resolutions to choose from.
    pub pinpoints: Vec<Size>,
    /// Id that stands for a picture.
    pub image_token: u32,
    /// Ids that `text_config` says end an answer.
    pub end_tokens: Vec<u32>,
}

#[derive(Deserialize)]
struct Stored {
    model_type: String,
    vision_config: Value,
    text_config: StoredText,
    image_grid_pinpoints: Value,
    // Two fields for two spellings: a file may have both, which an alias would refuse.
    image_token_index: Option<u32>,
    image_token_id: Option<u32>,
    vision_feature_layer: Option<Value>,
    vision_feature_select_strategy: Option<String>,
    projector_hidden_act: Option<String>,
    multimodal_projector_bias: Option<bool>,
}

/// What a file leaves out has transformers' default for Llama.
#[derive(Deserialize)]
struct StoredText {
    model_type: Option<String>,
    vocab_size: Option<usize>,
    hidden_size: Option<usize>,
    intermediate_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    hidden_act: Option<String>,
    rms_norm_eps: Option<f64>,
    rope_theta: Option<f64>,
    rope_scaling: Option<StoredRope>,
    rope_parameters: Option<StoredRope>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    tie_word_embeddings: Option<bool>,
    eos_token_id: Option<Value>,
}

#[derive(Deserialize)]
struct StoredRope {
    rope_type: Option<String>,
    /// The older spelling; newer files may have both.
    #[serde(rename = "type")]
    older_type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

impl Config {
    /// Llama 3 8B with CLIP ViT-L/14 at 336 pixels.
    pub fn llama3_8b() -> Self {
        Self {
            vision: VisionConfig::clip_large_336(),
            layer: -2,
            projector: Activation::Gelu,
            projector_bias: true,
            text: llama(
                [128_320, 4096, 14_336, 32],
                [32, 8, 128],
                1e-5,
                Rope::plain(5e5),
            ),
            pinpoints: [(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)]
                .map(|(rows, columns)| Size::new(336 * rows, 336 * columns))
                .to_vec(),
            image_token: 128_256,
            end_tokens: vec![128_001],
        }
    }

    /// The same, small enough to run at once; `vocab` rows of the token table, picture and end by these ids.
    #[must_use]
    pub fn tiny(vocab: usize, image_token: u32, end_token: u32) -> Self {
        let large = Self::llama3_8b();
        Self {
            vision: VisionConfig {
                dim: 32,
                depth: 3,
                heads: 2,
                hidden: 64,
                size: 56,
                ..large.vision
            },
            text: llama([vocab, 32, 64, 2], [2, 1, 16], 1e-5, Rope::plain(5e5)),
            pinpoints: [(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)]
                .map(|(rows, columns)| Size::new(56 * rows, 56 * columns))
                .to_vec(),
            image_token,
            end_tokens: vec![end_token],
            ..large
        }
    }

    /// Read `config.json`. The message says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Stored = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if file.model_type != "llava_next" {
            return Err(format!(
                "expected `model_type` `llava_next`, found `{}`",
                file.model_type
            ));
        }
        let strategy = file.vision_feature_select_strategy.as_deref();
        if strategy.is_some_and(|strategy| strategy != "default") {
            return Err(format!(
                "expected `vision_feature_select_strategy` `default`, found `{}`",
                strategy.unwrap_or_default()
            ));
        }
        let layer = match &file.vision_feature_layer {
            None => -2,
            Some(value) => value
                .as_i64()
                .and_then(|layer| isize::try_from(layer).ok())
                .ok_or_else(|| {
                    format!("expected `vision_feature_layer` of one layer, found {value}")
                })?,
        };
        let vision = VisionConfig::read(&file.vision_config)?;
        let depth = vision.depth as isize;
        if !(-depth - 1..=depth).contains(&layer) {
            return Err(format!(
                "expected `vision_feature_layer` from {} to {depth}, found {layer}",
                -depth - 1
            ));
        }
        let projector = file.projector_hidden_act.as_deref().unwrap_or("gelu");
        let config = Self {
            vision,
            layer,
            projector: activation("projector_hidden_act", projector)?,
            projector_bias: file.multimodal_projector_bias.unwrap_or(true),
            end_tokens: ids(file.text_config.eos_token_id.as_ref())?,
            text: file.text_config.decoder()?,
            pinpoints: sizes("image_grid_pinpoints", &file.image_grid_pinpoints)?,
            image_token: file
                .image_token_index
                .or(file.image_token_id)
                .ok_or("it lacks `image_token_index`")?,
        };
        let side = config.vision.size as u32;
        let odd = config
            .pinpoints
            .iter()
            .find(|size| !(size.height.is_multiple_of(side) && size.width.is_multiple_of(side)));
        match odd {
            None => Ok(config),
            Some(size) => Err(format!(
                "expected `image_grid_pinpoints` in multiples of {side}, found {size}"
            )),
        }
    }
}

impl StoredText {
    fn decoder(&self) -> Result<DecoderConfig, String> {
        let kind = self.model_type.as_deref().unwrap_or("llama");
        if kind != "llama" {
            return Err(format!(
                "expected `text_config.model_type` `llama`, found `{kind}`"
            ));
        }
        if self.mlp_bias == Some(true) {
            return Err("`text_config.mlp_bias` is not supported".into());
        }
        let hidden = self.hidden_size.unwrap_or(4096);
        let heads = self.num_attention_heads.unwrap_or(32);
        let act = self.hidden_act.as_deref().unwrap_or("silu");
        let head_dim = self
            .head_dim
            .or_else(|| hidden.checked_div(heads))
            .unwrap_or(0);
        let sizes = [
            self.vocab_size.unwrap_or(32_000),
            hidden,
            self.intermediate_size.unwrap_or(11_008),
            self.num_hidden_layers.unwrap_or(32),
        ];
        let heads = [heads, self.num_key_value_heads.unwrap_or(heads), head_dim];
        if sizes.iter().chain(&heads).any(|&size| size > 1 << 24) {
            return Err("a size of `text_config` is beyond all reason".into());
        }
        Ok(DecoderConfig {
            activation: activation("text_config.hidden_act", act)?,
            attention_bias: self.attention_bias.unwrap_or(false),
            tied: self.tie_word_embeddings.unwrap_or(false),
            ..llama(
                sizes,
                heads,
                self.rms_norm_eps.unwrap_or(1e-6),
                self.rope()?,
            )
        })
    }

    /// transformers 4: `rope_theta` beside `rope_scaling`; 5: both in `rope_parameters`.
    fn rope(&self) -> Result<Rope, String> {
        let scaling = self.rope_parameters.as_ref().or(self.rope_scaling.as_ref());
        let theta = scaling
            .and_then(|scaling| scaling.rope_theta)
            .or(self.rope_theta)
            .unwrap_or(10_000.0);
        let plain = Rope::plain(theta);
        let Some(scaling) = scaling else {
            return Ok(plain);
        };
        let need = |name: &str, value: Option<f64>| {
            value.ok_or_else(|| format!("the rotary scaling lacks `{name}`"))
        };
        let kind = scaling
            .rope_type
            .as_deref()
            .or(scaling.older_type.as_deref());
        match kind.unwrap_or("default") {
            "default" => Ok(plain),
            "linear" => Ok(Rope {
                factor: need("factor", scaling.factor)?,
                ..plain
            }),
            "llama3" => Ok(Rope {
                llama3: Some(Llama3Scaling {
                    factor: need("factor", scaling.factor)?,
                    low: need("low_freq_factor", scaling.low_freq_factor)?,
                    high: need("high_freq_factor", scaling.high_freq_factor)?,
                    original: need(
                        "original_max_position_embeddings",
                        scaling.original_max_position_embeddings,
                    )?,
                }),
                ..plain
            }),
            other => Err(format!("rotary scaling `{other}` is not supported")),
        }
    }
}

/// A Llama: `sizes` are vocabulary, width, width of the feed-forward, layers; `heads` those of queries, of keys, width of one.
fn llama(sizes: [usize; 4], heads: [usize; 3], eps: f64, rope: Rope) -> DecoderConfig {
    let [vocab, hidden, intermediate, layers] = sizes;
    let [heads, kv_heads, head_dim] = heads;
    DecoderConfig {
        vocab,
        hidden,
        intermediate,
        heads,
        kv_heads,
        head_dim,
        activation: Activation::Silu,
        norm: NormStyle::Pre,
        norm_eps: eps,
        qk_norm: false,
        attention_bias: false,
        scale: (head_dim as f64).powf(-0.5),
        embedding_scale: None,
        layers: vec![LayerKind::Full; layers],
        sliding_rope: rope.clone(),
        rope,
        window: 0,
        tied: false,
        bidirectional_images: false,
    }
}

fn activation(field: &str, name: &str) -> Result<Activation, String> {
    Activation::from_name(name)
        .ok_or_else(|| format!("`{field}`: `{name}` is not a known activation"))
}

/// One id, several, or none.
pub(crate) fn ids(value: Option<&Value>) -> Result<Vec<u32>, String> {
    let wrong = || {
        format!(
            "expected token ids, found {}",
            value.unwrap_or(&Value::Null)
        )
    };
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|value| id(value).ok_or_else(wrong))
            .collect(),
        Some(one) => Ok(vec![id(one).ok_or_else(wrong)?]),
    }
}

/// Pairs of height and width.
pub(crate) fn sizes(field: &str, value: &Value) -> Result<Vec<Size>, String> {
    let side = |value: &Value| {
        value
            .as_u64()
            .filter(|side| (1..=MOST_PIXELS).contains(side))
    };
    let pair = |value: &Value| match value.as_array()?.as_slice() {
        [height, width] => Some(Size::new(side(height)? as u32, side(width)? as u32)),
        _ => None,
    };
    value
        .as_array()
        .filter(|list| (1..=MOST_PINPOINTS).contains(&list.len()))
        .and_then(|list| list.iter().map(pair).collect())
        .ok_or_else(|| format!("expected `{field}` a list of [height, width], found {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hub() -> Value {
        json!({"model_type": "llava_next", "image_token_index": 128_256, "projector_hidden_act": "gelu",
            "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
            "vision_feature_layer": -2, "vision_feature_select_strategy": "default",
            "text_config": {"model_type": "llama", "eos_token_id": 128_001, "intermediate_size": 14_336, "num_key_value_heads": 8,
                "rms_norm_eps": 1e-5, "rope_theta": 5e5, "vocab_size": 128_320},
            "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
                "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}})
    }

    #[test]
    fn what_files_leave_out_is_llama_s() {
        assert_eq!(Config::parse(&hub().to_string()), Ok(Config::llama3_8b()));
        assert_eq!(Config::llama3_8b().text.check(FILE).ok(), Some(()));
    }

    #[test]
    fn both_spellings_of_rotary_positions() {
        let mut newer = hub();
        let text = newer["text_config"].as_object_mut().unwrap();
        text.remove("rope_theta");
        text.insert(
            "rope_parameters".into(),
            json!({"rope_theta": 5e5, "rope_type": "default"}),
        );
        assert_eq!(Config::parse(&newer.to_string()), Ok(Config::llama3_8b()));
        newer["text_config"]["rope_parameters"] = json!({"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192});
        let rope = Config::parse(&newer.to_string()).unwrap().text.rope;
        assert_eq!(rope.llama3.unwrap().original, 8192.0);
        let mut older = hub();
        older["text_config"]["rope_scaling"] = json!({"type": "linear", "factor": 2.0});
        let rope = Config::parse(&older.to_string()).unwrap().text.rope;
        assert_eq!((rope.theta, rope.factor), (5e5, 2.0));
    }

    #[test]
    fn both_spellings_in_one_file() {
        let mut file = hub();
        file["image_token_id"] = json!(128_256);
        file["text_config"]["rope_scaling"] =
            json!({"type": "linear", "rope_type": "linear", "factor": 2.0});
        let config = Config::parse(&file.to_string()).unwrap();
        assert_eq!(
            (config.image_token, config.text.rope.factor),
            (128_256, 2.0)
        );
        // The newer name goes first.
        file["text_config"]["rope_scaling"]["rope_type"] = json!("default");
        let config = Config::parse(&file.to_string()).unwrap();
        assert_eq!(config.text.rope.factor, 1.0);
        let fields = file.as_object_mut().unwrap();
        fields.remove("image_token_index");
        let config = Config::parse(&file.to_string()).unwrap();
        assert_eq!(config.image_token, 128_256);
        file.as_object_mut().unwrap().remove("image_token_id");
        let error = Config::parse(&file.to_string()).unwrap_err();
        assert!(error.contains("`image_token_index`"), "{error}");
    }

    #[test]
    fn what_is_not_this_architecture_is_refused() {
        for (path, value, said) in [
            ("/model_type", json!("llava"), "found `llava`"),
            (
                "/vision_feature_select_strategy",
                json!("full"),
                "found `full`",
            ),
            ("/vision_feature_layer", json!([-2, -5]), "one layer"),
            (
                "/vision_feature_layer",
                json!(25),
                "from -25 to 24, found 25",
            ),
            ("/projector_hidden_act", json!("gelu_odd"), "`gelu_odd`"),
            (
                "/image_grid_pinpoints",
                json!([[336, 600]]),
                "found 336x600",
            ),
            ("/image_grid_pinpoints", json!([]), "[height, width]"),
            (
                "/text_config/model_type",
                json!("mistral"),
                "found `mistral`",
            ),
            ("/text_config/eos_token_id", json!("<eos>"), "token ids"),
            ("/vision_config/model_type", json!("siglip2"), "siglip2"),
        ] {
            let mut file = hub();
            *file.pointer_mut(path).unwrap() = value;
            let error = Config::parse(&file.to_string()).unwrap_err();
            assert!(error.contains(said), "{path}: {error}");
        }
        let mut file = hub();
        file["text_config"]["rope_scaling"] = json!({"rope_type": "yarn"});
        assert!(
            Config::parse(&file.to_string())
                .unwrap_err()
                .contains("`yarn`")
        );
    }
}
