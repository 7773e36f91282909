//! One answer, its outcome, and the rules an answer keeps. It knows no file.

use crate::{
    hash::ContentHash,
    table::{self, embedding_type, optional, required, texts, uints},
};
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, SchemaRef};
use std::sync::Arc;

/// How a question to a model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// An answer, complete.
    Ok,
    /// Text came back in which no answer was found.
    Unparseable,
    /// The model declined.
    Refused,
    /// An answer without a score.
    ScoreUnavailable,
    /// The image could not be read.
    ImageError,
    /// The model failed, crashed, hung or gave nonsense on it.
    ModelError,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Unparseable,
        Self::Refused,
        Self::ScoreUnavailable,
        Self::ImageError,
        Self::ModelError,
    ];

    pub(crate) const RULE: &'static str = "`outcome` must be one of `ok`, `unparseable`, `refused`, `score_unavailable`, `image_error`, `model_error`";

    /// Its spelling in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unparseable => "unparseable",
            Self::Refused => "refused",
            Self::ScoreUnavailable => "score_unavailable",
            Self::ImageError => "image_error",
            Self::ModelError => "model_error",
        }
    }

    /// The outcome spelt `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
    }

    /// The image or the model failed, so that there is nothing to score.
    pub fn is_error(self) -> bool {
        matches!(self, Self::ImageError | Self::ModelError)
    }
}

/// What an encoder said about one image.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRow {
    /// Index in the records.
    pub sample: u32,
    /// The image's opaque id.
    pub id: String,
    /// Hash of the image file's bytes; none when it could not be read.
    pub content_hash: Option<ContentHash>,
    /// How it went.
    pub outcome: Outcome,
    /// Kind of failure, a short word (`decode`, `crash`, `timeout`); there exactly when `outcome` is not `ok`.
    pub reason: Option<String>,
    /// What the failing part said, for a person.
    pub message: Option<String>,
    /// The embedding, finite; there exactly when `outcome` is `ok`.
    pub embedding: Option<Vec<f32>>,
}

pub(crate) const RULE_VALUE: &str =
    "an `ok` answer must have an embedding and no `reason`, any other a `reason` and no embedding";
pub(crate) const RULE_FINITE: &str =
    "an embedding must have as many values as the model gives, all finite";

/// Which rule a row breaks, and how.
pub(crate) fn check(
    outcome: Outcome,
    reason: Option<&str>,
    embedding: Option<&[f32]>,
    dim: usize,
) -> Result<(), (&'static str, String)> {
    let ok = outcome == Outcome::Ok;
    if ok != embedding.is_some() || ok == reason.is_some_and(|r| !r.is_empty()) {
        let there = if embedding.is_some() {
            "an embedding"
        } else {
            "no embedding"
        };
        return Err((
            RULE_VALUE,
            format!("`{}` with {there} and reason {reason:?}", outcome.as_str()),
        ));
    }
    let Some(values) = embedding else {
        return Ok(());
    };
    if values.len() != dim {
        return Err((
            RULE_FINITE,
            format!("{} values instead of {dim}", values.len()),
        ));
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(at) => Err((RULE_FINITE, format!("{} at {at}", values[at]))),
        None => Ok(()),
    }
}

/// The columns of an answer.
pub(crate) fn answer_schema(dim: usize) -> SchemaRef {
    table::schema(vec![
        required("sample", DataType::UInt32),
        required("id", DataType::Utf8),
        optional("content_hash", DataType::Utf8),
        required("outcome", DataType::Utf8),
        optional("reason", DataType::Utf8),
        optional("message", DataType::Utf8),
        optional("embedding", embedding_type(dim)),
    ])
}

/// A batch of rows that have been checked.
pub(crate) fn to_batch(schema: &SchemaRef, dim: usize, rows: &[AnswerRow]) -> RecordBatch {
    let hashes: Vec<_> = rows
        .iter()
        .map(|r| r.content_hash.map(|h| h.to_string()))
        .collect();
    let columns: Vec<ArrayRef> = vec![
        uints(rows.iter().map(|r| Some(r.sample))),
        texts(rows.iter().map(|r| Some(r.id.as_str()))),
        texts(hashes.iter().map(Option::as_deref)),
        texts(rows.iter().map(|r| Some(r.outcome.as_str()))),
        texts(rows.iter().map(|r| r.reason.as_deref())),
        texts(rows.iter().map(|r| r.message.as_deref())),
        embeddings(dim, rows.iter().map(|r| r.embedding.as_deref())),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns).expect("columns follow the schema")
}

/// A column of embeddings of `dim` values; rows without one hold zeros under their null.
pub(crate) fn embeddings<'a>(
    dim: usize,
    rows: impl ExactSizeIterator<Item = Option<&'a [f32]>>,
) -> ArrayRef {
    let mut values = Vec::with_capacity(rows.len() * dim);
    let mut valid = Vec::with_capacity(rows.len());
    for row in rows {
        valid.push(row.is_some());
        match row {
            Some(row) => values.extend_from_slice(row),
            None => values.resize(values.len() + dim, 0.0),
        }
    }
    let DataType::FixedSizeList(item, width) = embedding_type(dim) else {
        unreachable!("an embedding is a list")
    };
    let item: Arc<Field> = item;
    let values = Arc::new(Float32Array::from(values));
    Arc::new(FixedSizeListArray::new(
        item,
        width,
        values,
        Some(NullBuffer::from(valid)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
            assert!(Outcome::RULE.contains(&format!("`{}`", outcome.as_str())));
        }
        assert_eq!(Outcome::parse("OK"), None);
    }

    #[test]
    fn value_and_outcome_agree() {
        let good = [1.0, 2.0];
        assert!(check(Outcome::Ok, None, Some(&good), 2).is_ok());
        assert!(check(Outcome::ModelError, Some("crash"), None, 2).is_ok());
        for (outcome, reason, embedding) in [
            (Outcome::Ok, None, None),
            (Outcome::Ok, Some("crash"), Some(&good[..])),
            (Outcome::Ok, None, Some(&good[..1])),
            (Outcome::Ok, None, Some(&[1.0, f32::NAN])),
            (Outcome::Ok, None, Some(&[f32::INFINITY, 0.0])),
            (Outcome::ModelError, Some("crash"), Some(&good[..])),
            (Outcome::ImageError, None, None),
            (Outcome::ImageError, Some(""), None),
        ] {
            assert!(
                check(outcome, reason, embedding, 2).is_err(),
                "{outcome:?} {reason:?} {embedding:?}"
            );
        }
    }
}
