//! Texts to ids, by the files published beside a checkpoint and the rules of its family.

use crate::tokens::Tokens;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tokenizers::models::ModelWrapper;
use tokenizers::{TruncationParams, TruncationStrategy};

/// Largest file read, in bytes: the Gemma vocabulary takes some 35 MB.
const MAX_FILE: u64 = 256 << 20;

/// Texts that cannot become ids.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// No file describes the tokenizer.
    #[error("No tokenizer in the weights folder: expected `tokenizer.json`{}", if *vocab { " or `vocab.txt`" } else { "" })]
    Missing {
        /// Whether `vocab.txt` would do.
        vocab: bool,
    },
    /// A file cannot be used.
    #[error("`{file}` cannot be used: {reason}")]
    File {
        /// Its name.
        file: &'static str,
        /// Why.
        reason: String,
    },
    /// The tokenizer knows more ids than the model has rows.
    #[error("The tokenizer does not fit the weights: expected ids below {rows}, found {id}")]
    Beyond {
        /// An id.
        id: u32,
        /// Rows of the token table.
        rows: usize,
    },
    /// No text at all.
    #[error("No texts: expected one or more")]
    Empty,
    /// The tokenizer failed on a text.
    #[error("Text `{text}` cannot be tokenized: {reason}")]
    Text {
        /// The text.
        text: String,
        /// Why.
        reason: String,
    },
}

impl TokenizerError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => Some(
                "The tokenizer's files are published beside the weights, or beside those of the model they were trained from; put them into the folder"
                    .into(),
            ),
            Self::Beyond { .. } => Some("Check that tokenizer and checkpoint belong together".into()),
            _ => None,
        }
    }
}

/// How far a text is filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// To this many ids, whatever the texts.
    To(usize),
    /// To the longest text of the call: where padding counts, texts then change one another's vectors.
    Longest,
    /// Not at all: texts of different lengths are run one by one.
    Alone,
}

/// The rules of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// How far texts are filled up.
    pub padding: Padding,
    /// Longest text in ids, those of beginning and end included; longer ones lose their tail and keep their end.
    pub longest: usize,
    /// The id that fills; `None`: the tokenizer's own padding token.
    pub fill: Option<u32>,
    /// Whether SigLIP's canonical form is made first.
    pub canonical: bool,
    /// Whether filled places are hidden from the others.
    pub hide_padding: bool,
    /// Longest word in characters when the tokenizer is made of a `vocab.txt`; 0: that file will not do.
    pub longest_word: usize,
}

/// A tokenizer under its rules.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    rule: Rule,
    fill: u32,
}

impl Tokenizer {
    /// From a folder's `tokenizer.json` (and `tokenizer_config.json`), or its `vocab.txt`.
    pub fn open(folder: &Path, rule: Rule) -> Result<Self, TokenizerError> {
        let vocab = rule.longest_word > 0;
        let inner = if let Some(text) = read(folder, "tokenizer.json")? {
            parse("tokenizer.json", text.as_bytes())?
        } else if let Some(text) = read(folder, "vocab.txt")?.filter(|_| vocab) {
            let json = word_pieces(&text, rule.longest_word);
            parse("vocab.txt", json.to_string().as_bytes())?
        } else {
            return Err(TokenizerError::Missing { vocab });
        };
        let fill = match rule.fill {
            Some(id) => id,
            None => padding_token(folder, &inner)?,
        };
        Self::new(inner, rule, fill)
    }

    fn new(
        mut inner: tokenizers::Tokenizer,
        rule: Rule,
        fill: u32,
    ) -> Result<Self, TokenizerError> {
        let fault = |reason: String| TokenizerError::File {
            file: "tokenizer.json",
            reason,
        };
        // What a file says of padding and truncation is a leftover of the last call before it was saved.
        inner.with_padding(None);
        if rule.longest < 8 {
            return Err(fault(format!(
                "texts of {} ids hold no words",
                rule.longest
            )));
        }
        inner
            .with_truncation(Some(TruncationParams {
                max_length: rule.longest,
                strategy: TruncationStrategy::LongestFirst,
                ..TruncationParams::default()
            }))
            .map_err(|error| fault(error.to_string()))?;
        Ok(Self { inner, rule, fill })
    }

    /// The rules in force.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Refuse a tokenizer that knows ids beyond a table of `rows`. (One that knows fewer is usual: tables are filled up.)
    pub fn check(&self, rows: usize) -> Result<(), TokenizerError> {
        let vocab = self.inner.get_vocab(true);
        match vocab.values().copied().chain([self.fill]).max() {
            Some(id) if id as usize >= rows => Err(TokenizerError::Beyond { id, rows }),
            _ => Ok(()),
        }
    }

    /// The text that the tokenizer itself is given: SigLIP's canonical form where the family has one.
    ///
    /// SigLIP was trained on lower-case text without ASCII punctuation and with single blanks; its vocabulary is a unigram model.
    /// SigLIP 2 has Gemma's, a byte-pair model, and was trained on lower-case text. The published tokenizer files do some of this, some
    /// of the time; it is the same done twice.
    pub fn canonical(&self, text: &str) -> String {
        if !self.rule.canonical {
            return text.to_owned();
        }
        let lower = text.to_lowercase();
        if !matches!(self.inner.get_model(), ModelWrapper::Unigram(_)) {
            return lower;
        }
        let bare: String = lower
            .chars()
            .filter(|c| !c.is_ascii_punctuation())
            .collect();
        bare.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Ids of each text: without padding, cut to the longest allowed.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.inner
            .encode_fast(self.canonical(text), true)
            .map(|encoding| encoding.get_ids().to_vec())
            .map_err(|error| TokenizerError::Text {
                text: text.to_owned(),
                reason: error.to_string(),
            })
    }

    /// Ids of texts for one call, or for several where texts must not be filled up.
    pub fn tokens(&self, texts: &[&str]) -> Result<Vec<Tokens>, TokenizerError> {
        if texts.is_empty() {
            return Err(TokenizerError::Empty);
        }
        let rows = texts
            .iter()
            .map(|text| self.ids(text))
            .collect::<Result<Vec<_>, _>>()?;
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
        Ok(match self.rule.padding {
            Padding::To(width) => vec![self.pad(&rows, width)],
            Padding::Longest => vec![self.pad(&rows, longest)],
            Padding::Alone => rows
                .chunks(1)
                .map(|row| self.pad(row, row[0].len().max(1)))
                .collect(),
        })
    }

    fn pad(&self, rows: &[Vec<u32>], width: usize) -> Tokens {
        let mut ids = Vec::with_capacity(rows.len() * width);
        let mut attended = Vec::with_capacity(rows.len() * width);
        for row in rows {
            let filled = width - row.len();
            ids.extend(row);
            ids.extend(std::iter::repeat_n(self.fill, filled));
            // RET-CLIP hides every id 0; so does this, since no word has it.
            attended.extend(row.iter().map(|_| true));
            attended.extend(std::iter::repeat_n(false, filled));
        }
        Tokens::new(width, ids, self.rule.hide_padding.then_some(attended))
    }
}

fn parse(file: &'static str, bytes: &[u8]) -> Result<tokenizers::Tokenizer, TokenizerError> {
    tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| TokenizerError::File {
        file,
        reason: error.to_string(),
    })
}

fn read(folder: &Path, file: &'static str) -> Result<Option<String>, TokenizerError> {
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
fn padding_token(folder: &Path, inner: &tokenizers::Tokenizer) -> Result<u32, TokenizerError> {
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
fn word_pieces(list: &str, longest_word: usize) -> Value {
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
