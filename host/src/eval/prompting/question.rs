//! What every image of a run is asked: the prompts of its tasks in one group, the token variants, how much text. A function of the
//! configuration alone: no record is in reach.

use super::prompt::Prompt;
use crate::config::PromptingConfig;
use focus_models::Ask;
use focus_plugin_abi::v1::message::StopRule;
use focus_store::GenerationLayout;
use std::collections::BTreeMap;

/// Name of the answers in the run folder.
pub const GENERATIONS: &str = "generations";
/// Spellings of each answer, and what may stand before them in one token.
const AFFIRMATIVE: [&str; 2] = ["yes", "Yes"];
const NEGATIVE: [&str; 2] = ["no", "No"];
const PREFIXES: [&str; 3] = ["", " ", "\n"];

/// The question.
#[derive(Debug, Clone)]
pub struct Question {
    /// Prompts in the order of the tasks.
    pub prompts: Vec<Prompt>,
    /// What is asked beside them.
    pub ask: Ask,
}

impl Question {
    /// The question about these tasks; tasks without a prompt are left out, and come back beside it.
    pub fn new(
        tasks: &[String],
        mut prompts: BTreeMap<String, Prompt>,
        config: &PromptingConfig,
    ) -> (Self, Vec<String>) {
        let (mut chosen, mut without) = (Vec::new(), Vec::new());
        for task in tasks {
            match prompts.remove(task) {
                Some(prompt) => chosen.push(prompt),
                None => without.push(task.clone()),
            }
        }
        let stop = if config.early_stop {
            StopRule::FirstWord {
                words: vec!["yes".into(), "no".into()],
            }
        } else {
            StopRule::End
        };
        let question = Self {
            prompts: chosen,
            ask: Ask {
                adapter: None,
                score: variants(),
                max_new_tokens: config.max_new_tokens,
                stop,
            },
        };
        (question, without)
    }

    /// The same question under an adapter.
    pub fn under(&self, adapter: Option<&str>) -> Self {
        let mut question = self.clone();
        question.ask.adapter = adapter.map(str::to_owned);
        question
    }

    /// The same about one task alone.
    pub fn about(&self, task: &str) -> Self {
        let mut question = self.clone();
        question.prompts.retain(|prompt| prompt.task == task);
        question
    }

    /// The tasks asked about.
    pub fn tasks(&self) -> Vec<String> {
        self.prompts.iter().map(|p| p.task.clone()).collect()
    }

    /// The prompts' texts.
    pub fn texts(&self) -> Vec<String> {
        self.prompts.iter().map(|p| p.text.clone()).collect()
    }

    /// How the answers lie in the store: a prompt has its task's name.
    pub fn layout(&self) -> GenerationLayout {
        GenerationLayout {
            prompts: self.tasks(),
            variants: self.ask.score.clone(),
        }
    }
}

/// The token variants asked for, affirmative first.
pub fn variants() -> Vec<String> {
    AFFIRMATIVE
        .iter()
        .chain(&NEGATIVE)
        .flat_map(|word| PREFIXES.map(|prefix| format!("{prefix}{word}")))
        .collect()
}

/// What a variant stands for: `Some(true)` for an affirmative one.
pub fn meaning(variant: &str) -> Option<bool> {
    let word = PREFIXES
        .iter()
        .rev()
        .find_map(|prefix| variant.strip_prefix(prefix))?;
    if AFFIRMATIVE.contains(&word) {
        Some(true)
    } else if NEGATIVE.contains(&word) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_variants_half_of_them_affirmative() {
        let all = variants();
        assert_eq!(all.len(), 12);
        assert_eq!(all[..3], ["yes", " yes", "\nyes"]);
        let yes = all.iter().filter(|v| meaning(v) == Some(true)).count();
        let no = all.iter().filter(|v| meaning(v) == Some(false)).count();
        assert_eq!((yes, no), (6, 6));
        for other in ["", " ", "YES", "  yes", "yes ", "maybe"] {
            assert_eq!(meaning(other), None, "{other:?}");
        }
    }
}
