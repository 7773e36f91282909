//! The driver: groups to replies.

use super::{Family, argmax, compute, log_softmax, lora, stop};
use crate::lm::{Cache, Features, Prompt, Sequence, common_prefix};
use focus_plugin_sdk::{
    Error, ErrorKind, Finish, GenerateBatch, GenerateReply, GeneratedAnswer, GroupError,
    GroupReply, Host, Timings, VariantScore,
};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

/// An answer in the making.
struct Branch {
    group: usize,
    /// Kept as long as tokens may be fed back.
    cache: Option<Cache>,
    next_place: u32,
    row: Vec<f32>,
    answer: GeneratedAnswer,
    done: bool,
}

/// Answer a call with `family`. A group that fails does so alone; an `Err` concerns the call.
pub fn serve(
    family: &mut dyn Family,
    batch: &GenerateBatch<'_>,
    host: &Host,
) -> Result<GenerateReply, Error> {
    let adapter = batch.request().adapter.as_deref();
    family.adapters().select(adapter).map_err(lora)?;
    let reply = answer(family, batch, host);
    family.adapters().select(None).map_err(lora)?;
    reply
}

fn answer(
    family: &dyn Family,
    batch: &GenerateBatch<'_>,
    host: &Host,
) -> Result<GenerateReply, Error> {
    let request = batch.request();
    let variants = request
        .score
        .iter()
        .map(|text| family.single_token(text))
        .collect::<Result<Vec<_>, _>>()?;
    let mut replies = vec![GroupReply::default(); request.groups.len()];
    let mut looked = BTreeMap::new();
    let mut branches = Vec::new();
    for (number, reply) in replies.iter_mut().enumerate() {
        host.check_cancelled()?;
        let mut timings = Timings::default();
        let opened = open(family, batch, number, &mut looked, &mut timings)
            .and_then(|opened| scored(opened, &variants));
        reply.timings = timings;
        match opened {
            Ok(opened) => branches.extend(opened),
            Err(error) => fail(reply, error),
        }
        host.progress("groups", number as u64 + 1, request.groups.len() as u64);
    }
    for step in 0..request.max_new_tokens {
        if branches.iter().all(|branch| branch.done) {
            break;
        }
        host.check_cancelled()?;
        let last = step + 1 == request.max_new_tokens;
        decode(family, batch, &mut branches, &mut replies, last)?;
    }
    for branch in branches {
        let reply = &mut replies[branch.group];
        if reply.error.is_none() {
            reply.answers.push(branch.answer);
        }
    }
    Ok(GenerateReply { groups: replies })
}

fn fail(reply: &mut GroupReply, error: Error) {
    reply.answers.clear();
    reply.error = Some(GroupError {
        kind: error.kind().0,
        message: error.to_string(),
        hint: error.hint().map(str::to_owned),
    });
}

