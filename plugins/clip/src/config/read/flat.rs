//! The flat files of OpenAI's, RET-CLIP's and FLAIR's code.

use super::activation;
use crate::config::{
    Bert, Config, Image, ImagePool, Naming, ResNet, Scaling, Stack, Text, TextPool,
    TextTransformer, Vision,
};
use focus_nn::Activation;
use serde::Deserialize;

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
pub(super) struct OpenAi {
    #[serde(flatten)]
    visual: Visual,
    context_length: usize,
    vocab_size: usize,
    transformer_width: usize,
    transformer_layers: usize,
    transformer_heads: Option<usize>,
    transformer_mlp: Option<usize>,
}

pub(super) fn openai(file: &OpenAi) -> Result<Config, String> {
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
pub(super) struct RetClip {
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

pub(super) fn ret_clip(file: &RetClip) -> Result<Config, String> {
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
pub(super) struct Flair {
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

pub(super) fn flair(file: &Flair) -> Config {
    let FlairResNet {
        stem,
        planes,
        blocks,
    } = file.resnet;
    let bert = &file.bert;
    Config {
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
    }
}
