//! The vectors of a task's sentences: asked once, task by task, and kept in the run folder beside the images' answers, so that every
//! prediction follows from what is stored.
//!
//! Knows dual encoders and files; no image, no label.

use super::method::TextPair;
use super::method::captions::captions_of;
use super::{Advised, EvalError};
use focus_models::DualEncoder;
use focus_plugin_abi::v1::message::Similarity;
use focus_store::write_atomic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// File name in the run folder.
pub const TEXTS_FILE: &str = "texts.json";
/// What the file's layout is called.
pub const TEXTS_SCHEMA: &str = "focus-texts/1";

/// The texts of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// [`TEXTS_SCHEMA`].
    pub schema: String,
    /// `blake3:hex` over everything below, as compact JSON.
    pub digest: String,
    /// The model's own scale.
    pub similarity: Option<Similarity>,
    /// By task; tasks without sentences are left out.
    pub tasks: BTreeMap<String, TaskTexts>,
}

/// A task's two sentences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskTexts {
    /// Said of a negative photograph.
    pub negative: EmbeddedText,
    /// Said of a positive one.
    pub positive: EmbeddedText,
}

/// A sentence and what the model made of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddedText {
    /// As the model was given it.
    pub text: String,
    /// The model's f32 values, written as f64, in which decimal digits lose nothing.
    pub embedding: Vec<f64>,
    /// Token ids as the network saw them.
    pub tokens: Vec<u32>,
    /// Whether it was cut to the model's length.
    pub truncated: bool,
}

impl TaskTexts {
    /// As a method takes them.
    pub(super) fn pair(&self, similarity: Option<Similarity>) -> TextPair<'_> {
        TextPair {
            negative: &self.negative.embedding,
            positive: &self.positive.embedding,
            similarity,
        }
    }
}

impl Texts {
    /// Ask a model about the sentences of `tasks`: a call for each task, with both of its sentences, since some text rules let texts of
    /// one call move one another.
    pub fn embed(encoder: &mut dyn DualEncoder, tasks: &[String]) -> Result<Self, EvalError> {
        let similarity = encoder.opened().similarity;
        let mut embedded = BTreeMap::new();
        for captions in tasks.iter().filter_map(|task| captions_of(task)) {
            let texts = captions.texts();
            let found = encoder.encode_texts(&texts)?;
            // Checked by whoever spoke with the model; what a model leaves out of its answer about tokens is empty.
            let one = |at: usize| EmbeddedText {
                text: texts[at].clone(),
                embedding: found.rows[at].iter().map(|v| f64::from(*v)).collect(),
                tokens: found.tokens.get(at).cloned().unwrap_or_default(),
                truncated: found.truncated.get(at).copied().unwrap_or_default(),
            };
            let both = TaskTexts {
                negative: one(0),
                positive: one(1),
            };
            embedded.insert(captions.task.to_owned(), both);
        }
        Ok(Self {
            schema: TEXTS_SCHEMA.into(),
            digest: digest(similarity, &embedded),
            similarity,
            tasks: embedded,
        })
    }

    /// Sentences that were cut, by task.
    pub fn truncated(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tasks.iter().flat_map(|(task, both)| {
            [&both.negative, &both.positive]
                .into_iter()
                .filter(|text| text.truncated)
                .map(move |text| (task.as_str(), text.text.as_str()))
        })
    }

    /// Write them into a run folder.
    pub fn write(&self, folder: &Path) -> Result<(), EvalError> {
        let mut text = serde_json::to_string_pretty(self).expect("plain data is JSON");
        text.push('\n');
        Ok(write_atomic(&folder.join(TEXTS_FILE), text.as_bytes())?)
    }

