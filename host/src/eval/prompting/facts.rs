//! What a report says of the questions of a run.

use super::question::Question;
use focus_plugin_abi::v1::message::StopRule;
use serde::{Deserialize, Serialize};

/// The questions as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptingFacts {
    /// In the order of a group.
    pub prompts: Vec<PromptFacts>,
    /// Token variants, affirmative first.
    pub variants: Vec<String>,
    /// Most tokens generated.
    pub max_new_tokens: u32,
    /// Words at which a generation stopped early; empty: only at the model's own end.
    pub stop_words: Vec<String>,
    /// Tasks that were chosen and have no prompt.
    pub without_prompt: Vec<String>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptFacts {
    /// Its task.
    pub task: String,
    /// Its text.
    pub text: String,
    /// `blake3:hex` of the text.
    pub digest: String,
    /// Not the paper's.
    pub replaced: bool,
}

impl PromptingFacts {
    /// Of a question.
    pub fn of(question: &Question, without_prompt: &[String]) -> Self {
        let prompts = question.prompts.iter().map(|prompt| PromptFacts {
            task: prompt.task.clone(),
            text: prompt.text.clone(),
            digest: prompt.digest.clone(),
            replaced: prompt.replaced,
        });
        Self {
            prompts: prompts.collect(),
            variants: question.ask.score.clone(),
            max_new_tokens: question.ask.max_new_tokens,
            stop_words: match &question.ask.stop {
                StopRule::End => Vec::new(),
                StopRule::FirstWord { words } => words.clone(),
            },
            without_prompt: without_prompt.to_vec(),
        }
    }

    /// How the answers lie in the store.
    pub fn layout(&self) -> focus_store::GenerationLayout {
        focus_store::GenerationLayout {
            prompts: self.prompts.iter().map(|p| p.task.clone()).collect(),
            variants: self.variants.clone(),
        }
    }
}
