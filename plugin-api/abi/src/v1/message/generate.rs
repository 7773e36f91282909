//! `generator.generate`: pictures and prompts to text and first-token scores.
//!
//! One call holds groups; a group is the unit of failure and of sharing: its prompts see the same pictures, so a model computes the
//! vision tower and the common beginning of the prompts once. Results do not depend on which groups share a call, within the
//! tolerance that the model's number type allows.

use serde::{Deserialize, Serialize};

/// Header of `generator.generate`. Arrays beside it: one, `Binary`, a row for each of `images`: u8 RGB, row-major, no padding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateRequest {
    /// Sizes of the pictures in the array, in its order. Mode `resized`: all of the card's size; mode `self`: the oriented full pictures.
    pub images: Vec<ImageSize>,
    /// The groups: at most the model's batch size.
    pub groups: Vec<PromptGroup>,
    /// Name of an attached adapter; `None`: the base model.
    #[serde(default)]
    pub adapter: Option<String>,
    /// Token variants whose probability as the first generated token is wanted, as text: `yes`, ` yes`, `\nyes`. The distribution is
    /// over the full vocabulary, at temperature 1, before any sampling rule.
    #[serde(default)]
    pub score: Vec<String>,
    /// Most tokens to generate, greedily. 0: only the first token's distribution is wanted.
    pub max_new_tokens: u32,
    /// When to stop before that, beside the model's own end tokens.
    #[serde(default)]
    pub stop: StopRule,
}

/// Size of a picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSize {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

/// Pictures, and the questions about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptGroup {
    /// Indices into `images`, in the order the chat template shall see them.
    pub images: Vec<u32>,
    /// Texts of the user's turn, each a conversation of its own: the pictures, then the text.
    pub prompts: Vec<String>,
}

/// When a generation may stop early.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StopRule {
    /// Only at the model's end tokens.
    #[default]
    End,
    /// As soon as the text holds one of the words standing alone, whatever its case, and what follows shows that it stands alone.
    FirstWord {
        /// Lower-case words.
        words: Vec<String>,
    },
}

/// Header of the reply. No arrays beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateReply {
    /// One for each group of the request, in order.
    pub groups: Vec<GroupReply>,
}

/// What became of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReply {
    /// One for each prompt, in order; empty when the group failed.
    #[serde(default)]
    pub answers: Vec<GeneratedAnswer>,
    /// Why the group failed; others of the call are not touched by it.
    #[serde(default)]
    pub error: Option<GroupError>,
    /// Where the time went. Never part of a result.
    #[serde(default)]
    pub timings: Timings,
}

/// A group that failed: numbers of `ErrorKind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupError {
    /// Kind, as its number.
    pub kind: u32,
    /// What went wrong.
    pub message: String,
    /// Advice.
    #[serde(default)]
    pub hint: Option<String>,
}

/// Milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Vision tower and projector.
    pub vision: f64,
    /// Prompts up to the first token's distribution.
    pub prefill: f64,
    /// Everything after.
    pub decode: f64,
}

/// An answer to one prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratedAnswer {
    /// What was generated, without special tokens; empty when nothing was asked for.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// One for each text of `score`, in order.
    #[serde(default)]
    pub scores: Vec<VariantScore>,
    /// The rendered prompt as the network saw it, image tokens expanded: runs of (token id, how often). Empty where a service keeps
    /// that to itself.
    #[serde(default)]
    pub prompt_tokens: Vec<(u32, u32)>,
    /// Length of the prompt in tokens, image tokens too.
    pub prompt_length: u32,
    /// Ids of the generated tokens. Empty where a service keeps them to itself.
    #[serde(default)]
    pub new_tokens: Vec<u32>,
    /// How many were generated.
    pub new_length: u32,
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// An end token.
    End,
    /// The stop rule.
    Stopped,
    /// `max_new_tokens` were generated (0 too).
    Length,
    /// The model or the service declined to answer.
    Refused,
}

/// A token variant at the first generated position.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VariantScore {
    /// Its id; `None`: the text is not exactly one token of the model's, and does not count.
    pub token: Option<u32>,
    /// Natural logarithm of its probability; `None` beside an id: the service did not tell.
    pub logprob: Option<f64>,
}
