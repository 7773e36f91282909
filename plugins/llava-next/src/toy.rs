//! A tokenizer and a template without files, for random weights: bytes and a few words. Knows no network.

use crate::open::SLOT;
use focus_nn::chat::{Chat, ChatError, ChatTemplate, Tokenizer};
use serde_json::{Map, Value, json};

const SPECIAL: [&str; 5] = [
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    END,
    SLOT,
];
/// Ends an answer.
const END: &str = "<|eot_id|>";
/// Answers, so that they are single tokens as in large vocabularies, with and without a blank before them.
const WORDS: [&str; 4] = ["yes", "no", "Yes", "No"];
/// Rows of the token table: those needed, filled up.
const ROWS: usize = 288;

const TEMPLATE: &str = "{% for m in messages %}{% if loop.first %}<|begin_of_text|>{% endif %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>\n{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}";

/// A chat of toy size, with the rows of its token table and the ids of picture and end.
pub(crate) struct Toy {
    pub(crate) chat: Chat,
    pub(crate) rows: usize,
    pub(crate) image_token: u32,
    pub(crate) end_token: u32,
}

/// The toy.
pub(crate) fn toy() -> Result<Toy, ChatError> {
    let mut vocab = Map::new();
    let mut add = |word: &str| {
        let id = vocab.len();
        vocab.entry(word).or_insert(id.into());
    };
    for byte in 0..=u8::MAX {
        add(&letter(byte).to_string());
    }
    // Words grow letter by letter, and then a blank joins: every step is a pair of what is there.
    let mut merges: Vec<String> = Vec::new();
    for word in WORDS {
        for length in 1..word.len() {
            let merge = format!("{} {}", &word[..length], &word[length..=length]);
            if !merges.contains(&merge) {
                merges.push(merge);
            }
            add(&word[..=length]);
        }
    }
    for word in WORDS {
        merges.push(format!("{} {word}", letter(b' ')));
        add(&format!("{}{word}", letter(b' ')));
    }
    let first = vocab.len();
    let added: Vec<Value> = SPECIAL
        .iter()
        .enumerate()
        .map(|(at, word)| {
            json!({"id": first + at, "content": word, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true})
        })
        .collect();
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": merges},
    });
    let config = json!({"bos_token": SPECIAL[0], "eos_token": END});
    let tokenizer = Tokenizer::parse(&file.to_string(), Some(&config.to_string()))?;
    tokenizer.check(ROWS)?;
    let id = |word: &str| {
        tokenizer.id(word).ok_or_else(|| ChatError::UnknownToken {
            token: word.to_owned(),
        })
    };
    let (image_token, end_token) = (id(SLOT)?, id(END)?);
    Ok(Toy {
        chat: Chat::new(tokenizer, ChatTemplate::parse("built in", TEMPLATE)?),
        rows: ROWS,
        image_token,
        end_token,
    })
}

/// The letter that byte-level tokenizers write a byte as: itself where it can be seen, else one from U+0100 on.
fn letter(byte: u8) -> char {
    let seen = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if seen(byte) {
        return char::from(byte);
    }
    let hidden = (0..byte).filter(|&other| !seen(other)).count() as u32;
    char::from_u32(0x100 + hidden).expect("68 letters from U+0100 on are assigned")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toy_speaks() {
        let toy = toy().unwrap();
        let tokenizer = toy.chat.tokenizer();
        let ids = toy.chat.question(1, "Is it glaucoma? äß\n", SLOT).unwrap();
        assert_eq!(ids.iter().filter(|&&id| id == toy.image_token).count(), 1);
        let text = tokenizer.decode(&ids).unwrap();
        assert!(text.contains("Is it glaucoma? äß\n"), "{text}");
        let mut all = Vec::new();
        for word in ["yes", "no", "Yes", "No", " yes", " no", " Yes", " No"] {
            let id = tokenizer.single_token(word).expect(word);
            assert_eq!(tokenizer.decode(&[id]).unwrap(), word);
            all.push(id);
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
        assert!(ids.iter().all(|&id| (id as usize) < toy.rows));
        assert_ne!(toy.end_token, toy.image_token);
        // As byte-level tokenizers have them.
        assert_eq!((letter(b' '), letter(b'\n'), letter(b'a')), ('Ġ', 'Ċ', 'a'));
    }
}
