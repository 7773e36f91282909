//! What the user asked for beyond the model's name (`--set key=value`). Knows words and numbers only, no server.

use crate::picture::Format;
use focus_plugin_sdk::{Error, OpenOptions, deny_unknown_settings};
use serde_json::{Map, Value};
use std::str::FromStr;
use std::time::Duration;

/// Requests in flight unless the user says otherwise.
pub const CONCURRENCY: u32 = 8;

/// Most pictures of one call unless the user says otherwise: a call has 2 GiB, and a full photograph takes some 40 MB of it.
const PICTURES: u32 = 16;

/// Longest that the questions of one call may take at the rate asked for. The host ends a call after 300 s and blames its pictures.
const LONGEST_CALL: Duration = Duration::from_mins(4);

/// Fields of a request that `extra_body` must leave alone.
const OWN_FIELDS: [&str; 13] = [
    "model",
    "messages",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "logprobs",
    "top_logprobs",
    "logprob_token_ids",
    "return_tokens_as_token_ids",
    "return_token_ids",
    "seed",
    "stream",
    "n",
];

const KNOWN: [&str; 18] = [
    "base_url",
    "served_model",
    "api_key_env",
    "token_scores",
    "top_logprobs",
    "concurrency",
    "max_image_side",
    "image_format",
    "detail",
    "timeout",
    "retries",
    "give_up_after",
    "requests_per_minute",
    "seed",
    "price_in",
    "price_out",
    "max_tokens_field",
    "extra_body",
];

/// Where token scores come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenScores {
    /// Ids if the server has `/tokenize`, else texts.
    Auto,
    /// vLLM: `logprob_token_ids` and `return_tokens_as_token_ids`, keyed by token id.
    Ids,
    /// `top_logprobs`, matched by the tokens' bytes.
    Texts,
}

/// The settings, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `base_url`, as written: `https://HOST/v1`.
    pub base_url: String,
    /// `served_model`: the model's (or LoRA adapter's) name at the server; `None`: the only one that it serves.
    pub served_model: Option<String>,
    /// `api_key_env`: the environment variable that holds the key; `None`: `OPENAI_API_KEY`, if it is set.
    pub api_key_env: Option<String>,
    /// `token_scores`.
    pub token_scores: TokenScores,
    /// `top_logprobs`: length of the server's list, 1 to 1000.
    pub top_logprobs: u32,
    /// `concurrency`: requests in flight, 1 to 256.
    pub concurrency: u32,
    /// Pictures of one call: the user's batch size, else `concurrency`, at most 16.
    pub pictures_at_once: u32,
    /// `max_image_side`: pixels; longer pictures are shrunk.
    pub max_image_side: Option<u32>,
    /// `image_format`: `png` or `jpeg:QUALITY`.
    pub image_format: Format,
    /// `detail`: `low`, `high` or `auto`, as some services want it.
    pub detail: Option<String>,
    /// `timeout`: of one attempt, seconds.
    pub timeout: Duration,
    /// `retries`: after the first attempt.
    pub retries: u32,
    /// `give_up_after`: of all attempts of one request, seconds.
    pub give_up_after: Duration,
    /// `requests_per_minute`.
    pub requests_per_minute: Option<f64>,
    /// `seed`, sent where given.
    pub seed: Option<i64>,
    /// `price_in`: of a million prompt tokens, in any currency.
    pub price_in: f64,
    /// `price_out`: of a million generated tokens.
    pub price_out: f64,
    /// `max_tokens_field=max_completion_tokens` for services that refuse `max_tokens`.
    pub max_completion_tokens: bool,
    /// `extra_body`: further fields of the request, a JSON object.
    pub extra_body: Map<String, Value>,
}

