//! From one answer to a score and a label (focus-benchmark.md, section 4). Pure; knows no image and no true label.

use super::question::meaning;
use focus_exchange::parse_yes_no;
use focus_store::{Generated, Outcome, VariantLogprob};

/// What an answer comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// `ok`, `unparseable`, `refused` or `score_unavailable`.
    pub outcome: Outcome,
    /// Why it is not `ok`.
    pub reason: Option<&'static str>,
    /// p+: the largest probability of an affirmative variant as the first token; not renormalised.
    pub score: Option<f64>,
    /// p-: the same of a negative one.
    pub negative: Option<f64>,
    /// The first stand-alone yes or no of the text.
    pub label: Option<bool>,
}

impl Judged {
    /// p+ + p-: how much of the distribution is an answer at all.
    pub fn candidate_mass(&self) -> Option<f64> {
        Some(self.score? + self.negative?)
    }

    /// p+ / (p+ + p-).
    pub fn normalised(&self) -> Option<f64> {
        let mass = self.candidate_mass().filter(|mass| *mass > 0.0)?;
        Some(self.score? / mass)
    }
}

/// Judge an answer to `variants`, one score each.
pub fn judge(said: &Generated, variants: &[String], refused: bool) -> Judged {
    let score = largest(said, variants, true);
    let negative = largest(said, variants, false);
    let label = parse_yes_no(&said.text).filter(|_| !refused);
    let (outcome, reason) = if refused {
        (Outcome::Refused, Some("declined"))
    } else if label.is_none() {
        let reason = match (said.text.trim().is_empty(), said.finish.as_str()) {
            (true, _) => "no_text",
            (false, "length") => "no_yes_or_no_before_the_end",
            (false, _) => "no_yes_or_no",
        };
        (Outcome::Unparseable, Some(reason))
    } else if score.is_none() {
        let known = |s: &VariantLogprob| s.token.is_some();
        let single = said.scores.iter().zip(variants);
        let any = single
            .filter(|(_, variant)| meaning(variant) == Some(true))
            .any(|(score, _)| known(score));
        let reason = if any { "not_told" } else { "no_single_token" };
        (Outcome::ScoreUnavailable, Some(reason))
    } else {
        (Outcome::Ok, None)
    };
    Judged {
        outcome,
        reason,
        score,
        negative,
        label,
    }
}

