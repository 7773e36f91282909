//! `target_modules`: a list of endings, a regular expression, or `all-linear`. Knows names only.

use super::LoraError;
use fancy_regex::Regex;
use serde::Deserialize;

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
        let mut chosen = Vec::new();
        match self {
            Self::Pattern(word) if word.eq_ignore_ascii_case("all-linear") => {
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
                if chosen.is_empty() {
                    return Err(LoraError::NoSuchTarget(format!("`{pattern}`")));
                }
            }
            Self::List(endings) => {
                let ends = |name: &str, ending: &str| {
                    name.strip_suffix(ending)
                        .is_some_and(|start| start.is_empty() || start.ends_with('.'))
                };
                let hits = |ending: &String, names: &[String]| {
                    !ending.is_empty() && names.iter().any(|name| ends(name, ending))
                };
                if let Some(lost) = endings
                    .iter()
                    .find(|ending| !modules.iter().any(|(names, _)| hits(ending, names)))
                {
                    return Err(LoraError::NoSuchTarget(format!("`{lost}`")));
                }
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
