//! Texts to embed: what is asked and what must come back. Knows no generators.

use super::{Plan, header};
use crate::error::wire_error;
use crate::{ModelError, TextRows};
use focus_plugin_abi::v1::message::{TextReply, TextRequest};
use focus_wire::{FailureKind, MAX_FRAME, Matrix, Reply, WireError};

impl Plan {
    /// Header of a call about these texts.
    pub(crate) fn text_header(&self, model: &str, texts: &[String]) -> Result<String, ModelError> {
        let most = MAX_FRAME / 2 / (self.dim as usize * size_of::<f32>());
        if texts.is_empty() || texts.len() > most {
            return Err(ModelError::BadBatch {
                model: model.to_owned(),
                expected: format!("1 to {most} texts"),
                found: format!("{} texts", texts.len()),
            });
        }
        let request = TextRequest {
            texts: texts.to_vec(),
        };
        header(model, &request)
    }

    /// The reply to a call about `count` texts: a finite row for each, of the image embedding's length.
    pub(crate) fn texts(&self, count: usize, reply: Reply) -> Result<TextRows, WireError> {
        let bad = |what: String| wire_error(FailureKind::BadReply, what);
        let wrong = |what: &str, expected: usize, found: usize| {
            bad(format!(
                "Reply to texts has the wrong {what}: expected {expected}, found {found}"
            ))
        };
        let said: TextReply = serde_json::from_str(&reply.header)
            .map_err(|error| bad(format!("Header of the reply cannot be read: {error}")))?;
        let Some(Matrix { rows, dim, values }) = reply.matrix else {
            return Err(bad("Reply to texts has no embeddings".to_owned()));
        };
        if rows as usize != count {
            return Err(wrong("number of rows", count, rows as usize));
        }
        if dim != self.dim {
            return Err(wrong("width", self.dim as usize, dim as usize));
        }
        let dim = dim as usize;
        if values.len() != count * dim {
            return Err(wrong("length", count * dim, values.len()));
        }
        // Both may be left out whole.
        let tokens = match said.tokens.len() {
            0 => vec![Vec::new(); count],
            n if n == count => said.tokens,
            n => return Err(wrong("number of token lists", count, n)),
        };
        let truncated = match said.truncated.len() {
            0 => vec![false; count],
            n if n == count => said.truncated,
            n => return Err(wrong("number of marks for cut texts", count, n)),
        };
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(bad(format!(
                "Embedding of text {} is not finite: found {} at position {} of {dim}",
                at / dim,
                values[at],
                at % dim
            )));
        }
        Ok(TextRows {
            rows: values.chunks(dim).map(<[f32]>::to_vec).collect(),
            tokens,
            truncated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::opened;

    fn plan() -> Plan {
        Plan::new(&opened(1, 2, 1, 1)).expect("fits")
    }

    fn reply(header: &str, rows: u32, dim: u32, values: &[f32]) -> Reply {
        Reply {
            header: header.into(),
            matrix: Some(Matrix {
                rows,
                dim,
                values: values.to_vec(),
            }),
        }
    }

    #[test]
    fn what_may_be_left_out_is_filled_in() {
        let rows = plan().texts(
            2,
            reply(r#"{"rows":2,"dim":2}"#, 2, 2, &[1.0, 2.0, 3.0, 4.0]),
        );
        assert_eq!(
            rows.expect("fits"),
            TextRows {
                rows: vec![vec![1.0, 2.0], vec![3.0, 4.0]],
                tokens: vec![vec![], vec![]],
                truncated: vec![false, false],
            }
        );
        let said = r#"{"rows":1,"dim":2,"tokens":[[5]],"truncated":[true]}"#;
        let rows = plan()
            .texts(1, reply(said, 1, 2, &[1.0, 2.0]))
            .expect("fits");
        assert_eq!((rows.tokens, rows.truncated), (vec![vec![5]], vec![true]));
    }

    #[test]
    fn false_replies_are_refused() {
        let good = r#"{"rows":1,"dim":2}"#;
        let tokens = r#"{"rows":1,"dim":2,"tokens":[[],[]]}"#;
        let marks = r#"{"rows":1,"dim":2,"truncated":[true,true]}"#;
        for (reply, word) in [
            (reply(good, 2, 2, &[0.0; 4]), "rows: expected 1, found 2"),
            (reply(good, 1, 3, &[0.0; 3]), "width: expected 2, found 3"),
            (reply(good, 1, 2, &[0.0; 3]), "length: expected 2, found 3"),
            (reply(tokens, 1, 2, &[0.0; 2]), "token lists"),
            (reply(marks, 1, 2, &[0.0; 2]), "marks"),
            (
                reply(good, 1, 2, &[0.0, f32::NAN]),
                "text 0 is not finite: found NaN at position 1",
            ),
            (reply("[", 1, 2, &[0.0; 2]), "cannot be read"),
        ] {
            let error = plan().texts(1, reply).expect_err(word);
            assert_eq!(error.kind, FailureKind::BadReply);
            assert!(error.message.contains(word), "{error}");
        }
        assert!(plan().text_header("m", &[]).is_err(), "no texts");
    }
}
