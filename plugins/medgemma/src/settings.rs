//! What the user asked for beyond the model's name. Knows words only.

use focus_plugin_sdk::{Error, OpenOptions, RANDOM_WEIGHTS, deny_unknown_settings};
use std::fmt;

/// Which of two readings of a published benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Track {
    /// What the published code computes.
    AsPublished,
    /// What the model's authors meant.
    Corrected,
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsPublished => "as_published",
            Self::Corrected => "corrected",
        })
    }
}

/// The settings, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `track`, by default corrected.
    pub track: Track,
    /// Seed of `weights=random:SEED`: a toy.
    pub random: Option<u64>,
}

impl Settings {
    /// Read them.
    pub fn read(options: &OpenOptions) -> Result<Self, Error> {
        deny_unknown_settings(options, &["track", RANDOM_WEIGHTS, "size"])?;
        let get = |key: &str| options.settings.get(key).map(String::as_str);
        let bad = |key: &str, wanted: &str, found: &str| {
            Error::invalid_request(format!(
                "Setting `{key}`: expected {wanted}, found `{found}`"
            ))
        };
        let track = match get("track") {
            None | Some("corrected") => Track::Corrected,
            Some("as_published") => Track::AsPublished,
            Some(other) => return Err(bad("track", "`corrected` or `as_published`", other)),
        };
        let random = get(RANDOM_WEIGHTS)
            .map(|text| {
                text.strip_prefix("random:")
                    .and_then(|seed| seed.parse::<u64>().ok())
                    .ok_or_else(|| bad(RANDOM_WEIGHTS, "`random:SEED` with a whole number", text))
            })
            .transpose()?;
        match (get("size"), random) {
            (None, None) | (Some("tiny"), Some(_)) => {}
            (None, Some(_)) => {
                return Err(Error::invalid_request(
                    "Random weights of full size have no tokenizer to go with",
                )
                .with_hint("Add `--set size=tiny`: a toy with a tokenizer of its own"));
            }
            (Some("tiny"), None) => {
                return Err(
                    Error::invalid_request("Setting `size` goes with random weights only")
                        .with_hint("Add `--set weights=random:0`"),
                );
            }
            (Some(other), _) => return Err(bad("size", "`tiny`", other)),
        }
        if random.is_some() && options.weights.is_some() {
            return Err(Error::invalid_request(
                "Random weights and a folder of weights exclude each other",
            )
            .with_hint("Leave out one of them"));
        }
        Ok(Self { track, random })
    }
}
