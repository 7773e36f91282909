//! `generator.generate`. Must not know of adapters.

use super::{say, take};
use crate::{
    Error, ErrorKind, GenerateBatch, GenerateReply, GenerateRequest, Generator, GroupError,
    GroupReply, Host, Timings,
};
use arrow_array::{Array as _, BinaryArray};
use focus_plugin_abi::v1::Message;

pub(super) fn generate(
    generator: &mut dyn Generator,
    message: Message,
    host: &Host,
) -> Result<Message, Error> {
    let (request, [pictures]): (GenerateRequest, _) = take("generate", message)?;
    let pictures = pictures.import()?;
    let binary = pictures.as_any().downcast_ref::<BinaryArray>();
    let Some(binary) = binary.filter(|a| a.null_count() == 0) else {
        return Err(Error::invalid_request(format!(
            "Wrong array of pictures: expected Binary without nulls, found {} rows of {}",
            pictures.len(),
            pictures.data_type()
        )));
    };
    let bytes: Vec<&[u8]> = binary.iter().flatten().collect();
    let batch = GenerateBatch::new(&request, &bytes)?;
    let mut reply = generator.generate(&batch, host)?;
    check(&request, &reply)?;
    for group in &mut reply.groups {
        deny_nan(group);
    }
    say(&reply)
}

/// JSON would turn a number that is not finite into a missing one. A log probability like that fails its group; times are no
/// results, and count as 0.
fn deny_nan(group: &mut GroupReply) {
    let Timings {
        vision,
        prefill,
        decode,
    } = &mut group.timings;
    for time in [vision, prefill, decode] {
        if !time.is_finite() {
            *time = 0.0;
        }
    }
    let scores = group.answers.iter().flat_map(|answer| &answer.scores);
    let found = scores
        .filter_map(|score| score.logprob)
        .find(|value| !value.is_finite());
    if let Some(found) = found {
        group.answers.clear();
        group.error = Some(GroupError {
            kind: ErrorKind::INTERNAL.0,
            message: format!("Model gave a log probability that is not finite: {found}"),
            hint: Some("Take the logarithm of the softmax at once, in f32 or wider".into()),
        });
    }
}

/// A model that loses count is told here, where its author looks first. Values are for the host to judge.
fn check(request: &GenerateRequest, reply: &GenerateReply) -> Result<(), Error> {
    let wrong = |what: String, expected: usize, found: usize| {
        Err(Error::internal(format!(
            "Model answered with the wrong number of {what}: expected {expected}, found {found}"
        )))
    };
    if reply.groups.len() != request.groups.len() {
        return wrong("groups".into(), request.groups.len(), reply.groups.len());
    }
    for (number, (asked, answered)) in request.groups.iter().zip(&reply.groups).enumerate() {
        let expected = match &answered.error {
            None => asked.prompts.len(),
            Some(_) => 0,
        };
        if answered.answers.len() != expected {
            let what = format!("answers for group {number}");
            return wrong(what, expected, answered.answers.len());
        }
        for (prompt, answer) in answered.answers.iter().enumerate() {
            if answer.scores.len() != request.score.len() {
                let what = format!("scores for prompt {prompt} of group {number}");
                return wrong(what, request.score.len(), answer.scores.len());
            }
        }
    }
    Ok(())
}
