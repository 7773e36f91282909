//! Groups of pictures and prompts: what is asked, how it lies in memory, and what must come back. Knows no embeddings.

use super::{MAX_BATCH, MAX_SIDE, header};
use crate::error::{MESSAGE_CAP, capped, wire_error};
use crate::{Ask, AskedGroup, FullPicture, GroupAnswer, ModelError};
use focus_os::shm;
use focus_plugin_abi::v1::message::{
    GenerateReply, GenerateRequest, GeneratedAnswer, GroupError, GroupReply, ImageSize,
    OpenedModel, PixelMode, PromptGroup,
};
use focus_wire::{FailureKind, Reply, WireError};
use std::sync::Arc;

/// Longest text of one answer, bytes.
const MAX_TEXT: usize = 1 << 20;
/// How far above 0 rounding may lift a log probability.
const LOGPROB_SLACK: f64 = 1e-3;

/// The bounds of every generate call to one open model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    batch_size: u32,
    /// The card's size, where the host resizes.
    size: Option<(u32, u32)>,
    /// Most bytes of pictures in one call.
    most: u64,
    slots: u32,
}

/// The pictures of a call, each once, and what each group sees of them.
struct Laid<'a> {
    pictures: Vec<&'a FullPicture>,
    indices: Vec<Vec<u32>>,
}

fn distinct<'a>(groups: &[&'a AskedGroup]) -> Laid<'a> {
    let mut pictures: Vec<&FullPicture> = Vec::new();
    let mut index = |picture: &'a FullPicture| {
        let known = pictures.iter().position(|known| {
            Arc::ptr_eq(&known.rgb, &picture.rgb)
                && (known.width, known.height) == (picture.width, picture.height)
        });
        known.unwrap_or_else(|| {
            pictures.push(picture);
            pictures.len() - 1
        }) as u32
    };
    let indices = groups
        .iter()
        .map(|group| group.pictures.iter().map(&mut index).collect())
        .collect();
    Laid { pictures, indices }
}

impl GroupPlan {
    /// `slots`: how many batches lie in memory at once.
    pub(crate) fn new(opened: &OpenedModel, slots: u32) -> Result<Self, WireError> {
        if opened.batch_size == 0 || opened.batch_size > MAX_BATCH {
            return Err(wire_error(
                FailureKind::BadReply,
                format!(
                    "Opened model `{}`: batch size must be 1 to {MAX_BATCH}, found {}",
                    opened.model, opened.batch_size
                ),
            ));
        }
        let card = &opened.preprocessing;
        Ok(Self {
            batch_size: opened.batch_size,
            size: (card.mode == PixelMode::Resized).then_some((card.width, card.height)),
            // Arrow's Binary counts bytes in i32.
            most: (shm::MAX_BYTES / u64::from(slots.max(1))).min(i32::MAX as u64),
            slots: slots.max(1),
        })
    }

    /// The caller's batch must fit.
    pub(crate) fn admit(&self, model: &str, groups: &[AskedGroup]) -> Result<(), ModelError> {
        let bad = |expected: String, found: String| {
            Err(ModelError::BadBatch {
                model: model.to_owned(),
                expected,
                found,
            })
        };
        if groups.len() > self.batch_size as usize {
            return bad(
                format!("at most {} groups", self.batch_size),
                format!("{} groups", groups.len()),
            );
        }
        for (number, group) in groups.iter().enumerate() {
            let sample = group.sample;
            if group.prompts.is_empty() {
                return bad(
                    "at least one prompt a group".into(),
                    format!("none for sample {sample}"),
                );
            }
            for picture in &group.pictures {
                let (width, height) = (picture.width, picture.height);
                let sides = 1..=MAX_SIDE;
                if !sides.contains(&width) || !sides.contains(&height) {
                    return bad(
                        format!("sides of 1 to {MAX_SIDE} pixels"),
                        format!("{width} x {height} for sample {sample}"),
                    );
                }
                if let Some(size) = self.size.filter(|size| *size != (width, height)) {
                    return bad(
                        format!("pictures of {} x {} pixels", size.0, size.1),
                        format!("{width} x {height} for sample {sample}"),
                    );
                }
                let bytes = width as usize * height as usize * 3;
                if picture.rgb.len() != bytes {
                    return bad(
                        format!("{bytes} bytes for a picture of {width} x {height}"),
                        format!("{} bytes for sample {sample}", picture.rgb.len()),
                    );
                }
            }
            let so_far: Vec<&AskedGroup> = groups[..=number].iter().collect();
            let bytes = self.bytes(&so_far);
            if bytes > self.most {
                return bad(
                    format!("at most {} bytes of pictures in a call", self.most),
                    format!("{bytes} bytes with sample {sample}"),
                );
            }
        }
        Ok(())
    }

    /// Bytes that the pictures of a call take.
    pub(crate) fn bytes(&self, groups: &[&AskedGroup]) -> u64 {
        let pictures = distinct(groups).pictures;
        pictures
            .iter()
            .map(|picture| picture.rgb.len() as u64)
            .sum()
    }

    /// Bytes of a slot for a call of `bytes`: a power of two, so that slots seldom grow.
    pub(crate) fn slot_bytes(&self, bytes: u64) -> u64 {
        bytes
            .next_power_of_two()
            .min(shm::MAX_BYTES / u64::from(self.slots))
    }

