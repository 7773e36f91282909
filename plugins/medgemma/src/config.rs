//! `config.json` in the spellings of transformers 4 and 5 to an architecture's numbers. What a file leaves out has its class's default.
//! Knows no tensors.

use focus_nn::Activation;
use focus_nn::lm::{DecoderConfig, LayerKind, NormStyle, Rope};
use focus_nn::vision::VisionConfig;
use serde::Deserialize;
use serde_json::Value;

/// A model in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The language model.
    pub decoder: DecoderConfig,
    /// The tower.
    pub vision: VisionConfig,
    /// Tokens of a picture; a square number.
    pub image_tokens: usize,
    /// Id that stands for a row of a picture.
    pub image_id: u32,
    /// Ids that end an answer, as this file has them; `generation_config.json` goes before it.
    pub end_ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Stored {
    model_type: String,
    text_config: Text,
    vision_config: Value,
    mm_tokens_per_image: Option<usize>,
    // Two fields for two spellings: files may have both, which an alias would refuse.
    image_token_id: Option<u32>,
    image_token_index: Option<u32>,
    eos_token_id: Option<Ids>,
    eos_token_index: Option<Ids>,
    tie_word_embeddings: Option<bool>,
}

#[derive(Deserialize)]
struct Text {
    vocab_size: Option<usize>,
    hidden_size: Option<usize>,
    intermediate_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    hidden_activation: Option<String>,
    rms_norm_eps: Option<f64>,
    query_pre_attn_scalar: Option<f64>,
    sliding_window: Option<usize>,
    sliding_window_pattern: Option<usize>,
    /// As transformers 4.53 and later save it, beside the one above.
    #[serde(rename = "_sliding_window_pattern")]
    hidden_pattern: Option<usize>,
    layer_types: Option<Vec<String>>,
    rope_theta: Option<f64>,
    rope_local_base_freq: Option<f64>,
    rope_scaling: Option<Scaling>,
    rope_parameters: Option<Parameters>,
    attention_bias: Option<bool>,
    attn_logit_softcapping: Option<f64>,
    final_logit_softcapping: Option<f64>,
    use_bidirectional_attention: Option<Value>,
    tie_word_embeddings: Option<bool>,
    eos_token_id: Option<Ids>,
}

/// transformers 4's `rope_scaling`, and one entry of transformers 5's `rope_parameters`.
#[derive(Deserialize)]
struct Scaling {
    rope_type: Option<String>,
    /// The older spelling; newer files may have both.
    #[serde(rename = "type")]
    older_type: Option<String>,
    factor: Option<f64>,
    rope_theta: Option<f64>,
}

#[derive(Deserialize)]
struct Parameters {
    full_attention: Scaling,
    sliding_attention: Scaling,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Ids {
    One(u32),
    Many(Vec<u32>),
}

impl Ids {
    fn list(self) -> Vec<u32> {
        match self {
            Self::One(id) => vec![id],
            Self::Many(ids) => ids,
        }
    }
}

impl Config {
    /// Read `config.json`. The message says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Stored = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if file.model_type != "gemma3" {
            return Err(format!(
                "`model_type`: expected `gemma3`, found `{}`",
                file.model_type
            ));
        }
        let vision = VisionConfig::read(&file.vision_config)?;
        let image_tokens = file.mm_tokens_per_image.unwrap_or(256);
        let end_ids = file
            .eos_token_id
            .or(file.eos_token_index)
            .or(file.text_config.eos_token_id);
        let tied = file
            .text_config
            .tie_word_embeddings
            .or(file.tie_word_embeddings)
            .unwrap_or(true);
        let text = Text {
            eos_token_id: None,
            ..file.text_config
        };
        let config = Self {
            decoder: decoder(text, tied)?,
            vision,
            image_tokens,
            image_id: file
                .image_token_id
                .or(file.image_token_index)
                .unwrap_or(262_144),
            end_ids: end_ids.map_or_else(|| vec![1], Ids::list),
        };
        config.check()?;
        Ok(config)
    }

    /// Rows of a picture along a side, and patches that each is the mean of, along a side.
    pub fn pooling(&self) -> (usize, usize) {
        let side = self.image_tokens.isqrt();
        (side, self.vision.side() / side.max(1))
    }

    fn check(&self) -> Result<(), String> {
        self.decoder
            .check("config.json")
            .map_err(|error| error.to_string())?;
        let (side, kernel) = self.pooling();
        if side * side != self.image_tokens || side == 0 || side * kernel != self.vision.side() {
            return Err(format!(
                "`mm_tokens_per_image`: {} x {} patches do not pool to {} tokens",
                self.vision.side(),
                self.vision.side(),
                self.image_tokens
            ));
        }
        Ok(())
    }
}

