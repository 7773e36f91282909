//! A model of no size: numbers, a tokenizer of bytes and a template in the manner of Gemma's, so that every path runs without a download.

use crate::config::Config;
use focus_nn::Activation;
use focus_nn::chat::{Chat, ChatError, ChatTemplate, Tokenizer};
use focus_nn::lm::{DecoderConfig, LayerKind, NormStyle, Rope};
use focus_nn::vision::VisionConfig;
use serde_json::{Value, json};

const SPECIAL: [&str; 8] = [
    "<pad>",
    "<eos>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    "<image_soft_token>",
];
/// Words that are one token, with and without a blank before them.
const WORDS: [&str; 4] = ["yes", "Yes", "no", "No"];
const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m['role'] }}\n{% for c in m['content'] %}\
{% if c['type'] == 'image' %}<start_of_image>{% else %}{{ c['text'] | trim }}{% endif %}{% endfor %}<end_of_turn>\n{% endfor %}\
{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}";

/// Its numbers.
pub fn config() -> Config {
    let (vocab, _) = vocabulary();
    let mut layers = vec![LayerKind::Sliding; 3];
    layers.push(LayerKind::Full);
    Config {
        decoder: DecoderConfig {
            vocab: vocab.len(),
            hidden: 64,
            intermediate: 128,
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            activation: Activation::GeluTanh,
            norm: NormStyle::Sandwich,
            norm_eps: 1e-6,
            qk_norm: true,
            attention_bias: false,
            scale: 0.25,
            embedding_scale: Some(8.0),
            layers,
            rope: Rope {
                factor: 8.0,
                ..Rope::plain(1e6)
            },
            sliding_rope: Rope::plain(1e4),
            window: 64,
            tied: true,
            bidirectional_images: true,
        },
        vision: VisionConfig {
            dim: 48,
            depth: 2,
            heads: 4,
            hidden: 96,
            size: 112,
            ..VisionConfig::siglip_so400m_896()
        },
        image_tokens: 16,
        image_id: 7,
        end_ids: vec![1, 4],
    }
}

/// Its tokenizer and template.
pub fn chat() -> Result<Chat, ChatError> {
    let (vocab, merges) = vocabulary();
    let vocab: serde_json::Map<String, Value> = vocab
        .into_iter()
        .enumerate()
        .map(|(id, token)| (token, Value::from(id)))
        .collect();
    let special = |(id, token): (usize, &&str)| {
        json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true})
    };
    let added: Vec<Value> = SPECIAL.iter().enumerate().map(special).collect();
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": bytes, "post_processor": null, "decoder": bytes,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": merges}
    });
    let named = json!({"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"});
    let tokenizer = Tokenizer::parse(&tokenizer.to_string(), Some(&named.to_string()))?;
    Ok(Chat::new(
        tokenizer,
        ChatTemplate::parse("toy template", TEMPLATE)?,
    ))
}

/// Tokens by id, and the pairs that join to words.
fn vocabulary() -> (Vec<String>, Vec<[String; 2]>) {
    let mut vocab: Vec<String> = SPECIAL.iter().map(|&token| token.to_owned()).collect();
    vocab.extend((0..=255).map(|byte| letter(byte).to_string()));
    let mut merges = Vec::new();
    let blank = letter(b' ').to_string();
    for word in WORDS {
        let mut joined = String::new();
        for next in word.chars().map(String::from) {
            if !joined.is_empty() {
                merges.push([joined.clone(), next.clone()]);
                vocab.push(format!("{joined}{next}"));
            }
            joined.push_str(&next);
        }
        merges.push([blank.clone(), joined.clone()]);
        vocab.push(format!("{blank}{joined}"));
    }
    let mut seen = std::collections::BTreeSet::new();
    vocab.retain(|token| seen.insert(token.clone()));
    (vocab, merges)
}

/// The letter that stands for a byte in byte-level vocabularies: itself where it prints, else one from 256 on.
fn letter(byte: u8) -> char {
    let prints = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if prints(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !prints(other)).count() as u32;
    char::from_u32(256 + before).expect("below the surrogates")
}
