//! Token scores of the first generated position: keyed by token id where the server tells ids, by exact bytes where it tells texts.
//!
//! A variant that the server's list lacks keeps its id and has no log-probability: the host counts it as score-unavailable. Never 0,
//! never a number that stands for "small". Texts are not trimmed: ` yes` and `yes` are two tokens.

use crate::reply::{Entry, Misread, Position};
use focus_plugin_sdk::VariantScore;

/// At and below this a server says "very unlikely" in place of a log-probability (OpenAI, vLLM).
const NOT_TOLD: f64 = -9999.0;

/// What a server that was asked for ids must say; one that does not say it never will.
pub(crate) const TOKENS_BY_ID: &str = "tokens as `token_id:N`";

/// Above zero by rounding only.
const ROUNDING: f64 = 1e-4;

/// The variants asked for.
#[derive(Debug, Clone, Copy)]
pub enum Variants<'a> {
    /// Their ids, known from the server's tokenizer; `None`: not a single token.
    Ids(&'a [Option<u32>]),
    /// Their texts. Which of them are single tokens is not known, so each keeps its place; its position among the variants stands in
    /// for the id that the server keeps to itself.
    Texts(&'a [String]),
}

/// One score for each variant; `position` is the first generated token, `None` where the server told nothing of it.
pub fn scores(
    variants: Variants<'_>,
    position: Option<&Position>,
) -> Result<Vec<VariantScore>, Misread> {
    let entries: Vec<&Entry> = position
        .into_iter()
        .flat_map(|position| std::iter::once(&position.chosen).chain(&position.top_logprobs))
        .collect();
    match variants {
        Variants::Ids(ids) => {
            let told: Vec<(u32, Option<f64>)> = entries
                .iter()
                .map(|entry| Ok((id(&entry.token)?, told(entry)?)))
                .collect::<Result<_, Misread>>()?;
            Ok(ids
                .iter()
                .map(|&token| VariantScore {
                    token,
                    logprob: token.and_then(|id| told.iter().find(|(other, _)| *other == id)?.1),
                })
                .collect())
        }
        Variants::Texts(texts) => texts
            .iter()
            .enumerate()
            .map(|(place, text)| {
                let mut best: Option<f64> = None;
                for entry in entries.iter().filter(|entry| is(entry, text)) {
                    // Two tokens may have the same bytes: the likelier one is the one that counts.
                    best = match (best, told(entry)?) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        (a, b) => a.or(b),
                    };
                }
                Ok(VariantScore {
                    token: Some(place as u32),
                    logprob: best,
                })
            })
            .collect(),
    }
}

fn is(entry: &Entry, text: &str) -> bool {
    match &entry.bytes {
        Some(bytes) => bytes == text.as_bytes(),
        None => entry.token == text,
    }
}

fn id(token: &str) -> Result<u32, Misread> {
    token
        .strip_prefix("token_id:")
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| Misread::new(TOKENS_BY_ID, format!("`{token}`")))
}

fn told(entry: &Entry) -> Result<Option<f64>, Misread> {
    match entry.logprob {
        Some(value) if value > ROUNDING || !value.is_finite() => Err(Misread::new(
            "log-probabilities of at most 0",
            format!("{value} for `{}`", entry.token),
        )),
        Some(value) if value > NOT_TOLD => Ok(Some(value.min(0.0))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn position(value: serde_json::Value) -> Position {
        serde_json::from_value(value).expect("a position")
    }

    fn by_text(variants: &[&str], position: Option<&Position>) -> Vec<Option<f64>> {
        let texts: Vec<String> = variants.iter().map(|&text| text.to_owned()).collect();
        let scores = scores(Variants::Texts(&texts), position).expect("reads");
        let places: Vec<_> = scores.iter().map(|score| score.token).collect();
        let wanted: Vec<_> = (0..variants.len() as u32).map(Some).collect();
        assert_eq!(places, wanted);
        scores.iter().map(|score| score.logprob).collect()
    }

    /// Two tokens that read the same as text and are not the same token.
    #[test]
    fn ids_are_the_key_where_there_are_ids() {
        let position = position(json!({
            "token": "token_id:9891", "logprob": -0.5, "bytes": [1],
            "top_logprobs": [
                {"token": "token_id:9891", "logprob": -0.5},
                {"token": "token_id:2201", "logprob": -1.5},
                {"token": "token_id:77", "logprob": -9999.0},
                {"token": "token_id:78", "logprob": null}],
        }));
        let ids = [Some(2201), None, Some(9891), Some(5), Some(77), Some(78)];
        let scores = scores(Variants::Ids(&ids), Some(&position)).expect("reads");
        let tokens: Vec<_> = scores.iter().map(|score| score.token).collect();
        assert_eq!(tokens, ids);
        let values: Vec<_> = scores.iter().map(|score| score.logprob).collect();
        assert_eq!(values, [Some(-1.5), None, Some(-0.5), None, None, None]);
    }

    #[test]
    fn wrong_ids_are_errors() {
        for token in [
            "yes",
            "token_id:",
            "token_id:-1",
            "token_id:4294967296",
            "token_id: 7",
        ] {
            let position = position(json!({"token": token, "logprob": -1.0}));
            let error = scores(Variants::Ids(&[Some(7)]), Some(&position)).expect_err(token);
            assert!(error.found.contains(token), "{error:?}");
        }
    }

    #[test]
    fn texts_match_by_exact_bytes() {
        let position = position(json!({
            "token": "Yes", "logprob": -0.25, "bytes": [89, 101, 115],
            "top_logprobs": [
                {"token": "Yes", "logprob": -0.25, "bytes": [89, 101, 115]},
                {"token": " yes", "logprob": -2.0, "bytes": [32, 121, 101, 115]},
                // The text lies; the bytes count.
                {"token": "yes", "logprob": -3.0, "bytes": [121, 101]},
                {"token": "No", "logprob": -4.0, "bytes": null},
                {"token": "No", "logprob": -5.0},
                {"token": "no ", "logprob": -6.0},
                {"token": "\u{fffd}", "logprob": -7.0, "bytes": [226]}],
        }));
        assert_eq!(
            by_text(
                &["yes", "Yes", " yes", " Yes", "No", "no", "\nno"],
                Some(&position)
            ),
            [None, Some(-0.25), Some(-2.0), None, Some(-4.0), None, None]
        );
    }

    #[test]
    fn nothing_told_is_unavailable() {
        assert_eq!(by_text(&["yes", "no"], None), [None, None]);
        let ids = [Some(1), None];
        let scores = scores(Variants::Ids(&ids), None).expect("reads");
        assert_eq!(
            scores,
            [
                VariantScore {
                    token: Some(1),
                    logprob: None
                },
                VariantScore {
                    token: None,
                    logprob: None
                }
            ]
        );
    }

    #[test]
    fn probabilities_above_one_are_errors_and_rounding_is_not() {
        let at = |value: f64| position(json!({"token": "yes", "logprob": value}));
        assert_eq!(by_text(&["yes"], Some(&at(1e-7))), [Some(0.0)]);
        assert_eq!(by_text(&["yes"], Some(&at(-9998.9))), [Some(-9998.9)]);
        assert_eq!(by_text(&["yes"], Some(&at(-9999.0))), [None]);
        let texts = ["yes".to_owned()];
        assert!(scores(Variants::Texts(&texts), Some(&at(0.9))).is_err());
    }
}
