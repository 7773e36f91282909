//! Prompts that tell the answer: texts that hold a record's values. Knows no templates; it is given texts and columns.
//!
//! Prompts of one name are compared: words that all of them share are the template's. A prompt that has other words differs with the record, which is
//! suspicious by itself; where those words hold a value of a column of its own record, it leaks. A column's own name followed by `:` or `=` leaks too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::finding::{Finding, FindingKind as K, Findings, Severity as S};

/// A rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// What it asks, such as a task's id; prompts of one name are compared.
    pub name: String,
    /// Index of the record that it was rendered for, where it was for one.
    pub sample: Option<u32>,
    /// The text as a model gets it.
    pub text: String,
}

/// Words: runs of letters, digits, `_`, `.`, `-`, without dots and dashes at their ends, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-')))
        .map(|word| word.trim_matches(['.', '-']).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

fn follows(text: &str, column: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(column).any(|(at, _)| {
        let starts = !text[..at].ends_with(is_word);
        let rest = text[at + column.len()..].trim_start_matches([' ', '"', '\'', '`', '*']);
        starts && rest.starts_with([':', '='])
    })
}

/// Findings about prompts. `columns` gives for a sample the label-file columns of its record with their values as text; blank values say nothing.
pub fn prompt_findings(
    prompts: &[Prompt],
    columns: &dyn Fn(u32) -> Vec<(String, String)>,
) -> Vec<Finding> {
    let mut out = Findings::default();
    let mut by_name: BTreeMap<&str, Vec<&Prompt>> = BTreeMap::new();
    for prompt in prompts {
        by_name.entry(&prompt.name).or_default().push(prompt);
    }
    for (name, prompts) in by_name {
        let texts: BTreeSet<&str> = prompts.iter().map(|p| p.text.as_str()).collect();
        let mut shared: Option<BTreeSet<String>> = None;
        for text in &texts {
            let own: BTreeSet<String> = words(text).into_iter().collect();
            shared = Some(shared.map_or(own.clone(), |shared| {
                shared.intersection(&own).cloned().collect()
            }));
        }
        let shared = shared.unwrap_or_default();
        if texts.len() > 1 {
            out.add(K::PromptVaries, S::Warning, texts.len(), format!("different texts of the prompt `{name}`"), [], "a prompt asks the same of every image: permuting label columns must not change its bytes");
        }
        let mut leaks = Vec::new();
        for prompt in &prompts {
            let Some(sample) = prompt.sample else {
                continue;
            };
            let own = words(&prompt.text);
            let lower = prompt.text.to_lowercase();
            let holds = |value: &str| {
                let value = words(value);
                let varies = value.iter().any(|word| !shared.contains(word));
                !value.is_empty()
                    && varies
                    && own.windows(value.len()).any(|window| window == value)
            };
            let told: Vec<String> = columns(sample)
                .into_iter()
                .filter(|(column, value)| holds(value) || follows(&lower, &column.to_lowercase()))
                .map(|(column, _)| column)
                .collect();
            if !told.is_empty() {
                leaks.push(format!("sample {sample}: `{}`", told.join("`, `")));
            }
        }
        out.add(
            K::PromptHoldsLabel,
            S::Error,
            leaks.len(),
            format!("prompts `{name}` that hold columns of their record"),
            leaks,
            "take every column of the label file out of the prompt",
        );
    }
    out.sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(text: impl Fn(u32) -> String) -> Vec<Prompt> {
        let made = (0..4).map(|i| Prompt {
            name: "binary_dr".into(),
            sample: Some(i),
            text: text(i),
        });
        made.collect()
    }

    fn columns(sample: u32) -> Vec<(String, String)> {
        vec![
            ("DR_ICDR".into(), sample.to_string()),
            ("macular_edema".into(), (sample % 2).to_string()),
            ("diabetes".into(), "yes".into()),
            ("comments".into(), String::new()),
        ]
    }

    #[test]
    fn the_plain_question_is_clean() {
        let plain = prompts(|_| {
            "Does this eye show diabetic retinopathy? Respond with \"yes\" or \"no\". Diabetes: no answer needed 0 1".replace("Diabetes:", "Diabetes")
        });
        assert_eq!(prompt_findings(&plain, &columns), []);
    }

    #[test]
    fn a_record_in_the_prompt_is_found() {
        let leaky = prompts(|i| format!("ICDR grade {i}. Does this eye show retinopathy?"));
        let found = prompt_findings(&leaky, &columns);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].kind, found[0].count), (K::PromptHoldsLabel, 4));
        assert_eq!((found[1].kind, found[1].count), (K::PromptVaries, 4));
        assert!(found[0].examples[2].contains("`DR_ICDR`"));
        let named = prompts(|_| "macular_edema: present in none. Answer.".into());
        let found = prompt_findings(&named, &columns);
        assert_eq!((found.len(), found[0].count), (1, 4));
        assert_eq!(found[0].examples[0], "sample 0: `macular_edema`");
    }
}
