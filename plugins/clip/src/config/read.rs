//! `config.json`: the hub's for CLIP and SigLIP, the flat ones of OpenAI's and RET-CLIP's code, FLAIR's. The hub's files leave out what
//! has the default of transformers' class; those defaults are here.

mod flat;

use super::{Config, Image, Stack, Text, TextPool, TextTransformer, Vision};
use focus_nn::Activation;
use serde::Deserialize;
use serde_json::Value;

pub(super) fn parse(text: &str) -> Result<Config, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let has = |key: &str| json.get(key).is_some();
    match json.get("model_type").and_then(Value::as_str) {
        Some("clip") => clip(&from(&json)?),
        Some("siglip") => siglip(&from(&json)?),
        Some(other) => Err(format!("expected `model_type` `clip` or `siglip`, found `{other}`")),
        None if has("resnet") && has("bert") => Ok(flat::flair(&from(&json)?)),
        None if has("vision_layers") && has("text_hidden_size") => flat::ret_clip(&from(&json)?),
        None if has("vision_layers") && has("transformer_layers") => flat::openai(&from(&json)?),
        None => Err("expected `model_type`, or the words of OpenAI's, RET-CLIP's or FLAIR's files, found neither".into()),
    }
}

fn from<T: serde::de::DeserializeOwned>(json: &Value) -> Result<T, String> {
    serde_json::from_value(json.clone()).map_err(|error| error.to_string())
}

fn activation(name: &str) -> Result<Activation, String> {
    Activation::from_name(name).ok_or_else(|| format!("`hidden_act` `{name}` is not known"))
}

#[derive(Deserialize)]
struct Hub {
    projection_dim: Option<usize>,
    #[serde(default)]
    vision_config: Side,
    #[serde(default)]
    text_config: Side,
}

#[derive(Deserialize, Default)]
struct Side {
    hidden_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    intermediate_size: Option<usize>,
    layer_norm_eps: Option<f64>,
    hidden_act: Option<String>,
    image_size: Option<usize>,
    patch_size: Option<usize>,
    num_channels: Option<usize>,
    vision_use_head: Option<bool>,
    vocab_size: Option<usize>,
    max_position_embeddings: Option<usize>,
    eos_token_id: Option<u32>,
    projection_size: Option<usize>,
}

impl Side {
    /// What is not said is as in `default`.
    fn stack(&self, default: &Stack) -> Result<Stack, String> {
        Ok(Stack {
            dim: self.hidden_size.unwrap_or(default.dim),
            depth: self.num_hidden_layers.unwrap_or(default.depth),
            heads: self.num_attention_heads.unwrap_or(default.heads),
            hidden: self.intermediate_size.unwrap_or(default.hidden),
            eps: self.layer_norm_eps.unwrap_or(default.eps),
            activation: match &self.hidden_act {
                Some(name) => activation(name)?,
                None => default.activation,
            },
        })
    }

    fn vision(&self, default: &Vision) -> Result<Vision, String> {
        if self.num_channels.unwrap_or(3) != 3 {
            return Err(format!(
                "expected 3 channels, found {:?}",
                self.num_channels
            ));
        }
        Ok(Vision {
            stack: self.stack(&default.stack)?,
            patch: self.patch_size.unwrap_or(default.patch),
            size: self.image_size.unwrap_or(default.size),
            pool: default.pool,
        })
    }

    fn text(&self, default: &TextTransformer, pool: TextPool) -> Result<TextTransformer, String> {
        Ok(TextTransformer {
            stack: self.stack(&default.stack)?,
            vocab: self.vocab_size.unwrap_or(default.vocab),
            context: self.max_position_embeddings.unwrap_or(default.context),
            pool,
        })
    }
}

/// The sides of a known architecture, to take defaults from.
fn sides(config: Config) -> (Vision, TextTransformer) {
    match (config.image, config.text) {
        (Image::Transformer(vision), Text::Transformer(text)) => (vision, text),
        _ => unreachable!("asked of architectures of two transformers only"),
    }
}

fn clip(hub: &Hub) -> Result<Config, String> {
    let (vision, text) = sides(Config::clip_base_32());
    // Files written before the end token was named have 2 there; the token's id is then the highest of all.
    let pool = match hub.text_config.eos_token_id {
        Some(2) => TextPool::Highest,
        id => TextPool::End(id.unwrap_or(49_407)),
    };
    Ok(Config {
        image: Image::Transformer(hub.vision_config.vision(&vision)?),
        text: Text::Transformer(hub.text_config.text(&text, pool)?),
        embed_dim: hub.projection_dim.unwrap_or(512),
        ..Config::clip_base_32()
    })
}

fn siglip(hub: &Hub) -> Result<Config, String> {
    let (vision, text) = sides(Config::siglip2_base_224());
    let text = TextTransformer {
        vocab: 32_000,
        ..text
    };
    if hub.vision_config.vision_use_head == Some(false) {
        return Err(
            "`vision_use_head` false: a model without its pooling is no dual encoder".into(),
        );
    }
    let vision = hub.vision_config.vision(&vision)?;
    let text = hub.text_config.text(&text, TextPool::Last)?;
    let embed_dim = hub.text_config.projection_size.unwrap_or(text.stack.dim);
    if embed_dim != vision.stack.dim {
        return Err(format!(
            "the two sides differ: image vectors of {}, text vectors of {embed_dim}",
            vision.stack.dim
        ));
    }
    Ok(Config {
        image: Image::Transformer(vision),
        text: Text::Transformer(text),
        embed_dim,
        ..Config::siglip2_base_224()
    })
}
