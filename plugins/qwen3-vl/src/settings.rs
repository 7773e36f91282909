//! What the user asked for beyond the model's name. Knows words only.

use focus_plugin_sdk::{Error, OpenOptions, deny_unknown_settings};

/// The settings, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `track=as_published`; the same as `corrected` in this family, and said in the notes.
    pub published: bool,
    /// Seed of `weights=random:SEED`.
    pub random: Option<u64>,
    /// `size=tiny`.
    pub tiny: bool,
    /// `min_pixels`: smallest area of a prepared picture.
    pub min_pixels: Option<u64>,
    /// `max_pixels`: largest.
    pub max_pixels: Option<u64>,
}

impl Settings {
    /// Read them.
    pub fn read(options: &OpenOptions) -> Result<Self, Error> {
        const KNOWN: [&str; 5] = ["track", "weights", "size", "min_pixels", "max_pixels"];
        deny_unknown_settings(options, &KNOWN)?;
        let get = |key: &str| options.settings.get(key).map(String::as_str);
        let bad = |key: &str, wanted: &str, found: &str| {
            Error::invalid_request(format!(
                "Setting `{key}`: expected {wanted}, found `{found}`"
            ))
        };
        let published = match get("track") {
            None | Some("corrected") => false,
            Some("as_published") => true,
            Some(other) => return Err(bad("track", "`corrected` or `as_published`", other)),
        };
        let random = get("weights")
            .map(|text| {
                text.strip_prefix("random:")
                    .and_then(|seed| seed.parse::<u64>().ok())
                    .ok_or_else(|| bad("weights", "`random:SEED` with a whole number", text))
            })
            .transpose()?;
        let tiny = match get("size") {
            None => false,
            Some("tiny") => true,
            Some(other) => return Err(bad("size", "`tiny`", other)),
        };
        let pixels = |key: &str| {
            get(key)
                .map(|text| {
                    text.parse::<u64>()
                        .ok()
                        .filter(|&count| count > 0)
                        .ok_or_else(|| bad(key, "a number of pixels above 0", text))
                })
                .transpose()
        };
        if tiny && random.is_none() {
            return Err(
                Error::invalid_request("Setting `size` goes with random weights only")
                    .with_hint("Add `--set weights=random:0`"),
            );
        }
        if random.is_some() && options.weights.is_some() {
            return Err(Error::invalid_request(
                "Random weights and a folder of weights exclude each other",
            )
            .with_hint("Leave out one of them"));
        }
        Ok(Self {
            published,
            random,
            tiny,
            min_pixels: pixels("min_pixels")?,
            max_pixels: pixels("max_pixels")?,
        })
    }

    /// `track corrected`, as notes say it.
    pub fn track(&self) -> &'static str {
        if self.published {
            "track as_published"
        } else {
            "track corrected"
        }
    }
}
