//! What a family of generative models brings to the driver. Knows no family.

use crate::lm::{Decoder, Features, Prompt};
use crate::lora::Adaptable;
use focus_plugin_sdk::{Error, Picture};

/// A family of generative models.
pub trait Family: Adaptable {
    /// The language model.
    fn decoder(&self) -> &Decoder;

    /// A picture through preparation, vision tower and projector, in the decoder's type and on its device.
    fn look(&self, picture: &Picture<'_>) -> Result<Features, Error>;

    /// A conversation of one user turn, the pictures and then `text`, up to where the answer begins: tokens with image tokens expanded to as
    /// many as each picture has rows, spans of the pictures, places.
    fn render(&self, text: &str, pictures: &[&Features]) -> Result<Prompt, Error>;

    /// Generated ids as text, without special tokens.
    fn decode(&self, tokens: &[u32]) -> Result<String, Error>;

    /// Ids that end an answer.
    fn end_tokens(&self) -> &[u32];

    /// The id of a text that is exactly one token when encoded by itself, without special tokens.
    fn single_token(&self, text: &str) -> Result<Option<u32>, Error>;

    /// Size in pixels of the picture on which an adapter's effect is proven: one that [`Self::look`] takes.
    fn probe_size(&self) -> (usize, usize);
}
