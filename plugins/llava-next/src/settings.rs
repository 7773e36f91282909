//! What was asked for at `open`, from words to values. Knows no models.

use focus_plugin_sdk::{Error, OpenOptions, RANDOM_WEIGHTS, deny_unknown_settings};

/// Which rules apply where the published benchmark's code and the model's own differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Track {
    /// The published code's: an answer ends where `generation_config.json` says, and nowhere else.
    AsPublished,
    /// An answer ends with the model's turn, too.
    Corrected,
}

impl std::fmt::Display for Track {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AsPublished => "as_published",
            Self::Corrected => "corrected",
        })
    }
}

/// The settings, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `track`, by default corrected.
    pub track: Track,
    /// Seed of `weights=random:SEED`: a toy, which `size=tiny` says too.
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
        let tiny = match get("size") {
            None => false,
            Some("tiny") => true,
            Some(other) => return Err(bad("size", "`tiny`", other)),
        };
        if tiny && random.is_none() {
            return Err(
                Error::invalid_request("Setting `size` goes with random weights only")
                    .with_hint("Add `--weights random:0`"),
            );
        }
        if random.is_some() && !tiny {
            return Err(Error::invalid_request(
                "Random weights have a tokenizer of toy size only: expected setting `size`, found none",
            )
            .with_hint("Add `--size tiny`"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(folder: bool, settings: &[(&str, &str)]) -> Result<Settings, Error> {
        let settings: std::collections::BTreeMap<&str, &str> = settings.iter().copied().collect();
        Settings::read(
            &serde_json::from_value(serde_json::json!({
                "model": "checkpoint", "device": "cpu", "threads": 1, "settings": settings,
                "weights": folder.then_some("folder"),
            }))
            .unwrap(),
        )
    }

    #[test]
    fn settings_are_read_and_misspelt_ones_refused() {
        assert_eq!(
            read(true, &[("track", "as_published")]),
            Ok(Settings {
                track: Track::AsPublished,
                random: None
            })
        );
        let toy = [("weights", "random:3"), ("size", "tiny")];
        assert_eq!(read(false, &toy).unwrap().random, Some(3));
        for (folder, settings, said) in [
            (false, &[("trac", "corrected")][..], "`trac`"),
            (false, &[("track", "both")], "found `both`"),
            (
                false,
                &[("weights", "random:x"), ("size", "tiny")],
                "`random:SEED`",
            ),
            (false, &[("weights", "random:1")], "toy size"),
            (false, &[("size", "tiny")], "random weights only"),
            (
                false,
                &[("weights", "random:1"), ("size", "small")],
                "`tiny`",
            ),
            (true, &toy, "exclude each other"),
        ] {
            let error = read(folder, settings).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
