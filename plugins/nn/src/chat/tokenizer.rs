//! `tokenizer.json` with what `tokenizer_config.json` says of it. Knows no templates.

use super::{ChatError, files};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tokenizers::AddedToken;

const FILE: &str = "tokenizer.json";
const CONFIG: &str = "tokenizer_config.json";

/// Texts to ids and back. Nothing is added to a text: no BOS, no padding.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// The same without a blank put before every text, where the model's own puts one.
    bare: Option<tokenizers::Tokenizer>,
    named: BTreeMap<String, String>,
    unknown: Option<u32>,
    adds_bos: bool,
    digest: String,
}

impl Tokenizer {
    /// From a model's folder. `tokenizer_config.json` may be absent.
    pub fn open(folder: &Path) -> Result<Self, ChatError> {
        let text = files::read(folder, FILE)?.ok_or_else(|| ChatError::Missing {
            wanted: format!("`{FILE}`"),
        })?;
        Self::parse(&text, files::read(folder, CONFIG)?.as_deref())
    }

    /// From the texts of both files.
    pub fn parse(tokenizer: &str, config: Option<&str>) -> Result<Self, ChatError> {
        let fault = |reason: String| ChatError::File {
            file: FILE.into(),
            reason,
        };
        let json = files::json(FILE, tokenizer)?;
        let settings = match config {
            Some(text) => files::json(CONFIG, text)?,
            None => Value::Null,
        };
        let build = |json: &Value| -> Result<tokenizers::Tokenizer, ChatError> {
            let mut inner: tokenizers::Tokenizer =
                serde_json::from_value(json.clone()).map_err(|error| fault(error.to_string()))?;
            // What a file says of padding and truncation is a leftover of the last call before it was saved.
            inner.with_padding(None);
            inner
                .with_truncation(None)
                .map_err(|error| fault(error.to_string()))?;
            add_tokens(&mut inner, &settings)?;
            Ok(inner)
        };
        let inner = build(&json)?;
        let mut plain = json.clone();
        let bare = without_prefix(&mut plain)
            .then(|| build(&plain))
            .transpose()?;
        let named = named_tokens(&settings);
        let id = |role: &str| named.get(role).and_then(|word| inner.token_to_id(word));
        let unknown = json["model"]["unk_token"]
            .as_str()
            .and_then(|word| inner.token_to_id(word))
            .or_else(|| json["model"]["unk_id"].as_u64().map(|id| id as u32))
            .or_else(|| id("unk_token"));
        let first = inner
            .encode("", true)
            .map_err(|error| fault(error.to_string()))?
            .get_ids()
            .first()
            .copied();
        let adds_bos = settings["add_bos_token"]
            .as_bool()
            .unwrap_or_else(|| first.is_some() && first == id("bos_token"));
        Ok(Self {
            bare,
            unknown,
            adds_bos,
            digest: files::digest(&[tokenizer, config.unwrap_or_default()]),
            named,
            inner,
        })
    }

    /// Ids of a text, in which special tokens may be written out.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, ChatError> {
        encode(&self.inner, text)
    }

    /// The text of ids, without special tokens.
    pub fn decode(&self, ids: &[u32]) -> Result<String, ChatError> {
        self.inner
            .decode(ids, true)
            .map_err(|error| ChatError::Text {
                text: format!("{ids:?}"),
                reason: error.to_string(),
            })
    }

    /// The id of a text that is exactly one token where a model continues a conversation: ` yes` is `▁yes` in models that write
    /// blanks so. The blank that some of them put before every text is not put there, or `yes` and ` yes` would change places.
    /// `None` for a text of several tokens, none, or characters that the vocabulary lacks.
    pub fn single_token(&self, text: &str) -> Option<u32> {
        let ids = encode(self.bare.as_ref().unwrap_or(&self.inner), text).ok()?;
        match ids[..] {
            [id] if Some(id) != self.unknown => Some(id),
            _ => None,
        }
    }

    /// The id of a token as the vocabulary writes it.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Tokens with a role, by role: `bos_token`, `eos_token`, `image_token`.
    pub fn named(&self) -> &BTreeMap<String, String> {
        &self.named
    }

    /// Beginning of a text.
    pub fn bos(&self) -> Option<u32> {
        self.role("bos_token")
    }

    /// End of an answer; a model's `generation_config.json` may name more.
    pub fn eos(&self) -> Option<u32> {
        self.role("eos_token")
    }

    /// Fills up.
    pub fn pad(&self) -> Option<u32> {
        self.role("pad_token")
    }

    fn role(&self, role: &str) -> Option<u32> {
        self.inner.token_to_id(self.named.get(role)?)
    }

    /// Whether the model's own code puts a BOS before a text that has none.
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// Refuse a tokenizer that knows ids beyond a table of `rows`. (One that knows fewer is usual: tables are filled up.)
    pub fn check(&self, rows: usize) -> Result<(), ChatError> {
        match self.inner.get_vocab(true).values().copied().max() {
            Some(id) if id as usize >= rows => Err(ChatError::Beyond { id, rows }),
            _ => Ok(()),
        }
    }

    /// `blake3:hex` of both files.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

