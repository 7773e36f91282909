//! From a folder to its parts: architecture, processor, chat, end tokens, checkpoint. Knows no host and no network.

use crate::config::{self, Config};
use crate::preprocess::Processor;
use crate::settings::Track;
use focus_nn::chat::{Chat, ChatError};
use focus_nn::{Checkpoint, Layout, LoadError};
use rayon::prelude::*;
use serde_json::Value;
use std::path::Path;

/// What the template prints for a picture.
pub const SLOT: &str = "<image>";
/// Ends a turn in Llama 3.
const END_OF_TURN: &str = "<|eot_id|>";
/// Largest describing file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A folder that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The weights.
    #[error(transparent)]
    Weights(#[from] LoadError),
    /// Tokenizer or template.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// A describing file is not there.
    #[error("The weights folder lacks {wanted}")]
    Missing {
        /// Names looked for.
        wanted: String,
    },
    /// A describing file cannot be used.
    #[error("`{file}` cannot be used: {reason}")]
    Described {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
}

impl OpenError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Weights(error) => error.hint(),
            Self::Chat(error) => error.hint(),
            Self::Missing { .. } => {
                Some("It describes the checkpoint and is published beside it".into())
            }
            Self::Described { .. } => {
                Some("Check that the files of the folder belong together".into())
            }
        }
    }
}

/// Everything but the weights.
#[derive(Debug)]
pub struct Parts {
    /// The architecture.
    pub config: Config,
    /// How pictures become tiles.
    pub processor: Processor,
    /// Tokenizer and template.
    pub chat: Chat,
    /// Ids that end an answer, ascending.
    pub end_tokens: Vec<u32>,
}

/// Read a model's folder.
pub fn parts(folder: &Path, track: Track) -> Result<Parts, OpenError> {
    let text = need(folder, &[config::FILE])?;
    let config = Config::parse(&text.1).map_err(|reason| described(config::FILE, reason))?;
    let processor = processor(folder, &config)?;
    let chat = Chat::open(folder)?;
    let tokenizer = chat.tokenizer();
    tokenizer.check(config.text.vocab)?;
    if tokenizer.id(SLOT) != Some(config.image_token) {
        return Err(described(
            config::FILE,
            format!(
                "expected `image_token_index` {}, the id of `{SLOT}`, found {}",
                tokenizer
                    .id(SLOT)
                    .map_or_else(|| "none".into(), |id| id.to_string()),
                config.image_token
            ),
        ));
    }
    let mut end_tokens = generation(folder)?;
    if end_tokens.is_empty() {
        end_tokens.clone_from(&config.end_tokens);
    }
    if track == Track::Corrected {
        // A model that goes on past its turn answers for the user, too.
        end_tokens.extend(tokenizer.eos());
        end_tokens.extend(tokenizer.id(END_OF_TURN));
    }
    end_tokens.sort_unstable();
    end_tokens.dedup();
    if end_tokens.is_empty() {
        return Err(described(
            config::FILE,
            "expected `eos_token_id` in `text_config` or `generation_config.json`, found none"
                .into(),
        ));
    }
    Ok(Parts {
        config,
        processor,
        chat,
        end_tokens,
    })
}

/// The weights, less what older versions saved beside them: numbers from 0 on, and frequencies.
pub fn checkpoint(folder: &Path) -> Result<Checkpoint, LoadError> {
    let mut checkpoint = Checkpoint::open_folder(folder, &[], &Layout::default())?;
    let idle: Vec<String> = checkpoint
        .names()
        .filter(|name| name.ends_with(".position_ids") || name.ends_with(".rotary_emb.inv_freq"))
        .map(str::to_owned)
        .collect();
    for name in idle {
        checkpoint.remove(&name);
    }
    Ok(checkpoint)
}

/// Digest of the tensors themselves, `blake3:hex`: an index of shards says nothing of what is in them.
pub fn digest(checkpoint: &Checkpoint) -> String {
    let names: Vec<&str> = checkpoint.names().collect();
    let parts: Vec<blake3::Hash> = names
        .par_iter()
        .map(|name| {
            let tensor = checkpoint.get(name).expect("named by the checkpoint");
            let mut hasher = blake3::Hasher::new();
            hasher.update(format!("{name} {:?} {:?}", tensor.kind(), tensor.shape()).as_bytes());
            hasher.update(&tensor.bytes());
            hasher.finalize()
        })
        .collect();
    let mut all = blake3::Hasher::new();
    for part in parts {
        all.update(part.as_bytes());
    }
    format!("blake3:{}", all.finalize().to_hex())
}

/// The processor's file in either spelling, held against the architecture: image tokens are counted by one and made by the other.
fn processor(folder: &Path, config: &Config) -> Result<Processor, OpenError> {
    const OLD: &str = "preprocessor_config.json";
    const NEW: &str = "processor_config.json";
    let (file, text) = need(folder, &[OLD, NEW])?;
    let processor = Processor::parse(&text).map_err(|reason| described(file, reason))?;
    let size = config.vision.size as u32;
    if processor.side != size {
        return Err(described(
            file,
            format!("expected `size` {size}, found {}", processor.side),
        ));
    }
    if processor.pinpoints != config.pinpoints {
        return Err(described(
            file,
            "expected `image_grid_pinpoints` as in `config.json`, found others".into(),
        ));
    }
    if let Some(text) = read(folder, NEW)? {
        let json = json(NEW, &text)?;
        let patch = json["patch_size"].as_u64();
        if patch.is_some_and(|patch| patch != config.vision.patch as u64) {
            return Err(described(
                NEW,
                format!(
                    "expected `patch_size` {}, found {}",
                    config.vision.patch, json["patch_size"]
                ),
            ));
        }
        let strategy = json["vision_feature_select_strategy"].as_str();
        if strategy.is_some_and(|strategy| strategy != "default") {
            return Err(described(
                NEW,
                format!(
                    "expected `vision_feature_select_strategy` `default`, found {}",
                    json["vision_feature_select_strategy"]
                ),
            ));
        }
    }
    Ok(processor)
}

/// End tokens of `generation_config.json`; none where there is no such file.
fn generation(folder: &Path) -> Result<Vec<u32>, OpenError> {
    const FILE: &str = "generation_config.json";
    let Some(text) = read(folder, FILE)? else {
        return Ok(Vec::new());
    };
    let json = json(FILE, &text)?;
    config::ids(json.get("eos_token_id")).map_err(|reason| described(FILE, reason))
}

fn json(file: &str, text: &str) -> Result<Value, OpenError> {
    serde_json::from_str(text).map_err(|e| described(file, format!("it is not JSON: {e}")))
}

fn described(file: &str, reason: String) -> OpenError {
    OpenError::Described {
        file: file.into(),
        reason,
    }
}

/// The first of `names` that the folder has.
fn need<'a>(folder: &Path, names: &[&'a str]) -> Result<(&'a str, String), OpenError> {
    for &name in names {
        if let Some(text) = read(folder, name)? {
            return Ok((name, text));
        }
    }
    let wanted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Err(OpenError::Missing {
        wanted: wanted.join(" or "),
    })
}

fn read(folder: &Path, name: &str) -> Result<Option<String>, OpenError> {
    let path = folder.join(name);
    let fault = |error: std::io::Error| described(name, error.to_string());
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error)),
        Ok(data) if data.len() > MAX_FILE => {
            return Err(described(
                name,
                format!("expected at most {MAX_FILE} bytes, found {}", data.len()),
            ));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(fault)
}
