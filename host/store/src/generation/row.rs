//! One generation, its columns, and the rules it keeps. It knows no file.

use crate::{
    answer::Outcome,
    error::{Result, StoreError},
    hash::ContentHash,
    table::{self, Columns, TableSpec, floats, optional, required, texts, uints},
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use std::{collections::BTreeSet, path::Path, sync::Arc};

const NAME: &str = "generations";
/// Version of the generations table.
pub(super) const GENERATIONS_VERSION: u32 = 1;
/// Rows in a group: texts and token runs of some kilobytes each.
const ROWS_PER_GROUP: usize = 4096;

/// What every group of a table holds: its prompts by name, and the token variants that were scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationLayout {
    /// Names of the prompts, each once, in the order of a group's rows.
    pub prompts: Vec<String>,
    /// Texts of the token variants, each once: a column pair each.
    pub variants: Vec<String>,
}

/// A token variant at the first generated position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VariantLogprob {
    /// Its id; none for a text that is not exactly one token.
    pub token: Option<u32>,
    /// Natural logarithm of its probability, finite; none where the model or service did not tell.
    pub logprob: Option<f64>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The text, without special tokens.
    pub text: String,
    /// Why it ended: `end`, `stopped`, `length`, `refused`.
    pub finish: String,
    /// One for each variant of the layout, in order.
    pub scores: Vec<VariantLogprob>,
    /// The rendered prompt: runs of (token id, how often). Empty where a service keeps it to itself.
    pub prompt_tokens: Vec<(u32, u32)>,
    /// Length of the prompt in tokens.
    pub prompt_length: u32,
    /// Generated tokens. Empty where a service keeps them to itself.
    pub new_tokens: Vec<u32>,
    /// How many were generated.
    pub new_length: u32,
}

/// What a generative model said to one prompt about one image.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationRow {
    /// Index in the records.
    pub sample: u32,
    /// Name of the prompt.
    pub prompt: String,
    /// The image's opaque id.
    pub id: String,
    /// Hash of the image file's bytes; none when it could not be read.
    pub content_hash: Option<ContentHash>,
    /// `ok`, `refused`, `image_error` or `model_error`. What an answer means is not the store's to say.
    pub outcome: Outcome,
    /// Kind of failure, a short word; there exactly when `outcome` is an error.
    pub reason: Option<String>,
    /// What the failing part said, or what was odd about the picture, for a person.
    pub message: Option<String>,
    /// What came back; there exactly when `outcome` is no error.
    pub generated: Option<Generated>,
}

const FINISHES: [&str; 4] = ["end", "stopped", "length", "refused"];
const REFUSED: &str = "refused";

impl GenerationLayout {
    /// Checks the layout itself; `file` is only named in errors.
    pub(super) fn check(&self, file: &Path) -> Result<()> {
        let rule = "a layout must have prompts and variants with names of their own";
        for (what, names) in [("prompts", &self.prompts), ("variants", &self.variants)] {
            let unique: BTreeSet<&String> = names.iter().collect();
            if unique.len() != names.len() || names.iter().any(String::is_empty) {
                return Err(StoreError::rule(file, 0, rule, format!("{what} {names:?}")));
            }
        }
        if self.prompts.is_empty() {
            return Err(StoreError::rule(file, 0, rule, "no prompt"));
        }
        Ok(())
    }

    /// The place of a prompt in a group.
    pub(super) fn place(&self, prompt: &str) -> Option<usize> {
        self.prompts.iter().position(|name| name == prompt)
    }

    fn columns(&self) -> impl Iterator<Item = [String; 2]> {
        let name = |what: &str, variant: &str| format!("{what}:{}", variant.escape_debug());
        self.variants
            .iter()
            .map(move |variant| [name("token", variant), name("logprob", variant)])
    }

    pub(super) fn schema(&self) -> SchemaRef {
        use DataType::{Float64, UInt32, Utf8};
        let mut fields = vec![
            required("sample", UInt32),
            required("prompt", Utf8),
            required("id", Utf8),
            optional("content_hash", Utf8),
            required("outcome", Utf8),
            optional("reason", Utf8),
            optional("message", Utf8),
            optional("text", Utf8),
            optional("finish", Utf8),
            optional("prompt_tokens", Utf8),
            optional("prompt_length", UInt32),
            optional("new_tokens", Utf8),
            optional("new_length", UInt32),
        ];
        for [token, logprob] in self.columns() {
            fields.push(optional(&token, UInt32));
            fields.push(optional(&logprob, Float64));
        }
        table::schema(fields)
    }