    /// Lay the pictures one after the other into `memory`, which [`Self::bytes`] measured.
    pub(crate) fn lay(&self, memory: &mut [u8], groups: &[&AskedGroup]) {
        let mut at = 0;
        for picture in distinct(groups).pictures {
            memory[at..][..picture.rgb.len()].copy_from_slice(&picture.rgb);
            at += picture.rgb.len();
        }
    }

    /// Header of the call.
    pub(crate) fn header(
        &self,
        model: &str,
        ask: &Ask,
        groups: &[&AskedGroup],
    ) -> Result<String, ModelError> {
        let Laid { pictures, indices } = distinct(groups);
        let request = GenerateRequest {
            images: pictures
                .iter()
                .map(|picture| ImageSize {
                    width: picture.width,
                    height: picture.height,
                })
                .collect(),
            groups: groups
                .iter()
                .zip(indices)
                .map(|(group, images)| PromptGroup {
                    images,
                    prompts: group.prompts.clone(),
                })
                .collect(),
            adapter: ask.adapter.clone(),
            score: ask.score.clone(),
            max_new_tokens: ask.max_new_tokens,
            stop: ask.stop.clone(),
        };
        header(model, &request)
    }

    /// The reply as a whole must have as many groups as asked; a group that breaks the contract fails alone.
    pub(crate) fn check(
        &self,
        ask: &Ask,
        groups: &[&AskedGroup],
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
    use crate::fake::{opened, opened_generator};
    use focus_plugin_abi::v1::message::{Finish, VariantScore};

    fn picture(width: u32, height: u32, value: u8) -> FullPicture {
        FullPicture {
            width,
            height,
            rgb: vec![value; (width * height * 3) as usize].into(),
        }
    }

    fn group(sample: usize, pictures: Vec<FullPicture>) -> AskedGroup {
        AskedGroup {
            sample,
            pictures,
            prompts: vec!["a".into(), "b".into()],
        }
    }

    fn plan() -> GroupPlan {
        GroupPlan::new(&opened_generator(3), 2).expect("fits")
    }

    #[test]
    fn a_picture_that_groups_share_lies_there_once() {
        let (one, two) = (picture(1, 1, 7), picture(2, 1, 9));
        let groups = [
            group(0, vec![one.clone()]),
            group(1, vec![two, one.clone()]),
            group(2, Vec::new()),
        ];
        let groups: Vec<&AskedGroup> = groups.iter().collect();
        assert_eq!(plan().bytes(&groups), 9);
        let mut memory = [0; 10];
        plan().lay(&mut memory, &groups);
        assert_eq!(memory, [7, 7, 7, 9, 9, 9, 9, 9, 9, 0]);
        let header = plan().header("m", &Ask::default(), &groups).expect("short");
        let request: GenerateRequest = serde_json::from_str(&header).expect("JSON");
        let seen: Vec<_> = request.groups.iter().map(|g| g.images.clone()).collect();
        assert_eq!(seen, [vec![0], vec![1, 0], vec![]]);
        assert_eq!(request.images.len(), 2);
    }

    #[test]
    fn batches_that_do_not_fit_name_the_sample() {
        let message = |plan: GroupPlan, groups: &[AskedGroup]| {
            plan.admit("m", groups).expect_err("refused").to_string()
        };
        let good = || group(5, vec![picture(2, 2, 0)]);
        plan().admit("m", &[good(), good(), good()]).expect("fits");
        let many = [good(), good(), good(), good()];
        assert!(message(plan(), &many).ends_with("at most 3 groups, found 4 groups"));
        let mut short = good();
        short.pictures[0].width = 3;
        assert!(message(plan(), &[short]).ends_with("found 12 bytes for sample 5"));
        let none = group(6, vec![picture(0, 2, 0)]);
        assert!(message(plan(), &[none]).ends_with("found 0 x 2 for sample 6"));
        let silent = AskedGroup {
            prompts: Vec::new(),
            ..good()
        };
        assert!(message(plan(), &[silent]).ends_with("none for sample 5"));
        let small = GroupPlan { most: 20, ..plan() };
        let two = [good(), group(9, vec![picture(2, 2, 1)])];
        assert!(
            message(small, &two)
                .ends_with("at most 20 bytes of pictures in a call, found 24 bytes with sample 9")
        );
        let resized = GroupPlan::new(&opened(1, 0, 2, 1), 2).expect("fits");
        assert!(
            message(resized, &[good()])
                .ends_with("pictures of 2 x 1 pixels, found 2 x 2 for sample 5")
        );
    }

    #[test]
    fn slots_grow_by_powers_of_two_within_the_cap() {
        assert_eq!(plan().slot_bytes(5), 8);
        assert_eq!(plan().slot_bytes(i32::MAX as u64), 1 << 31);
        let many = GroupPlan::new(&opened_generator(1), 5).expect("fits");
        assert!(many.slot_bytes(many.most) * 5 <= shm::MAX_BYTES);
        assert!(many.slot_bytes(many.most) >= many.most);
    }

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
        let groups = [group(1, Vec::new()), group(2, Vec::new())];
        let header = serde_json::to_string(&GenerateReply { groups: replies }).expect("JSON");
        let reply = Reply {
            header,
            matrix: None,
        };
        plan().check(&ask, &groups.iter().collect::<Vec<_>>(), &reply)
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
