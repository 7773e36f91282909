//! `target_modules`: a list of endings, a regular expression, or `all-linear`. Knows names only.

use super::LoraError;
use fancy_regex::Regex;
use serde::Deserialize;

/// The word for all linear layers but the head.
const ALL: &str = "all-linear";

/// Which modules.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Targets {
    /// `all-linear` (all but the head), or a regular expression that the whole name matches.
    Pattern(String),
    /// Names, or what names end in after a dot.
    List(Vec<String>),
}

impl Targets {
    /// Indices into `modules` (name spellings, and whether it is the head) that are meant. An entry of a list that means nothing is an
    /// error, and so is a pattern.
    pub(super) fn expand(&self, modules: &[(Vec<String>, bool)]) -> Result<Vec<usize>, LoraError> {
        let chosen = self.matching(modules)?;
        let lost = match self {
            Self::Pattern(word) if word.eq_ignore_ascii_case(ALL) => None,
            Self::Pattern(pattern) => chosen.is_empty().then_some(pattern),
            Self::List(endings) => endings
                .iter()
                .find(|ending| !modules.iter().any(|(names, _)| hits(ending, names))),
        };
        match lost {
            Some(lost) => Err(LoraError::NoSuchTarget(format!("`{lost}`"))),
            None => Ok(chosen),
        }
    }

    /// The same where what means nothing is nothing, as PEFT has it for `exclude_modules`.
    pub(super) fn matching(
        &self,
        modules: &[(Vec<String>, bool)],
    ) -> Result<Vec<usize>, LoraError> {
        let mut chosen = Vec::new();
        match self {
            Self::Pattern(word) if word.eq_ignore_ascii_case(ALL) => {
                let linear = modules.iter().enumerate().filter(|(_, (_, head))| !head);
                chosen.extend(linear.map(|(at, _)| at));
            }
            Self::Pattern(pattern) => {
                let whole = compile(&format!("^(?:{pattern})$"))?;
                for (at, (names, _)) in modules.iter().enumerate() {
                    for name in names {
                        if matches(&whole, name)? {
                            chosen.push(at);
                            break;
                        }
                    }
                }
            }
            Self::List(endings) => {
                let all = modules.iter().enumerate();
                chosen.extend(
                    all.filter(|(_, (names, _))| endings.iter().any(|ending| hits(ending, names)))
                        .map(|(at, _)| at),
                );
            }
        }
        Ok(chosen)
    }
}

/// Whether one of `names` is `ending`, or ends in it after a dot.
fn hits(ending: &str, names: &[String]) -> bool {
    let ends = |name: &String| {
        name.strip_suffix(ending)
            .is_some_and(|start| start.is_empty() || start.ends_with('.'))
    };
    !ending.is_empty() && names.iter().any(ends)
}

pub(super) fn compile(pattern: &str) -> Result<Regex, LoraError> {
    Regex::new(pattern)
        .map_err(|error| LoraError::Settings(format!("`{pattern}` is no pattern: {error}")))
}

/// Patterns may look back and forth, so that matching can take too long: that is an error as well.
pub(super) fn matches(pattern: &Regex, name: &str) -> Result<bool, LoraError> {
    pattern
        .is_match(name)
        .map_err(|error| LoraError::Settings(format!("a pattern cannot be matched: {error}")))
}