/// Pictures, prompts and first logits of a group: a branch for each prompt.
fn open(
    family: &dyn Family,
    batch: &GenerateBatch<'_>,
    number: usize,
    looked: &mut BTreeMap<u32, Rc<Features>>,
    timings: &mut Timings,
) -> Result<Vec<Branch>, Error> {
    let request = batch.request();
    let group = &request.groups[number];
    if group.prompts.is_empty() {
        return Ok(Vec::new());
    }
    let start = Instant::now();
    let mut pictures = Vec::new();
    for &index in &group.images {
        let features = match looked.get(&index) {
            Some(features) => Rc::clone(features),
            None => Rc::new(family.look(&batch.pictures()[index as usize])?),
        };
        looked.insert(index, Rc::clone(&features));
        pictures.push(features);
    }
    let pictures: Vec<&Features> = pictures.iter().map(Rc::as_ref).collect();
    timings.vision = milliseconds(start);
    let start = Instant::now();
    let prompts = group
        .prompts
        .iter()
        .map(|text| {
            let prompt = family.render(text, &pictures)?;
            prompt.check(&pictures).map_err(compute)?;
            Ok(prompt)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let branches = prefill(family, &prompts, &pictures, request.max_new_tokens as usize);
    let branches = branches.map_err(compute)?;
    timings.prefill = milliseconds(start);
    let opened = prompts.iter().zip(branches);
    Ok(opened
        .map(|(prompt, (cache, row))| Branch {
            group: number,
            // The last token chosen is not fed back, so an answer of one token needs none.
            cache: (request.max_new_tokens > 1).then_some(cache),
            next_place: prompt.next_place(),
            row,
            answer: GeneratedAnswer {
                text: String::new(),
                finish: Finish::Length,
                scores: Vec::new(),
                prompt_tokens: runs(&prompt.tokens),
                prompt_length: prompt.tokens.len() as u32,
                new_tokens: Vec::new(),
                new_length: 0,
            },
            done: false,
        })
        .collect())
}

/// The common beginning once, then what is each prompt's own, together.
fn prefill(
    family: &dyn Family,
    prompts: &[Prompt],
    pictures: &[&Features],
    new_tokens: usize,
) -> candle_core::Result<Vec<(Cache, Vec<f32>)>> {
    let decoder = family.decoder();
    // The last token chosen is never fed back.
    let capacity = |prompt: &Prompt| prompt.tokens.len() + new_tokens.saturating_sub(1);
    let prefix = match prompts {
        [_] => 0,
        many => common_prefix(many),
    };
    let mut caches = if prefix == 0 {
        let empty = prompts.iter().map(|prompt| decoder.cache(capacity(prompt)));
        empty.collect::<candle_core::Result<Vec<_>>>()?
    } else {
        let mut trunk = decoder.cache(prefix)?;
        let shared = Sequence::of_prompt(&prompts[0], 0..prefix, pictures, Some(&mut trunk));
        decoder.fill(&mut [shared])?;
        let branches = prompts.iter().map(|prompt| trunk.branch(capacity(prompt)));
        branches.collect::<candle_core::Result<_>>()?
    };
    let mut sequences: Vec<_> = prompts
        .iter()
        .zip(&mut caches)
        .map(|(prompt, cache)| {
            Sequence::of_prompt(prompt, prefix..prompt.tokens.len(), pictures, Some(cache))
        })
        .collect();
    let rows = decoder.forward(&mut sequences)?.to_vec2()?;
    Ok(caches.into_iter().zip(rows).collect())
}

/// Scores of the variants at the first position.
fn scored(mut branches: Vec<Branch>, variants: &[Option<u32>]) -> Result<Vec<Branch>, Error> {
    let ids: Vec<u32> = variants.iter().flatten().copied().collect();
    for branch in &mut branches {
        let logs = log_softmax(&branch.row, &ids).ok_or_else(not_finite)?;
        let mut logs = logs.into_iter();
        branch.answer.scores = variants
            .iter()
            .map(|&token| VariantScore {
                token,
                logprob: token.and_then(|_| logs.next()),
            })
            .collect();
    }
    Ok(branches)
}

pub(super) fn not_finite() -> Error {
    Error::internal("The model's logits are not finite")
        .with_hint("Try dtype f32: half types can overflow")
}

/// One token for every answer that is not done; the logits after it, unless it is the last.
fn decode(
    family: &dyn Family,
    batch: &GenerateBatch<'_>,
    branches: &mut [Branch],
    replies: &mut [GroupReply],
    last: bool,
) -> Result<(), Error> {
    let start = Instant::now();
    for branch in branches.iter_mut().filter(|branch| !branch.done) {
        let reply = &mut replies[branch.group];
        if let Err(error) = choose(family, batch, branch) {
            fail(reply, error);
        }
        branch.done |= reply.error.is_some();
        if branch.done {
            branch.cache = None;
        }
    }
    let mut live: Vec<_> = branches.iter_mut().filter(|branch| !branch.done).collect();
    let groups: Vec<usize> = live.iter().map(|branch| branch.group).collect();
    if !last && !live.is_empty() {
        let rows = advance(family, &mut live).map_err(compute)?;
        for (branch, row) in live.iter_mut().zip(rows) {
            branch.row = row;
        }
    }
    // Shared out evenly: the answers went through the same products.
    let share = milliseconds(start) / groups.len().max(1) as f64;
    for group in groups {
        replies[group].timings.decode += share;
    }
    Ok(())
}

/// The likeliest token joins the answer.
fn choose(
    family: &dyn Family,
    batch: &GenerateBatch<'_>,
    branch: &mut Branch,
) -> Result<(), Error> {
    let token = argmax(&branch.row).ok_or_else(not_finite)?;
    let answer = &mut branch.answer;
    answer.new_tokens.push(token);
    answer.new_length += 1;
    if family.end_tokens().contains(&token) {
        answer.finish = Finish::End;
        branch.done = true;
        return Ok(());
    }
    answer.text = family.decode(&answer.new_tokens)?;
    if stop::reached(&batch.request().stop, &answer.text) {
        answer.finish = Finish::Stopped;
        branch.done = true;
    }
    Ok(())
}

fn advance(family: &dyn Family, live: &mut [&mut Branch]) -> candle_core::Result<Vec<Vec<f32>>> {
    let places: Vec<_> = live.iter().map(|branch| [[branch.next_place; 3]]).collect();
    let mut sequences: Vec<_> = live
        .iter_mut()
        .zip(&places)
        .map(|(branch, places)| {
            let from = branch.answer.new_tokens.len() - 1;
            branch.next_place += 1;
            Sequence {
                tokens: &branch.answer.new_tokens[from..],
                places,
                images: Vec::new(),
                cache: Some(branch.cache.as_mut().expect("kept until an answer is done")),
            }
        })
        .collect();
    family.decoder().forward(&mut sequences)?.to_vec2()
}

fn runs(tokens: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &token in tokens {
        match runs.last_mut() {
            Some((same, count)) if *same == token => *count += 1,
            _ => runs.push((token, 1)),
        }
    }
    runs
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// First logits of one prompt on one picture with the adapter chosen now; what proves an adapter.
pub(super) fn first_logits(
    family: &dyn Family,
    picture: &focus_plugin_sdk::Picture<'_>,
    text: &str,
) -> Result<Vec<f32>, Error> {
    let features = family.look(picture)?;
    let prompt = family.render(text, &[&features])?;
    prompt.check(&[&features]).map_err(compute)?;
    let mut opened = prefill(family, &[prompt], &[&features], 0).map_err(compute)?;
    let (_, row) = opened
        .pop()
        .ok_or_else(|| Error::new(ErrorKind::INTERNAL, "A prompt gave no logits"))?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Letters, request};
    use super::*;

    #[test]
    fn caches_live_no_longer_than_they_are_needed() {
        let family = Letters::new();
        let mut asked = request(&[(&[0], &["what?", "whale"])]);
        for (tokens, kept) in [(0, 0), (1, 0), (2, 2)] {
            asked.max_new_tokens = tokens;
            let batch = GenerateBatch::new(&asked, &[&[1; 3], &[2; 3], &[0; 3]]).unwrap();
            let (mut looked, mut timings) = (BTreeMap::new(), Timings::default());
            let mut branches = open(&family, &batch, 0, &mut looked, &mut timings).unwrap();
            let caches =
                |branches: &[Branch]| branches.iter().filter(|b| b.cache.is_some()).count();
            assert_eq!(caches(&branches), kept, "{tokens}");
            if kept > 0 {
                // The first answer ends at once, the other goes on.
                branches[0].row = vec![0.0; 128];
                branches[0].row[0] = f32::MAX;
                branches[1].row[0] = f32::MIN;
                let mut replies = vec![GroupReply::default()];
                decode(&family, &batch, &mut branches, &mut replies, false).unwrap();
                let done: Vec<bool> = branches.iter().map(|b| b.done).collect();
                assert_eq!((done, caches(&branches)), (vec![true, false], 1));
            }
        }
    }
}
