//! `dual_encoder.encode_texts`: texts into the space that the model's image embeddings lie in. The image side is `image_encoder.encode`.

use serde::{Deserialize, Serialize};

/// Header of `dual_encoder.encode_texts`. No arrays beside it.
///
/// Texts that exclude one another, a task's classes, come in one call: some published text rules make each text's vector depend on
/// which others are embedded with it. A reply to other calls does not change by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRequest {
    /// The texts, in order.
    pub texts: Vec<String>,
}

/// Header of the reply. Arrays beside it: one, `FixedSizeList<Float32>(dim)`, a row for each text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextReply {
    /// Rows in the array: as many as texts.
    pub rows: u32,
    /// Values in a row: those of an image embedding.
    pub dim: u32,
    /// Token ids of each text as the network saw them, with padding.
    #[serde(default)]
    pub tokens: Vec<Vec<u32>>,
    /// Whether a text was cut to the model's length, one for each.
    #[serde(default)]
    pub truncated: Vec<bool>,
}

/// How a dual encoder itself turns a cosine into a logit: `scale * cosine + bias`. The benchmark uses 100 for every model; the model's
/// own numbers are kept beside it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Similarity {
    /// Factor of the cosine, after `exp` and clamping.
    pub scale: f64,
    /// Added to it.
    pub bias: f64,
    /// Whether the model was trained to read a logit by itself (sigmoid, SigLIP) and not against the others (softmax).
    pub sigmoid: bool,
}
