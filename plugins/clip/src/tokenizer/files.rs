//! A tokenizer's files: `tokenizer.json`, the padding token of `tokenizer_config.json`, BERT's `vocab.txt`. Knows no rules.

use super::TokenizerError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Largest file read, in bytes: the Gemma vocabulary takes some 35 MB.
const MAX_FILE: u64 = 256 << 20;

pub(super) fn parse(
    file: &'static str,
    bytes: &[u8],
) -> Result<tokenizers::Tokenizer, TokenizerError> {
    tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| TokenizerError::File {
        file,
        reason: error.to_string(),
    })
}

pub(super) fn read(folder: &Path, file: &'static str) -> Result<Option<String>, TokenizerError> {
    let path = folder.join(file);
    let fault = |reason: String| TokenizerError::File { file, reason };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error.to_string())),
        Ok(data) if data.len() > MAX_FILE => {
            return Err(fault(format!(
                "expected at most {MAX_FILE} bytes, found {}",
                data.len()
            )));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|error| fault(error.to_string()))
}

/// `pad_token` of `tokenizer_config.json`: a word, or an object that holds one.
pub(super) fn padding_token(
    folder: &Path,
    inner: &tokenizers::Tokenizer,
) -> Result<u32, TokenizerError> {
    const FILE: &str = "tokenizer_config.json";
    let fault = |reason: String| TokenizerError::File { file: FILE, reason };
    let text = read(folder, FILE)?.ok_or_else(|| {
        fault("it is not in the weights folder, and says which token fills texts up".into())
    })?;
    let json: Value =
        serde_json::from_str(&text).map_err(|e| fault(format!("it is not JSON: {e}")))?;
    let token = &json["pad_token"];
    let word = token.as_str().or_else(|| token["content"].as_str());
    let word = word.ok_or_else(|| fault("it has no `pad_token`".into()))?;
    inner.token_to_id(word).ok_or_else(|| {
        fault(format!(
            "the tokenizer does not know its `pad_token` `{word}`"
        ))
    })
}

/// BERT's tokenizer from its word list: lower-case, Chinese characters apart, longest pieces first.
pub(super) fn word_pieces(list: &str, longest_word: usize) -> Value {
    let vocab: BTreeMap<&str, usize> = list
        .lines()
        .enumerate()
        .map(|(id, word)| (word, id))
        .collect();
    let special = |word: &str| json!({"id": word, "ids": [vocab.get(word).copied().unwrap_or(0)], "tokens": [word]});
    let place = |word: &str| json!({"SpecialToken": {"id": word, "type_id": 0}});
    let added: Vec<Value> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .into_iter()
        .filter_map(|word| {
            let id = vocab.get(word)?;
            Some(json!({"id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}))
        })
        .collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [place("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, place("[SEP]")],
            "pair": [place("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, place("[SEP]"), {"Sequence": {"id": "B", "type_id": 1}}, place("[SEP]")],
            "special_tokens": {"[CLS]": special("[CLS]"), "[SEP]": special("[SEP]")},
        },
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": longest_word, "vocab": vocab},
    })
}
