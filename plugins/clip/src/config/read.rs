//! `config.json`: the hub's for CLIP and SigLIP, the flat ones of OpenAI's and RET-CLIP's code, FLAIR's. The hub's files leave out what
//! has the default of transformers' class; those defaults are here.

use super::{
    Bert, Config, Image, ImagePool, Naming, ResNet, Scaling, Stack, Text, TextPool,
    TextTransformer, Vision,
};
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
        None if has("resnet") && has("bert") => flair(&from(&json)?),
        None if has("vision_layers") && has("text_hidden_size") => ret_clip(&from(&json)?),
        None if has("vision_layers") && has("transformer_layers") => openai(&from(&json)?),
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

/// The image side in OpenAI's words.
#[derive(Deserialize)]
struct Visual {
    embed_dim: usize,
    image_resolution: usize,
    vision_layers: usize,
    vision_width: usize,
    vision_patch_size: usize,
    vision_heads: Option<usize>,
    vision_head_width: Option<usize>,
    vision_mlp: Option<usize>,
    act: Option<String>,
}

impl Visual {
    fn image(&self) -> Result<Image, String> {
        let width = self.vision_width;
        Ok(Image::Transformer(Vision {
            stack: Stack {
                dim: width,
                depth: self.vision_layers,
                heads: match self.vision_heads {
                    Some(heads) => heads,
                    None => width / self.vision_head_width.unwrap_or(64).max(1),
                },
                hidden: self.vision_mlp.unwrap_or(4 * width),
                eps: 1e-5,
                activation: activation(self.act.as_deref().unwrap_or("quick_gelu"))?,
            },
            patch: self.vision_patch_size,
            size: self.image_resolution,
            pool: ImagePool::Class,
        }))
    }
}

#[derive(Deserialize)]
struct OpenAi {
    #[serde(flatten)]
    visual: Visual,
    context_length: usize,
    vocab_size: usize,
    transformer_width: usize,
    transformer_layers: usize,
    transformer_heads: Option<usize>,
    transformer_mlp: Option<usize>,
}

fn openai(file: &OpenAi) -> Result<Config, String> {
    let width = file.transformer_width;
    Ok(Config {
        naming: Naming::OpenAi,
        image: file.visual.image()?,
        text: Text::Transformer(TextTransformer {
            stack: Stack {
                dim: width,
                depth: file.transformer_layers,
                heads: file.transformer_heads.unwrap_or(width / 64),
                hidden: file.transformer_mlp.unwrap_or(4 * width),
                eps: 1e-5,
                activation: activation(file.visual.act.as_deref().unwrap_or("quick_gelu"))?,
            },
            vocab: file.vocab_size,
            context: file.context_length,
            pool: TextPool::Highest,
        }),
        embed_dim: file.visual.embed_dim,
        scaling: Scaling::Exp,
    })
}

#[derive(Deserialize)]
struct RetClip {
    #[serde(flatten)]
    visual: Visual,
    vocab_size: usize,
    text_hidden_size: usize,
    text_num_hidden_layers: usize,
    text_num_attention_heads: usize,
    text_intermediate_size: usize,
    text_max_position_embeddings: usize,
    text_type_vocab_size: usize,
    text_hidden_act: Option<String>,
}

fn ret_clip(file: &RetClip) -> Result<Config, String> {
    Ok(Config {
        naming: Naming::OpenAi,
        image: file.visual.image()?,
        text: Text::BertHeads(Bert {
            stack: Stack {
                dim: file.text_hidden_size,
                depth: file.text_num_hidden_layers,
                heads: file.text_num_attention_heads,
                hidden: file.text_intermediate_size,
                eps: 1e-12,
                activation: activation(file.text_hidden_act.as_deref().unwrap_or("gelu"))?,
            },
            vocab: file.vocab_size,
            places: file.text_max_position_embeddings,
            segments: file.text_type_vocab_size,
        }),
        embed_dim: file.visual.embed_dim,
        scaling: Scaling::Exp,
    })
}

#[derive(Deserialize)]
struct Flair {
    image_size: usize,
    proj_dim: usize,
    resnet: FlairResNet,
    bert: FlairBert,
}

#[derive(Deserialize)]
struct FlairResNet {
    stem: usize,
    planes: [usize; 4],
    blocks: [usize; 4],
}

#[derive(Deserialize)]
struct FlairBert {
    hidden: usize,
    layers: usize,
    heads: usize,
    intermediate: Option<usize>,
    layer_norm_eps: Option<f64>,
    vocab: Option<usize>,
    places: Option<usize>,
}

fn flair(file: &Flair) -> Result<Config, String> {
    let FlairResNet {
        stem,
        planes,
        blocks,
    } = file.resnet;
    let bert = &file.bert;
    Ok(Config {
        naming: Naming::Hub,
        image: Image::ResNet(ResNet {
            stem,
            planes,
            blocks,
            size: file.image_size,
        }),
        text: Text::BertMean(Bert {
            stack: Stack {
                dim: bert.hidden,
                depth: bert.layers,
                heads: bert.heads,
                hidden: bert.intermediate.unwrap_or(4 * bert.hidden),
                eps: bert.layer_norm_eps.unwrap_or(1e-12),
                activation: Activation::Gelu,
            },
            vocab: bert.vocab.unwrap_or(28_996),
            places: bert.places.unwrap_or(512),
            segments: 2,
        }),
        embed_dim: file.proj_dim,
        scaling: Scaling::ClampedExp,
    })
}
