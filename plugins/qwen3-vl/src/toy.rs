//! A tokenizer and a template for random weights: bytes, a few words, and the special tokens of the family. Knows no network.

use crate::prompt::SLOT;
use focus_nn::chat::{Chat, ChatError, ChatTemplate, Tokenizer};
use serde_json::{Map, Value, json};

/// Ends a turn.
pub const END: &str = "<|im_end|>";

const SPECIAL: [&str; 6] = [
    "<|endoftext|>",
    "<|im_start|>",
    END,
    "<|vision_start|>",
    "<|vision_end|>",
    SLOT,
];
/// Answers, so that they are single tokens as in large vocabularies.
const WORDS: [&str; 8] = ["yes", "no", "Yes", "No", "Ġyes", "Ġno", "ĠYes", "ĠNo"];

/// The turns of Qwen3-VL, pictures before text as they come.
const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}{% if c.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// The toy's chat.
pub fn chat() -> Result<Chat, ChatError> {
    let mut vocab = Map::new();
    let mut merges = Vec::new();
    let add = |vocab: &mut Map<String, Value>, word: String| {
        let id = vocab.len();
        vocab.entry(word).or_insert(id.into());
    };
    for byte in 0..=u8::MAX {
        add(&mut vocab, letter(byte).to_string());
    }
    // Words grow letter by letter, those behind a blank from the word without it: pairs are joined in the order of this list.
    for word in WORDS {
        let blank = word.strip_prefix('Ġ').map(|_| 'Ġ'.len_utf8());
        let cuts = match blank {
            Some(blank) => vec![blank],
            None => (1..word.len()).collect(),
        };
        for cut in cuts {
            let end = if blank.is_some() { word.len() } else { cut + 1 };
            let pair = json!([word[..cut], word[cut..end]]);
            if !merges.contains(&pair) {
                merges.push(pair);
            }
            add(&mut vocab, word[..end].to_owned());
        }
    }
    let first = vocab.len();
    let added: Vec<Value> = SPECIAL
        .iter()
        .enumerate()
        .map(|(number, word)| {
            json!({
                "id": first + number, "content": word, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": true,
            })
        })
        .collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": merges},
    });
    let config = json!({"eos_token": END, "pad_token": SPECIAL[0]});
    Ok(Chat::new(
        Tokenizer::parse(&tokenizer.to_string(), Some(&config.to_string()))?,
        ChatTemplate::parse("toy template", TEMPLATE)?,
    ))
}

/// How byte-level vocabularies write a byte: those that are seen as they are, the rest from U+0100 on.
fn letter(byte: u8) -> char {
    let seen = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if seen(byte) {
        return char::from(byte);
    }
    let unseen = (0..byte).filter(|&other| !seen(other)).count() as u32;
    char::from_u32(0x100 + unseen).expect("68 letters from U+0100 on are assigned")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_single_tokens_and_texts_come_back() {
        let chat = chat().unwrap();
        let tokenizer = chat.tokenizer();
        let words = ["yes", "no", "Yes", "No", " yes", " no", " Yes", " No"];
        let mut ids: Vec<u32> = words
            .iter()
            .map(|word| tokenizer.single_token(word).unwrap())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), words.len());
        let text = "Ist das ein Glaukom?\nÄ 眼 no";
        assert_eq!(
            tokenizer.decode(&tokenizer.encode(text).unwrap()).unwrap(),
            text
        );
        let question = chat.question(2, text, SLOT).unwrap();
        assert!(
            question
                .iter()
                .all(|&id| (id as usize) < crate::config::Config::tiny().text.vocab)
        );
    }
}