fn decoder(text: Text, tied: bool) -> Result<DecoderConfig, String> {
    for (name, value) in [
        ("attn_logit_softcapping", text.attn_logit_softcapping),
        ("final_logit_softcapping", text.final_logit_softcapping),
    ] {
        if let Some(cap) = value {
            return Err(format!("`{name}`: expected none, found {cap}"));
        }
    }
    if !matches!(
        text.use_bidirectional_attention,
        None | Some(Value::Null | Value::Bool(false))
    ) {
        return Err("`use_bidirectional_attention`: this is an encoder, not a generator".into());
    }
    let activation = text
        .hidden_activation
        .as_deref()
        .unwrap_or("gelu_pytorch_tanh");
    let activation = Activation::from_name(activation)
        .ok_or_else(|| format!("`hidden_activation`: `{activation}` is not known"))?;
    let depth = text.num_hidden_layers.unwrap_or(26);
    if depth > 1 << 12 {
        return Err(format!("`num_hidden_layers`: {depth} are too many"));
    }
    let layers = kinds(&text, depth)?;
    if layers.len() != depth {
        return Err(format!(
            "`layer_types`: expected {depth}, found {}",
            layers.len()
        ));
    }
    let (rope, sliding_rope) = ropes(&text)?;
    let hidden = text.hidden_size.unwrap_or(2304);
    Ok(DecoderConfig {
        vocab: text.vocab_size.unwrap_or(262_208),
        hidden,
        intermediate: text.intermediate_size.unwrap_or(9216),
        heads: text.num_attention_heads.unwrap_or(8),
        kv_heads: text.num_key_value_heads.unwrap_or(4),
        head_dim: text.head_dim.unwrap_or(256),
        activation,
        norm: NormStyle::Sandwich,
        norm_eps: text.rms_norm_eps.unwrap_or(1e-6),
        qk_norm: true,
        attention_bias: text.attention_bias.unwrap_or(false),
        // Not the head's width: 27B has heads of 128 and a scalar of 168.
        scale: text.query_pre_attn_scalar.unwrap_or(256.0).powf(-0.5),
        embedding_scale: Some((hidden as f64).sqrt()),
        layers,
        rope,
        sliding_rope,
        window: text.sliding_window.unwrap_or(4096),
        tied,
        bidirectional_images: true,
    })
}

/// By name, or every so many a full one.
fn kinds(text: &Text, depth: usize) -> Result<Vec<LayerKind>, String> {
    if let Some(types) = &text.layer_types {
        let kind = |name: &String| match name.as_str() {
            "full_attention" => Ok(LayerKind::Full),
            "sliding_attention" => Ok(LayerKind::Sliding),
            other => Err(format!("`layer_types`: `{other}` is not known")),
        };
        return types.iter().map(kind).collect();
    }
    let pattern = text
        .sliding_window_pattern
        .or(text.hidden_pattern)
        .unwrap_or(6)
        .max(1);
    let kind = |layer: usize| {
        if (layer + 1).is_multiple_of(pattern) {
            LayerKind::Full
        } else {
            LayerKind::Sliding
        }
    };
    Ok((0..depth).map(kind).collect())
}

/// Of full and of sliding layers.
fn ropes(text: &Text) -> Result<(Rope, Rope), String> {
    if let Some(parameters) = &text.rope_parameters {
        return Ok((
            rope(&parameters.full_attention, 1e6)?,
            rope(&parameters.sliding_attention, 1e4)?,
        ));
    }
    let theta = text.rope_theta.unwrap_or(1e6);
    let full = match &text.rope_scaling {
        Some(scaling) => rope(scaling, theta)?,
        None => Rope::plain(theta),
    };
    let sliding = Rope::plain(text.rope_local_base_freq.unwrap_or(1e4));
    Ok((full, sliding))
}

fn rope(stored: &Scaling, theta: f64) -> Result<Rope, String> {
    let factor = match stored.rope_type.as_deref().or(stored.older_type.as_deref()) {
        None | Some("default") => 1.0,
        Some("linear") => stored
            .factor
            .ok_or("`rope_type` linear comes without a `factor`")?,
        Some(other) => return Err(format!("`rope_type`: `{other}` is not known")),
    };
    Ok(Rope {
        factor,
        ..Rope::plain(stored.rope_theta.unwrap_or(theta))
    })
}

