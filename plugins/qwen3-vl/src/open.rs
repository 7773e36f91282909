//! What is read from a folder beside the weights. Knows no tensors.

use crate::config::{self, Config};
use crate::processor::{Processor, ProcessorError};
use crate::prompt::SLOT;
use focus_nn::LoadError;
use focus_nn::chat::{Chat, ChatError};
use std::io::ErrorKind;
use std::path::Path;

/// Largest describing file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// Files that may hold the image processor, best first.
const PROCESSOR_FILES: [&str; 2] = ["preprocessor_config.json", "processor_config.json"];

/// A folder that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Weights, or config.json.
    #[error(transparent)]
    Weights(#[from] LoadError),
    /// Tokenizer or template.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The processor's file.
    #[error(transparent)]
    Processor(#[from] ProcessorError),
    /// A describing file is not there.
    #[error("The weights folder lacks {0}")]
    Missing(String),
}

impl OpenError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Weights(error) => error.hint(),
            Self::Chat(error) => error.hint(),
            Self::Processor(_) => None,
            Self::Missing(_) => {
                Some("It describes the checkpoint and is published beside it".into())
            }
        }
    }
}

/// What describes a checkpoint.
#[derive(Debug)]
pub struct Described {
    /// Numbers.
    pub config: Config,
    /// Pictures to patches.
    pub processor: Processor,
    /// Questions to tokens.
    pub chat: Chat,
    /// Ids that end an answer, ascending.
    pub end_tokens: Vec<u32>,
}

/// Read a folder's describing files.
pub fn describe(folder: &Path) -> Result<Described, OpenError> {
    let text = read(folder, config::FILE)?
        .ok_or_else(|| OpenError::Missing(format!("`{}`", config::FILE)))?;
    let config = Config::parse(&text)?;
    let mut processor = None;
    for file in PROCESSOR_FILES {
        if let Some(text) = read(folder, file)? {
            processor = Some(Processor::parse(file, &text, &config.vision)?);
            break;
        }
    }
    let processor = processor.ok_or_else(|| {
        OpenError::Missing(format!(
            "`{}` or `{}`",
            PROCESSOR_FILES[0], PROCESSOR_FILES[1]
        ))
    })?;
    let chat = Chat::open(folder)?;
    chat.tokenizer().check(config.text.vocab)?;
    let slot = chat.tokenizer().id(SLOT);
    if slot != Some(config.image_token) {
        return Err(LoadError::Config {
            file: config::FILE.into(),
            reason: format!(
                "`image_token_id` is {}, where the tokenizer has {} for `{SLOT}`",
                config.image_token,
                slot.map_or_else(|| "none".into(), |id| id.to_string())
            ),
        }
        .into());
    }
    let end_tokens = end_tokens(folder, &config, &chat)?;
    Ok(Described {
        config,
        processor,
        chat,
        end_tokens,
    })
}

/// Those of `generation_config.json`, else of config.json, else the tokenizer's own.
fn end_tokens(folder: &Path, config: &Config, chat: &Chat) -> Result<Vec<u32>, OpenError> {
    const FILE: &str = "generation_config.json";
    let wrong = |reason: String| LoadError::Config {
        file: FILE.into(),
        reason,
    };
    let mut ids = match read(folder, FILE)? {
        None => Vec::new(),
        Some(text) => {
            let json: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            config::ids(&json["eos_token_id"]).map_err(wrong)?
        }
    };
    if ids.is_empty() {
        ids.clone_from(&config.end_tokens);
    }
    if ids.is_empty() {
        ids.extend(chat.tokenizer().eos());
    }
    if ids.is_empty() {
        return Err(wrong("no token ends an answer: expected `eos_token_id`".into()).into());
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn read(folder: &Path, file: &str) -> Result<Option<String>, OpenError> {
    let path = folder.join(file);
    let fault = |reason: String| LoadError::Config {
        file: file.to_owned(),
        reason,
    };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error.to_string()).into()),
        Ok(data) if data.len() > MAX_FILE => {
            let found = data.len();
            return Err(fault(format!("expected at most {MAX_FILE} bytes, found {found}")).into());
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(&path)
        .map(Some)
        .map_err(|error| fault(error.to_string()).into())
}