/// The largest probability among the variants of that meaning that are exactly one token.
fn largest(said: &Generated, variants: &[String], affirmative: bool) -> Option<f64> {
    said.scores
        .iter()
        .zip(variants)
        .filter(|(score, variant)| score.token.is_some() && meaning(variant) == Some(affirmative))
        .filter_map(|(score, _)| score.logprob)
        // A softmax in f32 may end a rounding above one.
        .map(|logprob| logprob.exp().min(1.0))
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::prompting::question::variants;

    /// Token id and probability of some variants; the others are not single tokens.
    fn said(text: &str, finish: &str, told: &[(&str, u32, Option<f64>)]) -> Generated {
        let scores = variants()
            .iter()
            .map(|variant| {
                let found = told.iter().find(|(name, ..)| name == variant);
                VariantLogprob {
                    token: found.map(|(_, token, _)| *token),
                    logprob: found.and_then(|(.., p)| p.map(f64::ln)),
                }
            })
            .collect();
        Generated {
            text: text.into(),
            finish: finish.into(),
            scores,
            prompt_tokens: Vec::new(),
            prompt_length: 0,
            new_tokens: Vec::new(),
            new_length: 0,
        }
    }

    fn judged(text: &str, told: &[(&str, u32, Option<f64>)]) -> Judged {
        judge(&said(text, "end", told), &variants(), false)
    }

    #[test]
    fn the_score_is_the_largest_single_affirmative_token_not_renormalised() {
        let found = judged(
            "Yes.",
            &[
                ("yes", 5, Some(0.1)),
                ("Yes", 6, Some(0.3)),
                (" yes", 7, Some(0.2)),
                ("No", 8, Some(0.2)),
                ("\nno", 9, Some(0.05)),
            ],
        );
        assert!((found.score.expect("told") - 0.3).abs() < 1e-15);
        assert!((found.negative.expect("told") - 0.2).abs() < 1e-15);
        assert!((found.candidate_mass().expect("both") - 0.5).abs() < 1e-15);
        assert!((found.normalised().expect("both") - 0.6).abs() < 1e-15);
        assert_eq!((found.outcome, found.label), (Outcome::Ok, Some(true)));
    }

    #[test]
    fn label_and_score_need_not_agree() {
        let found = judged("No", &[("Yes", 6, Some(0.6)), ("No", 8, Some(0.3))]);
        assert_eq!((found.outcome, found.label), (Outcome::Ok, Some(false)));
        assert!(found.score > Some(0.5));
    }

    #[test]
    fn a_variant_of_several_tokens_does_not_count_whatever_is_said_of_it() {
        let mut answer = said("yes", "stopped", &[("yes", 5, Some(0.1))]);
        let at = variants().iter().position(|v| v == "Yes").expect("there");
        answer.scores[at] = VariantLogprob {
            token: None,
            logprob: Some(-0.01),
        };
        let found = judge(&answer, &variants(), false);
        assert!((found.score.expect("told") - 0.1).abs() < 1e-15);
    }

    #[test]
    fn a_candidate_outside_a_services_list_is_unavailable_and_never_zero() {
        let found = judged("Yes", &[("Yes", 6, None), ("No", 8, Some(0.3))]);
        assert_eq!(found.outcome, Outcome::ScoreUnavailable);
        assert_eq!((found.score, found.reason), (None, Some("not_told")));
        assert_eq!((found.candidate_mass(), found.normalised()), (None, None));
        assert_eq!(found.label, Some(true), "the text is still an answer");
        let none = judged("Yes", &[("No", 8, Some(0.3))]);
        assert_eq!(none.reason, Some("no_single_token"));
        // A sibling variant that was told stands for the answer.
        let some = judged("Yes", &[("Yes", 6, None), (" yes", 7, Some(0.2))]);
        assert_eq!(some.outcome, Outcome::Ok);
        assert_eq!(some.candidate_mass(), None, "nothing negative was told");
    }

    #[test]
    fn what_cannot_be_parsed_keeps_its_score() {
        let told = [("Yes", 6, Some(0.4)), ("No", 8, Some(0.4))];
        for (text, finish, reason) in [
            ("I know", "end", "no_yes_or_no"),
            ("nope", "stopped", "no_yes_or_no"),
            ("Well, this eye", "length", "no_yes_or_no_before_the_end"),
            (" \n", "end", "no_text"),
            ("", "length", "no_text"),
        ] {
            let found = judge(&said(text, finish, &told), &variants(), false);
            assert_eq!(found.outcome, Outcome::Unparseable, "{text:?}");
            assert_eq!((found.label, found.reason), (None, Some(reason)));
            assert!(found.score.is_some());
        }
        let neither = judged("not", &[]);
        assert_eq!(
            (neither.outcome, neither.score),
            (Outcome::Unparseable, None)
        );
    }

    #[test]
    fn the_parser_cases_of_the_specification_reach_the_label() {
        for (text, label) in [
            ("Yes.", Some(true)),
            ("**no**", Some(false)),
            ("No, the disc is pale, yes", Some(false)),
            ("not", None),
            ("nope", None),
            ("I know", None),
            ("YES!", Some(true)),
            ("yes/no", Some(true)),
            ("", None),
            ("no-DR", Some(false)),
        ] {
            assert_eq!(judged(text, &[]).label, label, "{text:?}");
        }
    }

    #[test]
    fn a_refusal_is_no_answer_even_where_its_text_holds_one() {
        let answer = said(
            "No, I cannot help with that",
            "refused",
            &[("No", 8, Some(0.9))],
        );
        let found = judge(&answer, &variants(), true);
        assert_eq!((found.outcome, found.label), (Outcome::Refused, None));
    }

    #[test]
    fn a_probability_rounded_above_one_is_one() {
        let mut answer = said("yes", "end", &[("yes", 5, Some(1.0))]);
        answer.scores[0].logprob = Some(1e-7);
        assert_eq!(judge(&answer, &variants(), false).score, Some(1.0));
    }
}