/// Ids that end an answer, from `generation_config.json`.
pub fn end_ids(text: &str) -> Result<Option<Vec<u32>>, String> {
    #[derive(Deserialize)]
    struct Generation {
        eos_token_id: Option<Ids>,
    }
    let file: Generation = serde_json::from_str(text).map_err(|e| e.to_string())?;
    Ok(file.eos_token_id.map(Ids::list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As the hub's files leave most fields out.
    fn medgemma_4b() -> Value {
        json!({
            "model_type": "gemma3", "mm_tokens_per_image": 256, "image_token_index": 262144, "eos_token_id": [1, 106],
            "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
            "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
                "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false}
        })
    }

    #[test]
    fn what_hub_files_leave_out_is_their_class_s() {
        let config = Config::parse(&medgemma_4b().to_string()).unwrap();
        let text = &config.decoder;
        assert_eq!(
            (text.vocab, text.heads, text.kv_heads, text.head_dim),
            (262_208, 8, 4, 256)
        );
        assert_eq!(
            (text.scale, text.rope.factor, text.rope.theta),
            (1.0 / 16.0, 8.0, 1e6)
        );
        assert_eq!(
            (text.sliding_rope.factor, text.sliding_rope.theta),
            (1.0, 1e4)
        );
        let full: Vec<usize> = (0..34)
            .filter(|&l| text.layers[l] == LayerKind::Full)
            .collect();
        assert_eq!(full, [5, 11, 17, 23, 29]);
        assert!(text.tied && text.bidirectional_images);
        assert_eq!(config.pooling(), (16, 4));
        assert_eq!(config.end_ids, [1, 106]);
    }

    #[test]
    fn both_spellings_in_one_file() {
        let mut file = medgemma_4b();
        file["image_token_id"] = json!(262_144);
        file["eos_token_index"] = json!([1, 106]);
        let text = &mut file["text_config"];
        text["sliding_window_pattern"] = json!(6);
        text["_sliding_window_pattern"] = json!(6);
        text["rope_scaling"] = json!({"factor": 8.0, "rope_type": "linear", "type": "linear"});
        let plain = Config::parse(&medgemma_4b().to_string());
        assert_eq!(Config::parse(&file.to_string()), plain);
        // The newer name of the scaling goes first.
        file["text_config"]["rope_scaling"]["type"] = json!("default");
        assert_eq!(Config::parse(&file.to_string()), plain);
        let text = file["text_config"].as_object_mut().unwrap();
        text.remove("sliding_window_pattern");
        text.insert("_sliding_window_pattern".into(), json!(2));
        text.insert(
            "rope_scaling".into(),
            json!({"factor": 4.0, "type": "linear"}),
        );
        let config = Config::parse(&file.to_string()).unwrap().decoder;
        assert_eq!(config.layers[1], LayerKind::Full);
        assert_eq!(config.rope.factor, 4.0);
    }

    #[test]
    fn senseless_files_are_refused() {
        for (at, value, said) in [
            ("/model_type", json!("gemma2"), "found `gemma2`"),
            ("/mm_tokens_per_image", json!(250), "do not pool"),
            ("/mm_tokens_per_image", json!(0), "do not pool"),
            (
                "/text_config/rope_scaling/rope_type",
                json!("yarn"),
                "`yarn`",
            ),
            ("/text_config/hidden_size", json!(0), "`hidden_size` is 0"),
            (
                "/text_config/num_hidden_layers",
                json!(99_999_999),
                "too many",
            ),
            ("/text_config/sliding_window", json!(0), "`sliding_window`"),
            ("/vision_config/patch_size", json!(0), "patch_size"),
        ] {
            let mut file = medgemma_4b();
            *file.pointer_mut(at).unwrap() = value;
            let error = Config::parse(&file.to_string()).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        for (field, value, said) in [
            ("num_key_value_heads", json!(3), "multiple"),
            ("final_logit_softcapping", json!(30.0), "expected none"),
            (
                "layer_types",
                json!(["full_attention"]),
                "expected 34, found 1",
            ),
            ("hidden_activation", json!("swoosh"), "`swoosh`"),
            ("use_bidirectional_attention", json!(true), "encoder"),
        ] {
            let mut file = medgemma_4b();
            file["text_config"][field] = value;
            let error = Config::parse(&file.to_string()).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert!(Config::parse("{}").is_err());
        assert!(Config::parse("[").is_err());
    }
}