impl Settings {
    /// Read them.
    pub fn read(options: &OpenOptions) -> Result<Self, Error> {
        deny_unknown_settings(options, &KNOWN)?;
        let get = |key: &str| options.settings.get(key).map(String::as_str);
        let base_url = get("base_url").ok_or_else(|| {
            Error::invalid_request("Setting `base_url` is missing: expected the server's address")
                .with_hint("For example `--set base_url=http://localhost:8000/v1`")
        })?;
        let seconds = |key: &str, default: u64| {
            number(key, get(key), default, 1, 86_400, "seconds").map(Duration::from_secs)
        };
        let concurrency = number(
            "concurrency",
            get("concurrency"),
            CONCURRENCY,
            1,
            256,
            "requests",
        )?;
        let pictures_at_once = options.batch_size.unwrap_or(concurrency.min(PICTURES));
        let settings = Self {
            base_url: base_url.to_owned(),
            served_model: get("served_model")
                .map(|name| filled("served_model", name))
                .transpose()?,
            api_key_env: get("api_key_env")
                .map(|name| filled("api_key_env", name))
                .transpose()?,
            token_scores: match get("token_scores") {
                None | Some("auto") => TokenScores::Auto,
                Some("logprob_token_ids") => TokenScores::Ids,
                Some("top_logprobs") => TokenScores::Texts,
                Some(other) => {
                    let wanted = "`auto`, `logprob_token_ids` or `top_logprobs`";
                    return Err(bad("token_scores", wanted, other));
                }
            },
            top_logprobs: number("top_logprobs", get("top_logprobs"), 20, 1, 1000, "tokens")?,
            concurrency,
            pictures_at_once,
            max_image_side: get("max_image_side")
                .map(|text| number("max_image_side", Some(text), 0, 16, 65_535, "pixels"))
                .transpose()?,
            image_format: get("image_format").map_or(Ok(Format::Png), |text| {
                text.parse()
                    .map_err(|()| bad("image_format", "`png` or `jpeg:QUALITY` (1 to 100)", text))
            })?,
            detail: match get("detail") {
                None => None,
                Some(word @ ("auto" | "low" | "high")) => Some(word.to_owned()),
                Some(other) => return Err(bad("detail", "`auto`, `low` or `high`", other)),
            },
            timeout: seconds("timeout", 60)?,
            retries: number("retries", get("retries"), 5, 0, 100, "attempts")?,
            give_up_after: seconds("give_up_after", 90)?,
            requests_per_minute: get("requests_per_minute")
                .map(|text| positive("requests_per_minute", text))
                .transpose()?,
            seed: get("seed")
                .map(|text| {
                    text.parse()
                        .map_err(|_| bad("seed", "a whole number", text))
                })
                .transpose()?,
            price_in: price("price_in", get("price_in"))?,
            price_out: price("price_out", get("price_out"))?,
            max_completion_tokens: match get("max_tokens_field") {
                None | Some("max_tokens") => false,
                Some("max_completion_tokens") => true,
                Some(other) => {
                    let wanted = "`max_tokens` or `max_completion_tokens`";
                    return Err(bad("max_tokens_field", wanted, other));
                }
            },
            extra_body: get("extra_body").map_or_else(|| Ok(Map::new()), extra_body)?,
        };
        // A picture has one question at least.
        settings.in_time(pictures_at_once as usize)?;
        Ok(settings)
    }

    /// Whether one call of so many questions ends in time at the rate asked for; if not, a plain no, which blames no picture.
    pub(crate) fn in_time(&self, questions: usize) -> Result<(), Error> {
        let Some(rate) = self.requests_per_minute else {
            return Ok(());
        };
        let longest = LONGEST_CALL.as_secs_f64();
        let least = questions as f64 * 60.0 / longest;
        if rate >= least {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "Setting `requests_per_minute`: expected at least {least} for the {questions} questions of one call, found `{rate}`"
        ))
        .with_hint(format!(
            "A call may take {longest} s: ask fewer pictures at once, with `--batch-size N` or a lower `--set concurrency=N`, or raise the rate"
        )))
    }
}

fn bad(key: &str, wanted: &str, found: &str) -> Error {
    Error::invalid_request(format!(
        "Setting `{key}`: expected {wanted}, found `{found}`"
    ))
}

fn filled(key: &str, text: &str) -> Result<String, Error> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(bad(key, "a name", text));
    }
    Ok(text.to_owned())
}

fn number<N: FromStr + PartialOrd + std::fmt::Display>(
    key: &str,
    text: Option<&str>,
    default: N,
    least: N,
    most: N,
    unit: &str,
) -> Result<N, Error> {
    let Some(text) = text else {
        return Ok(default);
    };
    text.parse()
        .ok()
        .filter(|n| (&least..=&most).contains(&n))
        .ok_or_else(|| bad(key, &format!("{least} to {most} {unit}"), text))
}

fn positive(key: &str, text: &str) -> Result<f64, Error> {
    text.parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n > 0.0)
        .ok_or_else(|| bad(key, "a number above 0", text))
}

fn price(key: &str, text: Option<&str>) -> Result<f64, Error> {
    let Some(text) = text else { return Ok(0.0) };
    text.parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n >= 0.0)
        .ok_or_else(|| bad(key, "a price for a million tokens", text))
}