fn encode(inner: &tokenizers::Tokenizer, text: &str) -> Result<Vec<u32>, ChatError> {
    inner
        .encode_fast(text, false)
        .map(|encoding| encoding.get_ids().to_vec())
        .map_err(|error| ChatError::Text {
            text: text.to_owned(),
            reason: error.to_string(),
        })
}

/// Every `..._token` of the configuration: a word, or an object that holds one.
fn named_tokens(settings: &Value) -> BTreeMap<String, String> {
    let fields = [settings, &settings["extra_special_tokens"]];
    let entries = fields
        .into_iter()
        .filter_map(Value::as_object)
        .flatten()
        .filter(|(key, _)| key.ends_with("_token"));
    entries
        .filter_map(|(key, value)| {
            let word = value.as_str().or_else(|| value["content"].as_str())?;
            Some((key.clone(), word.to_owned()))
        })
        .collect()
}

/// `added_tokens_decoder` of the configuration: tokens that `tokenizer.json` may lack.
fn add_tokens(inner: &mut tokenizers::Tokenizer, settings: &Value) -> Result<(), ChatError> {
    let fault = |reason: String| ChatError::File {
        file: CONFIG.into(),
        reason,
    };
    let Some(added) = settings["added_tokens_decoder"].as_object() else {
        return Ok(());
    };
    let mut tokens: Vec<(u32, &Value)> = Vec::new();
    for (id, token) in added {
        let id = id
            .parse()
            .map_err(|_| fault(format!("`added_tokens_decoder` has an id `{id}`")))?;
        tokens.push((id, token));
    }
    tokens.sort_by_key(|(id, _)| *id);
    for (id, token) in tokens {
        let Some(word) = token["content"].as_str() else {
            return Err(fault(format!("added token {id} has no `content`")));
        };
        if inner.token_to_id(word).is_none() {
            let flag = |name: &str| token[name].as_bool().unwrap_or(false);
            let token = AddedToken::from(word, flag("special"))
                .single_word(flag("single_word"))
                .lstrip(flag("lstrip"))
                .rstrip(flag("rstrip"))
                .normalized(flag("normalized"));
            inner
                .add_tokens([token])
                .map_err(|error| fault(error.to_string()))?;
        }
        let found = inner.token_to_id(word);
        if found != Some(id) {
            return Err(fault(format!(
                "added token `{word}`: expected id {id}, found {}",
                found.map_or_else(|| "none".into(), |id| id.to_string())
            )));
        }
    }
    Ok(())
}

/// Take out whatever puts a blank before every text; whether there was anything.
fn without_prefix(json: &mut Value) -> bool {
    let mut found = false;
    if json["normalizer"]["type"] == "Prepend" {
        json["normalizer"] = Value::Null;
        found = true;
    }
    if let Some(list) = json
        .pointer_mut("/normalizer/normalizers")
        .and_then(Value::as_array_mut)
    {
        let before = list.len();
        list.retain(|part| part["type"] != "Prepend");
        found |= list.len() < before;
    }
    if let Some(list) = json
        .pointer_mut("/pre_tokenizer/pretokenizers")
        .and_then(Value::as_array_mut)
    {
        for part in list {
            found |= unprefix(part);
        }
    } else if let Some(part) = json.get_mut("pre_tokenizer") {
        found |= unprefix(part);
    }
    found
}

fn unprefix(part: &mut Value) -> bool {
    let is = |key: &str, value: Value| part.get(key) == Some(&value);
    match part["type"].as_str() {
        Some("Metaspace") if !is("prepend_scheme", "never".into()) => {
            part["prepend_scheme"] = "never".into();
            part["add_prefix_space"] = false.into();
            true
        }
        Some("ByteLevel") if is("add_prefix_space", true.into()) => {
            part["add_prefix_space"] = false.into();
            true
        }
        _ => false,
    }
}