    /// Those of a run folder, checked: vectors of `dim` finite values, and what the digest says. `None` where the run has none.
    pub fn read(folder: &Path, dim: usize) -> Result<Option<Self>, EvalError> {
        let refused = |reason: String| {
            let hint = "It was changed or cut short: evaluate into another run folder (--out)";
            let message = format!(
                "`{TEXTS_FILE}` of `{}` cannot be used: {reason}",
                folder.display()
            );
            EvalError::Input(Advised::new(message, hint))
        };
        let bytes = match std::fs::read(folder.join(TEXTS_FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error.to_string())),
        };
        let found: Self = serde_json::from_slice(&bytes).map_err(|e| refused(e.to_string()))?;
        if found.schema != TEXTS_SCHEMA {
            return Err(refused(format!(
                "expected schema `{TEXTS_SCHEMA}`, found `{}`",
                found.schema
            )));
        }
        let digest = digest(found.similarity, &found.tasks);
        if found.digest != digest {
            return Err(refused(format!(
                "expected digest `{}`, found `{digest}`",
                found.digest
            )));
        }
        for (task, both) in &found.tasks {
            for text in [&both.negative, &both.positive] {
                let values = &text.embedding;
                if values.len() != dim || values.iter().any(|v| !v.is_finite()) {
                    return Err(refused(format!(
                        "task `{task}`: expected {dim} finite values, found {}",
                        values.len()
                    )));
                }
            }
        }
        Ok(Some(found))
    }
}

fn digest(similarity: Option<Similarity>, tasks: &BTreeMap<String, TaskTexts>) -> String {
    let bits = |text: &EmbeddedText| {
        let values: Vec<u64> = text.embedding.iter().map(|v| v.to_bits()).collect();
        serde_json::json!([text.text, values, text.tokens, text.truncated])
    };
    let all: Vec<_> = tasks
        .iter()
        .map(|(task, both)| serde_json::json!([task, bits(&both.negative), bits(&both.positive)]))
        .collect();
    let own = similarity.map(|s| (s.scale.to_bits(), s.bias.to_bits(), s.sigmoid));
    let text = serde_json::json!([own, all]).to_string();
    format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use focus_models::fake::{FakeDualEncoder, opened};
    use focus_wire::FailureKind;

    fn model() -> FakeDualEncoder {
        let mut opened = opened(4, 3, 2, 2);
        // Digits that decimal text would lose in a careless writing.
        opened.similarity = Some(Similarity {
            scale: 1.0 / 0.07,
            bias: -16.1 / 3.0,
            sigmoid: true,
        });
        FakeDualEncoder::new(opened)
    }

    fn tasks() -> Vec<String> {
        ["binary_dr", "glaucoma", "glaucoma_vcdr"]
            .map(str::to_owned)
            .into()
    }

    #[test]
    fn a_tasks_sentences_are_asked_in_one_call() {
        let mut model = model();
        let texts = Texts::embed(&mut model, &tasks()).expect("embeds");
        let wanted: Vec<Vec<String>> = ["binary_dr", "glaucoma"]
            .iter()
            .map(|task| captions_of(task).expect("has sentences").texts().into())
            .collect();
        assert_eq!(model.asked, wanted);
        assert_eq!(texts.tasks.len(), 2, "a task without sentences is left out");
        let both = &texts.tasks["glaucoma"];
        assert_eq!(both.positive.text, wanted[1][1]);
        assert_eq!(both.positive.tokens.len(), wanted[1][1].len());
        assert_eq!(texts.truncated().count(), 0);
    }

    #[test]
    fn what_is_stored_is_read_bit_for_bit() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(Texts::read(dir.path(), 3).expect("none"), None);
        let texts = Texts::embed(&mut model(), &tasks()).expect("embeds");
        texts.write(dir.path()).expect("writes");
        let found = Texts::read(dir.path(), 3).expect("reads").expect("there");
        assert_eq!(found, texts);
        let refused = |dim: usize, wanted: &str| {
            let error = Texts::read(dir.path(), dim).expect_err("refused");
            assert!(error.to_string().contains(wanted), "{error}");
            assert!(error.hint().is_some());
        };
        refused(4, "expected 4 finite values, found 3");
        let file = dir.path().join(TEXTS_FILE);
        let whole = std::fs::read_to_string(&file).expect("reads");
        std::fs::write(
            &file,
            whole.replace("signs of glaucoma", "signs of glaucomas"),
        )
        .expect("writes");
        refused(3, "digest");
        std::fs::write(&file, whole.replace(TEXTS_SCHEMA, "focus-texts/9")).expect("writes");
        refused(3, "expected schema");
        std::fs::write(&file, &whole[..whole.len() / 2]).expect("writes");
        refused(3, "cannot be used");
    }

    #[test]
    fn a_text_that_fails_fails_the_run() {
        let text = captions_of("glaucoma").expect("has sentences").positive;
        let mut model = model().fail_text(text, FailureKind::Crash);
        let error = Texts::embed(&mut model, &tasks()).expect_err("fails");
        assert!(matches!(error, EvalError::Model(_)), "{error}");
    }
}
