//! What comes back about groups of pictures and prompts. Knows no memory.

use crate::error::{MESSAGE_CAP, capped, wire_error};
use crate::{Ask, AskedGroup, GroupAnswer};
use focus_plugin_abi::v1::message::{GenerateReply, GeneratedAnswer, GroupError, GroupReply};
use focus_wire::{FailureKind, Reply, WireError};

/// Longest text of one answer, bytes.
const MAX_TEXT: usize = 1 << 20;
/// How far above 0 rounding may lift a log probability.
const LOGPROB_SLACK: f64 = 1e-3;

/// The reply as a whole must have as many groups as asked; a group that breaks the contract fails alone.
pub(crate) fn group_answers(
    ask: &Ask,
    groups: &[AskedGroup],
    reply: &Reply,
) -> Result<Vec<GroupAnswer>, WireError> {
    let reply: GenerateReply = serde_json::from_str(&reply.header).map_err(|error| {
        wire_error(
            FailureKind::BadReply,
            format!("Header of the reply cannot be read: {error}"),
        )
    })?;
    if reply.groups.len() != groups.len() {
        return Err(wire_error(
            FailureKind::BadReply,
            format!(
                "Reply has the wrong number of groups: expected {}, found {}",
                groups.len(),
                reply.groups.len()
            ),
        ));
    }
    Ok(groups
        .iter()
        .zip(reply.groups)
        .map(|(group, reply)| GroupAnswer {
            sample: group.sample,
            timings: reply.timings,
            result: answers(ask, group, reply),
        })
        .collect())
}

fn answers(
    ask: &Ask,
    group: &AskedGroup,
    reply: GroupReply,
) -> Result<Vec<GeneratedAnswer>, WireError> {
    let bad = |what: String| Err(wire_error(FailureKind::BadReply, what));
    if let Some(error) = reply.error {
        return Err(reported(error));
    }
    if reply.answers.len() != group.prompts.len() {
        return bad(format!(
            "Group has the wrong number of answers: expected {}, found {}",
            group.prompts.len(),
            reply.answers.len()
        ));
    }
    for (prompt, answer) in reply.answers.iter().enumerate() {
        if answer.scores.len() != ask.score.len() {
            return bad(format!(
                "Answer to prompt {prompt} has the wrong number of scores: expected {}, found {}",
                ask.score.len(),
                answer.scores.len()
            ));
        }
        let mut told = answer.scores.iter().filter_map(|score| score.logprob);
        if let Some(found) = told.find(|p| !p.is_finite() || *p > LOGPROB_SLACK) {
            return bad(format!(
                "Answer to prompt {prompt} has a false log probability: expected at most 0, found {found}"
            ));
        }
        if answer.text.len() > MAX_TEXT {
            return bad(format!(
                "Answer to prompt {prompt} is too long: expected at most {MAX_TEXT} bytes, found {}",
                answer.text.len()
            ));
        }
    }
    Ok(reply.answers)
}

/// A group's error as the plugin reported it, under the rules of an error of a whole call.
fn reported(error: GroupError) -> WireError {
    let hint = error.hint.map(|hint| capped(&hint, MESSAGE_CAP));
    let (kind, message) = match FailureKind::of_plugin(error.kind) {
        Some(kind) => (kind, error.message),
        None => (
            FailureKind::Internal,
            format!(
                "{} (error kind {}, unknown to this host)",
                error.message, error.kind
            ),
        ),
    };
    WireError {
        hint,
        ..wire_error(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use focus_plugin_abi::v1::message::{Finish, VariantScore};

    fn answer(logprob: Option<f64>, text: &str) -> GeneratedAnswer {
        GeneratedAnswer {
            text: text.into(),
            finish: Finish::End,
            scores: vec![VariantScore {
                token: Some(1),
                logprob,
            }],
            prompt_tokens: Vec::new(),
            prompt_length: 0,
            new_tokens: Vec::new(),
            new_length: 0,
        }
    }

    fn checked(replies: Vec<GroupReply>) -> Result<Vec<GroupAnswer>, WireError> {
        let ask = Ask {
            score: vec!["yes".into()],
            ..Ask::default()
        };
        let groups = [1, 2].map(|sample| AskedGroup {
            sample,
            pictures: Vec::new(),
            prompts: vec!["a".into(), "b".into()],
        });
        let header = serde_json::to_string(&GenerateReply { groups: replies }).expect("JSON");
        let reply = Reply {
            header,
            matrix: None,
        };
        group_answers(&ask, &groups, &reply)
    }

    fn reply(answers: Vec<GeneratedAnswer>) -> GroupReply {
        GroupReply {
            answers,
            ..GroupReply::default()
        }
    }

    #[test]
    fn a_group_that_breaks_the_contract_fails_alone() {
        let good = || reply(vec![answer(Some(-1.0), "x"), answer(None, "")]);
        let unscored = GeneratedAnswer {
            scores: Vec::new(),
            ..answer(None, "")
        };
        let long = "x".repeat(MAX_TEXT + 1);
        let error = |kind| GroupReply {
            error: Some(GroupError {
                kind,
                message: "no".into(),
                hint: Some("h".into()),
            }),
            ..GroupReply::default()
        };
        for (spoilt, kind, word) in [
            (
                reply(vec![answer(None, "")]),
                FailureKind::BadReply,
                "answers: expected 2, found 1",
            ),
            (
                reply(vec![answer(None, ""), unscored]),
                FailureKind::BadReply,
                "prompt 1 has the wrong number of scores",
            ),
            (
                reply(vec![answer(Some(0.01), ""), answer(None, "")]),
                FailureKind::BadReply,
                "found 0.01",
            ),
            (
                reply(vec![answer(None, &long), answer(None, "")]),
                FailureKind::BadReply,
                "too long",
            ),
            (error(4), FailureKind::Image, "no"),
            (error(101), FailureKind::Internal, "error kind 101, unknown"),
        ] {
            let seen = checked(vec![good(), spoilt]).expect("the call is well");
            assert_eq!((seen[0].sample, seen[1].sample), (1, 2));
            assert_eq!(seen[0].result.as_ref().map(Vec::len), Ok(2));
            let error = seen[1].result.as_ref().expect_err(word);
            assert_eq!(error.kind, kind);
            assert!(error.message.contains(word), "{error}");
        }
        let rounded = reply(vec![answer(Some(1e-6), ""), answer(Some(-800.0), "")]);
        assert!(
            checked(vec![good(), rounded]).expect("well")[1]
                .result
                .is_ok()
        );
    }

    #[test]
    fn a_reply_of_another_number_of_groups_is_no_reply() {
        let error = checked(vec![reply(Vec::new())]).expect_err("one short");
        assert_eq!(
            error.message,
            "Reply has the wrong number of groups: expected 2, found 1"
        );
    }
}
