//! What a generative model is shown of a photograph: the oriented full picture, or pixels prepared as its card says. A trait, so that
//! evaluation runs on drawn pictures in tests.

use crate::eval::pixels::{
    FileBytes, FilePixels, ImageFailure, failure, picture_note, read, spec_of,
};
use crate::eval::{Advised, EvalError};
use focus_images::{Decode, FieldSteps, Limits, PixelCache};
use focus_models::FullPicture;
use focus_plugin_abi::v1::message::{OpenedModel, PixelMode};
use focus_store::ContentHash;
use std::path::PathBuf;

/// Key of the pixels in mode `self`: every pixel of the photograph, upright.
const FULL: &str = "full,upright,rgb8";

/// A picture as the model gets it.
#[derive(Debug)]
pub struct Shown {
    /// The picture.
    pub picture: FullPicture,
    /// What is odd about it, for people: a function of the file's bytes and the preparation alone.
    pub note: Option<String>,
}

/// Reads and decodes photographs; used from several threads.
pub trait PictureSource: Sync {
    /// A sample's file.
    fn read(&self, sample: u32) -> Result<FileBytes, ImageFailure>;
    /// What `read` gave, as the model is shown it.
    fn show(&self, bytes: &[u8], hash: ContentHash) -> Result<Shown, ImageFailure>;
}

/// How a model wants its pictures.
#[derive(Debug, Clone, PartialEq)]
pub enum Preparation {
    /// Oriented full pictures; the plugin resizes by rules of its own.
    Full,
    /// Of the card's size.
    Resized(focus_images::PrepareSpec),
}

impl Preparation {
    /// As the opened model's card says, with what the user asks for beside it.
    pub fn of(opened: &OpenedModel, field: FieldSteps, decode: Decode) -> Result<Self, EvalError> {
        let card = &opened.preprocessing;
        let refuse = |what: &str, hint: &str| {
            let message = format!(
                "Model `{}` is shown whole photographs and resizes them itself: {what} does not apply to it",
                opened.model
            );
            Err(EvalError::Request(Advised::new(message, hint)))
        };
        match card.mode {
            PixelMode::Own if !field.is_empty() => {
                refuse("`--field`", "Leave --field out for this model")
            }
            PixelMode::Own if decode != Decode::Exact => refuse(
                "`--decode fast`",
                "Leave --decode out: photographs are decoded in full",
            ),
            PixelMode::Own => Ok(Self::Full),
            mode => match spec_of(card, field, decode).filter(|_| mode == PixelMode::Resized) {
                Some(spec) => Ok(Self::Resized(spec)),
                None => Err(EvalError::Plugin(Advised::plain(format!(
                    "Model `{}` wants pictures that a generator cannot be given: found mode {mode:?}, geometry {:?}",
                    opened.model, card.geometry
                )))),
            },
        }
    }

    /// Key of the pixels.
    pub fn key(&self) -> String {
        match self {
            Self::Full => FULL.into(),
            Self::Resized(spec) => spec.canonical(),
        }
    }
}

/// Photographs of a dataset.
#[derive(Debug)]
pub struct FilePictures {
    /// Path of each record's file, by sample index.
    pub files: Vec<PathBuf>,
    /// How to show them.
    pub preparation: Preparation,
    /// Caps on what is read and decoded.
    pub limits: Limits,
    /// Prepared pixels of earlier runs.
    pub cache: Option<PixelCache>,
}

impl PictureSource for FilePictures {
    fn read(&self, sample: u32) -> Result<FileBytes, ImageFailure> {
        read(&self.files[sample as usize], &self.limits)
    }

    fn show(&self, bytes: &[u8], hash: ContentHash) -> Result<Shown, ImageFailure> {
        match &self.preparation {
            Preparation::Full => {
                let (image, notes) =
                    focus_images::decode(bytes, &self.limits).map_err(|e| failure(&e))?;
                Ok(Shown {
                    picture: FullPicture {
                        width: image.width,
                        height: image.height,
                        rgb: image.pixels.into(),
                    },
                    note: picture_note(&notes),
                })
            }
            Preparation::Resized(spec) => {
                let pixels =
                    FilePixels::prepare_as(bytes, hash, spec, &self.limits, self.cache.as_ref())?;
                Ok(Shown {
                    picture: FullPicture {
                        width: spec.width,
                        height: spec.height,
                        rgb: pixels.rgb,
                    },
                    note: pixels.note,
                })
            }
        }
    }
}
