//! From a folder or a seed to a network and its talk. Knows no host.

use crate::config::{self, Config};
use crate::network::Network;
use crate::preprocess;
use crate::talk::Talk;
use crate::toy;
use focus_nn::chat::{Chat, ChatError};
use focus_nn::{Checkpoint, DType, Device, Layout, LoadError, weights};
use focus_plugin_sdk::PreprocessingCard;
use std::path::Path;

/// Largest describing file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A model that cannot be opened.
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
            Self::Described { .. } => None,
        }
    }
}

/// All that a folder holds.
#[derive(Debug)]
pub struct Opened {
    /// Its numbers.
    pub config: Config,
    /// The network.
    pub network: Network,
    /// Tokenizer and template.
    pub talk: Talk,
    /// How pixels are prepared.
    pub preprocessing: PreprocessingCard,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// Open a folder as published, by its own description. Weights stay mapped until they are placed, one tensor after the other.
pub fn folder(folder: &Path, device: &Device, dtype: DType) -> Result<Opened, OpenError> {
    let config = read_config(folder)?;
    let (preprocessing, notes) = read_processor(folder, &config)?;
    let talk = Talk::new(Chat::open(folder)?, &config)?;
    let checkpoint = Checkpoint::open_folder(folder, &[], &Layout::default())?;
    let network = weights::load(checkpoint, device, dtype, &[], |at| {
        Network::load(&config, at)
    })?;
    Ok(Opened {
        config,
        network,
        talk,
        preprocessing,
        notes,
    })
}

/// A toy with weights drawn from a seed.
pub fn random(seed: u64, device: &Device, dtype: DType) -> Result<Opened, OpenError> {
    let config = toy::config();
    let network = weights::random(seed, device, dtype, |at| Network::load(&config, at))?;
    Ok(Opened {
        talk: Talk::new(toy::chat()?, &config)?,
        preprocessing: preprocess::square(config.vision.size as u32),
        network,
        config,
        notes: vec![format!(
            "toy size with random weights, seed {seed}: nothing it says means anything"
        )],
    })
}

fn read_config(folder: &Path) -> Result<Config, OpenError> {
    let described = |file: &str| {
        let file = file.to_owned();
        move |reason: String| OpenError::Described { file, reason }
    };
    let text = text(folder, "config.json")?.ok_or_else(|| OpenError::Missing {
        wanted: "`config.json`".into(),
    })?;
    let mut config = Config::parse(&text).map_err(described("config.json"))?;
    let name = "generation_config.json";
    if let Some(text) = self::text(folder, name)?
        && let Some(ids) = config::end_ids(&text).map_err(described(name))?
    {
        config.end_ids = ids;
    }
    Ok(config)
}

fn read_processor(
    folder: &Path,
    config: &Config,
) -> Result<(PreprocessingCard, Vec<String>), OpenError> {
    const FILES: [&str; 2] = ["preprocessor_config.json", "processor_config.json"];
    let side = config.vision.size as u32;
    for file in FILES {
        let Some(text) = text(folder, file)? else {
            continue;
        };
        let (card, pan) =
            preprocess::parse(&text, side).map_err(|reason| OpenError::Described {
                file: file.into(),
                reason,
            })?;
        let note = "pan and scan is off, though the processor's file asks for it";
        return Ok((card, pan.then(|| note.to_owned()).into_iter().collect()));
    }
    Err(OpenError::Missing {
        wanted: FILES.map(|file| format!("`{file}`")).join(" or "),
    })
}

fn text(folder: &Path, file: &str) -> Result<Option<String>, OpenError> {
    let path = folder.join(file);
    let described = |reason: String| OpenError::Described {
        file: file.into(),
        reason,
    };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(described(error.to_string())),
        Ok(found) if found.len() > MAX_FILE => {
            return Err(described(format!("it has more than {MAX_FILE} bytes")));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(&path)
        .map(Some)
        .map_err(|error| described(error.to_string()))
}