    pub(super) fn spec(&self) -> TableSpec {
        TableSpec {
            name: NAME,
            version: GENERATIONS_VERSION,
            schema: self.schema(),
            rows_per_group: ROWS_PER_GROUP,
        }
    }

    /// A batch of rows that have been checked.
    pub(super) fn batch(&self, schema: &SchemaRef, rows: &[GenerationRow]) -> RecordBatch {
        let hashes: Vec<_> = rows
            .iter()
            .map(|r| r.content_hash.map(|h| h.to_string()))
            .collect();
        let said = |row: &GenerationRow| row.generated.clone();
        let answers: Vec<Option<Generated>> = rows.iter().map(said).collect();
        let of = |f: fn(&Generated) -> String| -> Vec<Option<String>> {
            answers.iter().map(|a| a.as_ref().map(f)).collect()
        };
        let prompts = of(|a| runs_to_text(&a.prompt_tokens));
        let new = of(|a| tokens_to_text(&a.new_tokens));
        let mut columns: Vec<ArrayRef> = vec![
            uints(rows.iter().map(|r| Some(r.sample))),
            texts(rows.iter().map(|r| Some(r.prompt.as_str()))),
            texts(rows.iter().map(|r| Some(r.id.as_str()))),
            texts(hashes.iter().map(Option::as_deref)),
            texts(rows.iter().map(|r| Some(r.outcome.as_str()))),
            texts(rows.iter().map(|r| r.reason.as_deref())),
            texts(rows.iter().map(|r| r.message.as_deref())),
            texts(answers.iter().map(|a| a.as_ref().map(|a| a.text.as_str()))),
            texts(
                answers
                    .iter()
                    .map(|a| a.as_ref().map(|a| a.finish.as_str())),
            ),
            texts(prompts.iter().map(Option::as_deref)),
            uints(answers.iter().map(|a| a.as_ref().map(|a| a.prompt_length))),
            texts(new.iter().map(Option::as_deref)),
            uints(answers.iter().map(|a| a.as_ref().map(|a| a.new_length))),
        ];
        for at in 0..self.variants.len() {
            let score = |a: &Option<Generated>| a.as_ref().map(|a| a.scores[at]);
            columns.push(uints(answers.iter().map(|a| score(a)?.token)));
            columns.push(floats(answers.iter().map(|a| score(a)?.logprob)));
        }
        RecordBatch::try_new(Arc::clone(schema), columns).expect("columns follow the schema")
    }

    /// Which rule a row breaks, and how.
    pub(super) fn check_row(&self, row: &GenerationRow) -> Result<(), (&'static str, String)> {
        if self.place(&row.prompt).is_none() {
            return Err((
                "`prompt` must be one of the layout's",
                format!("`{}`", row.prompt),
            ));
        }
        if row.id.is_empty() {
            return Err(("`id` must not be empty", "nothing".into()));
        }
        let error = row.outcome.is_error();
        if !error && !matches!(row.outcome, Outcome::Ok | Outcome::Refused) {
            return Err((
                "`outcome` must be one of `ok`, `refused`, `image_error`, `model_error`",
                format!("`{}`", row.outcome.as_str()),
            ));
        }
        let reason = row.reason.as_deref().is_some_and(|r| !r.is_empty());
        if error != reason || error == row.generated.is_some() {
            return Err((
                "an error must have a `reason` and nothing generated, any other row a text and no `reason`",
                format!("`{}` with reason {:?}", row.outcome.as_str(), row.reason),
            ));
        }
        let Some(said) = &row.generated else {
            return Ok(());
        };
        if !FINISHES.contains(&said.finish.as_str())
            || (said.finish == REFUSED) != (row.outcome == Outcome::Refused)
        {
            return Err((
                "`finish` must be one of `end`, `stopped`, `length`, and `refused` exactly when the outcome is",
                format!("`{}` with `{}`", said.finish, row.outcome.as_str()),
            ));
        }
        if said.scores.len() != self.variants.len() {
            return Err((
                "an answer must have a score for each variant",
                format!("{} for {}", said.scores.len(), self.variants.len()),
            ));
        }
        match said
            .scores
            .iter()
            .find_map(|s| s.logprob.filter(|l| !l.is_finite()))
        {
            Some(bad) => Err((
                "a log-probability must be finite or missing",
                bad.to_string(),
            )),
            None => Ok(()),
        }
    }

