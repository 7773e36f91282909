//! From a card and a folder to an architecture, its checkpoint and its two sides. Knows no host.

use crate::card::Card;
use crate::config::{Config, Image, Text, TextPool};
use crate::preprocess;
use crate::rule::rule;
use crate::settings::Track;
use crate::similarity::Scale;
use crate::text::{Caption, TextTower};
use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::tower::image::ImageTower;
use crate::tower::words::WordTower;
use focus_nn::{Checkpoint, DType, Device, Layout, LoadError, Weights};
use focus_plugin_sdk::PreprocessingCard;
use std::path::Path;

/// A side that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The weights.
    #[error(transparent)]
    Weights(#[from] LoadError),
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
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
            Self::Tokenizer(error) => error.hint(),
            Self::Missing { .. } => {
                Some("It describes the checkpoint and is published beside it".into())
            }
            Self::Described { .. } => None,
        }
    }
}

/// The card's architecture, or the one that the folder describes.
pub fn config(card: &Card, folder: &Path) -> Result<Config, OpenError> {
    if let Some(config) = &card.config {
        return Ok(config.clone());
    }
    let (file, text) = text(folder, &["config.json"])?.ok_or_else(|| missing(&["config.json"]))?;
    Config::parse(&text).map_err(|reason| OpenError::Described {
        file: file.into(),
        reason,
    })
}

/// How pixels are prepared: by the processor's file in the folder, else by the card. FLAIR has no such file.
pub fn preprocessing(
    card: &Card,
    config: &Config,
    folder: &Path,
) -> Result<PreprocessingCard, OpenError> {
    const FILES: [&str; 2] = ["preprocessor_config.json", "processor_config.json"];
    if matches!(config.image, Image::ResNet(_)) {
        return Ok(preprocess::flair(config.size() as u32));
    }
    let Some((file, text)) = text(folder, &FILES)? else {
        return match card.config {
            Some(_) => Ok(card.preprocessing.clone()),
            None => Err(missing(&FILES)),
        };
    };
    let described = |reason: String| OpenError::Described {
        file: file.into(),
        reason,
    };
    let found = preprocess::parse(&text).map_err(described)?;
    let size = config.size() as u32;
    if (found.width, found.height) != (size, size) {
        return Err(described(format!(
            "expected pictures of {size} x {size}, found {} x {}",
            found.width, found.height
        )));
    }
    Ok(found)
}

/// The card's checkpoint.
pub fn checkpoint(card: &Card, folder: &Path) -> Result<Checkpoint, LoadError> {
    let mut layout = Layout::stripping(card.packing.prefixes);
    if let Some(key) = card.packing.under {
        layout = layout.under(key);
    }
    let mut checkpoint = Checkpoint::open_folder(folder, card.files, &layout)?;
    tidy(&mut checkpoint);
    Ok(checkpoint)
}

/// Take out what PyTorch saves beside weights: counters of batches, and the whole numbers from 0 on that older versions kept.
pub fn tidy(checkpoint: &mut Checkpoint) {
    let counters: Vec<String> = checkpoint
        .names()
        .filter(|name| name.ends_with(".num_batches_tracked") || name.ends_with(".position_ids"))
        .map(str::to_owned)
        .collect();
    for name in counters {
        checkpoint.remove(&name);
    }
}

/// The image side alone; the text side's tensors stay where they are.
pub fn image(
    config: &Config,
    checkpoint: Checkpoint,
    device: &Device,
    dtype: DType,
) -> Result<ImageTower, LoadError> {
    let ignored = [
        config.text_tensors(),
        config.scale_tensors(),
        config.unused_tensors(),
    ]
    .concat();
    focus_nn::weights::load(checkpoint, device, dtype, &ignored, |w| {
        ImageTower::load(config, w)
    })
}

/// The text side alone, with the scale.
pub fn words(
    config: &Config,
    checkpoint: Checkpoint,
    device: &Device,
    dtype: DType,
) -> Result<(WordTower, Scale), LoadError> {
    let ignored = [config.image_tensors(), config.unused_tensors()].concat();
    focus_nn::weights::load(checkpoint, device, dtype, &ignored, |w| both(config, w))
}

fn both(config: &Config, weights: &Weights) -> Result<(WordTower, Scale), LoadError> {
    Ok((
        WordTower::load(config, weights)?,
        Scale::load(config, weights)?,
    ))
}

/// A dual encoder's parts.
#[derive(Debug)]
pub struct Both {
    /// The image side.
    pub image: ImageTower,
    /// The text side.
    pub words: WordTower,
    /// Cosines to logits.
    pub scale: Scale,
}

/// Claim both sides.
pub fn load_both(config: &Config, weights: &Weights) -> Result<Both, LoadError> {
    let image = ImageTower::load(config, weights)?;
    let (words, scale) = both(config, weights)?;
    Ok(Both {
        image,
        words,
        scale,
    })
}

/// Both sides of a checkpoint, in which nothing else may be.
pub fn sides(
    config: &Config,
    checkpoint: Checkpoint,
    device: &Device,
    dtype: DType,
) -> Result<Both, LoadError> {
    focus_nn::weights::load(checkpoint, device, dtype, config.unused_tensors(), |w| {
        load_both(config, w)
    })
}

/// The caption rule and the tokenizer of a folder.
pub fn tokenizer(
    config: &Config,
    folder: &Path,
    track: Track,
) -> Result<(Caption, Tokenizer), OpenError> {
    let (caption, rule) = rule(config, track);
    let tokenizer = Tokenizer::open(folder, rule)?;
    tokenizer.check(config.vocab())?;
    Ok((caption, tokenizer))
}

/// The same for random weights, which come without files.
pub fn drawn_tokenizer(config: &Config, track: Track) -> (Caption, Tokenizer) {
    let (caption, rule) = rule(config, track);
    let last = config.vocab().saturating_sub(1) as u32;
    let end = match &config.text {
        Text::Transformer(text) => match text.pool {
            TextPool::End(id) => id,
            TextPool::Highest | TextPool::Last => last,
        },
        Text::BertHeads(_) | Text::BertMean(_) => last,
    };
    (caption, Tokenizer::drawn(config.vocab(), end, rule))
}

/// The text side of a card from its folder, tokenizer and all.
pub fn text_tower(
    card: &Card,
    folder: &Path,
    track: Track,
    device: &Device,
    dtype: DType,
) -> Result<(TextTower, Scale), OpenError> {
    let config = config(card, folder)?;
    let (caption, tokenizer) = tokenizer(&config, folder, track)?;
    let (tower, scale) = words(&config, checkpoint(card, folder)?, device, dtype)?;
    Ok((TextTower::new(caption, tokenizer, tower), scale))
}

fn missing(names: &[&str]) -> OpenError {
    let wanted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    OpenError::Missing {
        wanted: wanted.join(" or "),
    }
}

/// The first of `names` that the folder has.
fn text<'a>(folder: &Path, names: &[&'a str]) -> Result<Option<(&'a str, String)>, OpenError> {
    for &name in names {
        match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => return Ok(Some((name, text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(OpenError::Described {
                    file: name.into(),
                    reason: error.to_string(),
                });
            }
        }
    }
    Ok(None)
}