fn extra_body(text: &str) -> Result<Map<String, Value>, Error> {
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
        return Err(bad("extra_body", "a JSON object", text));
    };
    match fields
        .keys()
        .find(|field| OWN_FIELDS.contains(&field.as_str()))
    {
        None => Ok(fields),
        Some(field) => Err(Error::invalid_request(format!(
            "Setting `extra_body` may not hold `{field}`: this plugin sets it"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Settings, Error> {
        Settings::read(&OpenOptions {
            model: crate::card::MODEL.into(),
            device: "cpu".into(),
            dtype: None,
            weights: None,
            threads: 1,
            settings: settings
                .iter()
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            network: Vec::new(),
            ..OpenOptions::default()
        })
    }

    #[test]
    fn defaults_are_careful() {
        let settings = read(&[("base_url", "http://localhost:8000/v1")]).expect("reads");
        assert_eq!(settings.image_format, Format::Png);
        assert_eq!(settings.token_scores, TokenScores::Auto);
        assert_eq!(
            (
                settings.top_logprobs,
                settings.concurrency,
                settings.retries
            ),
            (20, 8, 5)
        );
        assert!(settings.max_image_side.is_none() && settings.seed.is_none());
        // One attempt that hangs, another one and the sign of life stay well below the host's 300 s.
        assert_eq!(
            (settings.timeout.as_secs(), settings.give_up_after.as_secs()),
            (60, 90)
        );
    }

    /// A call at the user's own rate must end before the host ends it.
    #[test]
    fn rates_that_no_call_survives_are_refused() {
        let settings = |concurrency, rate| {
            [
                ("base_url", "http://h/v1"),
                ("concurrency", concurrency),
                ("requests_per_minute", rate),
            ]
        };
        for (concurrency, rate, good) in [
            ("8", "2", true),
            ("8", "1.99", false),
            ("1", "0.25", true),
            ("1", "0.2", false),
            // A call has 16 pictures then.
            ("200", "4", true),
            ("200", "3.9", false),
            ("8", "1e-300", false),
        ] {
            match read(&settings(concurrency, rate)) {
                Ok(settings) => assert!(good, "{settings:?}"),
                Err(error) => {
                    assert!(
                        !good && error.to_string().contains("requests_per_minute"),
                        "{error}"
                    );
                    assert!(error.hint().expect("advice").contains("240 s"));
                }
            }
        }
    }

    /// 256 full photographs do not fit into one call.
    #[test]
    fn a_call_has_few_pictures_unless_the_user_says_so() {
        let size = |concurrency: &str, batch_size| {
            let options = OpenOptions {
                settings: [("base_url", "http://h/v1"), ("concurrency", concurrency)]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
                batch_size,
                ..OpenOptions::default()
            };
            Settings::read(&options).expect("reads").pictures_at_once
        };
        assert_eq!(size("4", None), 4);
        assert_eq!(size("256", None), 16);
        assert_eq!(size("256", Some(40)), 40);
        assert_eq!(size("8", Some(1)), 1);
    }

    #[test]
    fn wrong_values_name_the_setting_and_what_is_expected() {
        for (key, value) in [
            ("token_scores", "best"),
            ("top_logprobs", "0"),
            ("top_logprobs", "-1"),
            ("concurrency", "257"),
            ("max_image_side", "1"),
            ("image_format", "jpeg:0"),
            ("image_format", "webp"),
            ("detail", "medium"),
            ("timeout", "0"),
            ("timeout", "1e3"),
            ("retries", "x"),
            ("requests_per_minute", "0"),
            ("requests_per_minute", "inf"),
            ("seed", "1.5"),
            ("price_in", "-1"),
            ("price_out", "NaN"),
            ("max_tokens_field", "tokens"),
            ("extra_body", "[1]"),
            ("extra_body", r#"{"temperature": 1}"#),
            ("served_model", " "),
            ("api_key_env", "A\nB"),
        ] {
            let error = read(&[("base_url", "http://h/v1"), (key, value)])
                .expect_err(value)
                .to_string();
            assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
        }
        let error = read(&[]).expect_err("no address");
        assert!(error.to_string().contains("`base_url`") && error.hint().is_some());
        let error = read(&[("base_url", "http://h/v1"), ("temprature", "0")]).expect_err("typo");
        assert!(error.hint().expect("hint").contains("served_model"));
    }
}