    /// The rows of a batch, each checked.
    pub(super) fn rows(&self, columns: &Columns<'_>) -> Result<Vec<GenerationRow>> {
        let fault = |i: usize, rule, found: String| {
            StoreError::rule(columns.file, columns.base + i, rule, found)
        };
        let (sample, prompt) = (columns.uints("sample")?, columns.texts("prompt")?);
        let (id, hash) = (columns.texts("id")?, columns.texts("content_hash")?);
        let (outcome, reason) = (columns.texts("outcome")?, columns.texts("reason")?);
        let (message, text) = (columns.texts("message")?, columns.texts("text")?);
        let (finish, runs) = (columns.texts("finish")?, columns.texts("prompt_tokens")?);
        let (prompt_length, new_length) = (
            columns.uints("prompt_length")?,
            columns.uints("new_length")?,
        );
        let new = columns.texts("new_tokens")?;
        let mut scores = Vec::with_capacity(self.variants.len());
        for [token, logprob] in self.columns() {
            scores.push((columns.uints(&token)?, columns.floats(&logprob)?));
        }
        let own = |text: Option<&str>| text.map(str::to_owned);
        let mut rows = Vec::with_capacity(sample.len());
        for i in 0..sample.len() {
            let word = columns.must("outcome", i, outcome[i])?;
            let kind =
                Outcome::parse(word).ok_or_else(|| fault(i, Outcome::RULE, format!("`{word}`")))?;
            let content_hash = hash[i]
                .map(str::parse)
                .transpose()
                .map_err(|_| fault(i, HASH_RULE, format!("{:?}", hash[i])))?;
            let runs_of =
                |text: &str| runs_from_text(text).ok_or_else(|| fault(i, RUNS_RULE, shorten(text)));
            let generated = match (text[i], finish[i]) {
                (Some(text), Some(finish)) => Some(Generated {
                    text: text.into(),
                    finish: finish.into(),
                    scores: scores
                        .iter()
                        .map(|(tokens, logprobs)| VariantLogprob {
                            token: tokens[i],
                            logprob: logprobs[i],
                        })
                        .collect(),
                    prompt_tokens: runs_of(runs[i].unwrap_or_default())?,
                    prompt_length: columns.must("prompt_length", i, prompt_length[i])?,
                    new_tokens: runs_of(new[i].unwrap_or_default())?
                        .into_iter()
                        .map(|(token, _)| token)
                        .collect(),
                    new_length: columns.must("new_length", i, new_length[i])?,
                }),
                (None, None) => None,
                _ => return Err(fault(i, "`text` and `finish` come together", "one".into())),
            };
            let row = GenerationRow {
                sample: columns.must("sample", i, sample[i])?,
                prompt: columns.must("prompt", i, prompt[i])?.into(),
                id: columns.must("id", i, id[i])?.into(),
                content_hash,
                outcome: kind,
                reason: own(reason[i]),
                message: own(message[i]),
                generated,
            };
            self.check_row(&row)
                .map_err(|(rule, found)| fault(i, rule, found))?;
            rows.push(row);
        }
        Ok(rows)
    }
}

const HASH_RULE: &str = "`content_hash` must be 64 lower-case hexadecimal digits";
const RUNS_RULE: &str =
    "token runs must be numbers separated by a space, `id` or `id*count` with a count of 2 or more";

fn shorten(text: &str) -> String {
    format!("`{}`", crate::error::shorten(text, 80))
}

/// `105 2364*3 107`.
fn runs_to_text(runs: &[(u32, u32)]) -> String {
    let words: Vec<String> = runs
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(token, count)| match count {
            1 => token.to_string(),
            _ => format!("{token}*{count}"),
        })
        .collect();
    words.join(" ")
}

fn tokens_to_text(tokens: &[u32]) -> String {
    let words: Vec<String> = tokens.iter().map(u32::to_string).collect();
    words.join(" ")
}

fn runs_from_text(text: &str) -> Option<Vec<(u32, u32)>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(' ')
        .map(|word| match word.split_once('*') {
            None => Some((word.parse().ok()?, 1)),
            Some((token, count)) => {
                let count: u32 = count.parse().ok().filter(|n| *n >= 2)?;
                Some((token.parse().ok()?, count))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_read_back(runs in prop::collection::vec((any::<u32>(), 1u32..500), 0..20)) {
            prop_assert_eq!(runs_from_text(&runs_to_text(&runs)), Some(runs));
        }

        #[test]
        fn no_text_panics(text in "[0-9* -]{0,30}") {
            let _ = runs_from_text(&text);
        }
    }

    #[test]
    fn nonsense_is_no_run() {
        for text in [
            "1*1",
            "1*0",
            "a",
            "1  2",
            " 1",
            "1*",
            "*2",
            "4294967296",
            "-1",
        ] {
            assert_eq!(runs_from_text(text), None, "{text:?}");
        }
    }
}
