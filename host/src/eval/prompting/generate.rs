//! The expensive stage: every wanted image, with all its prompts as one group, through the generator; each batch appended to the log.
//!
//! A producer thread reads and decodes ahead of the model; memory is bounded by a few batches of pictures. Batches are a function of
//! the wanted list alone: what is cached or answered already decides only whether a batch is asked, never what is in it. The model is
//! given pictures and prompts, and no label, path or id.

use super::picture::PictureSource;
use super::question::Question;
use crate::eval::features::{FeatureCounts, FeatureError, Wanted};
use crate::eval::pixels::{ImageFailure, joined, picture_part};
use crate::progress::Progress;
use focus_models::{AskedGroup, Generator, GroupAnswer};
use focus_plugin_abi::v1::message::{Finish, GeneratedAnswer};
use focus_store::{
    ContentHash, Generated, GenerationCache, GenerationLog, GenerationRow, Outcome, StoreError,
    VariantLogprob,
};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::mpsc::{SyncSender, sync_channel};

/// What the producer hands over, in batch order.
enum Work {
    /// Every image of the batch was in the cache or could not be read.
    Known(Vec<GenerationRow>),
    /// Groups for the model, and what is known of the batch beside them.
    Ask(Vec<AskedGroup>, Known),
}

#[derive(Default)]
struct Known {
    rows: Vec<GenerationRow>,
    asked: HashMap<usize, Image>,
}

/// An image in the model's hands.
struct Image {
    sample: u32,
    id: String,
    hash: Option<ContentHash>,
    note: Option<String>,
}

impl Image {
    /// A row for each prompt.
    fn rows(
        &self,
        question: &Question,
        mut row: impl FnMut(usize, GenerationRow) -> GenerationRow,
    ) -> Vec<GenerationRow> {
        let prompts = question.prompts.iter().enumerate();
        prompts
            .map(|(at, prompt)| {
                let base = GenerationRow {
                    sample: self.sample,
                    prompt: prompt.task.clone(),
                    id: self.id.clone(),
                    content_hash: self.hash,
                    outcome: Outcome::Ok,
                    reason: None,
                    message: self.note.clone(),
                    generated: None,
                };
                row(at, base)
            })
            .collect()
    }

    fn failed(
        &self,
        question: &Question,
        outcome: Outcome,
        reason: &str,
        message: &str,
    ) -> Vec<GenerationRow> {
        self.rows(question, |_, base| GenerationRow {
            outcome,
            reason: Some(reason.into()),
            message: Some(message.into()),
            ..base
        })
    }
}

/// Ask the generator about every wanted image that the log has no answers for.
pub fn generate(
    wanted: &[Wanted],
    source: &dyn PictureSource,
    generator: &mut dyn Generator,
    question: &Question,
    log: &mut GenerationLog,
    cache: Option<&GenerationCache>,
    progress: &dyn Progress,
) -> Result<FeatureCounts, FeatureError> {
    let batch_size = generator.opened().batch_size.max(1) as usize;
    let done = log.done().clone();
    let resumed = wanted.iter().filter(|w| done.contains(&w.sample)).count();
    progress.begin("Asking about images", wanted.len() as u64);
    progress.advance(resumed as u64);
    // Two sides of one thread: the iterator that feeds the generator and the sink that takes its answers.
    let state = RefCell::new(State {
        log,
        question,
        counts: FeatureCounts {
            resumed,
            ..FeatureCounts::default()
        },
        progress,
        waiting: VecDeque::new(),
        failure: None,
    });
    let (sender, receiver) = sync_channel(1);
    let asked = std::thread::scope(|scope| {
        let plan = Plan {
            wanted,
            batch_size,
            done: &done,
            question,
        };
        scope.spawn(move || produce(&plan, source, cache, &sender));
        let mut batches = std::iter::from_fn(|| {
            loop {
                match receiver.recv().ok()? {
                    Work::Known(rows) => {
                        let mut state = state.borrow_mut();
                        let answered = rows.iter().filter(|row| !row.outcome.is_error()).count();
                        state.counts.cached += answered / question.prompts.len();
                        if let Err(error) = state.append(rows) {
                            state.failure = Some(error);
                            return None;
                        }
                    }
                    Work::Ask(groups, known) => {
                        state.borrow_mut().waiting.push_back(known);
                        return Some(groups);
                    }
                }
            }
        });
        let mut sink = |answers: Vec<GroupAnswer>| Ok(state.borrow_mut().answered(answers)?);
        let asked = generator.generate_all(&question.ask, &mut batches, &mut sink);
        // Unblocks a producer that still has work when the generator gave up.
        drop(receiver);
        asked
    });
    let State {
        counts, failure, ..
    } = state.into_inner();
    if let Some(error) = failure {
        return Err(error.into());
    }
    asked?;
    progress.end(&format!(
        "{} images, {} prompts each: {} asked, {} from the cache, {} answered before, {} failed",
        wanted.len(),
        question.prompts.len(),
        counts.computed,
        counts.cached,
        counts.resumed,
        counts.failed
    ));
    Ok(counts)
}

struct State<'a> {
    log: &'a mut GenerationLog,
    question: &'a Question,
    counts: FeatureCounts,
    progress: &'a dyn Progress,
    waiting: VecDeque<Known>,
    failure: Option<StoreError>,
}

impl State<'_> {
    /// Answers of the oldest batch in flight.
    fn answered(&mut self, answers: Vec<GroupAnswer>) -> Result<(), StoreError> {
        let mut known = self
            .waiting
            .pop_front()
            .expect("answers come in the order of the batches asked");
        for answer in answers {
            let image = known
                .asked
                .remove(&answer.sample)
                .expect("an answer is for an image that was asked about");
            let rows = rows_of(answer, &image, self.question);
            let fresh = !self.log.done().contains(&image.sample);
            self.counts.computed += usize::from(fresh && !rows[0].outcome.is_error());
            known.rows.extend(rows);
        }
        self.append(known.rows)
    }

    /// Append what is new: a batch that was partly known is asked whole, but answered once.
    fn append(&mut self, mut rows: Vec<GenerationRow>) -> Result<(), StoreError> {
        rows.retain(|row| !self.log.done().contains(&row.sample));
        // Stable: the prompts of a sample stay in order.
        rows.sort_by_key(|row| row.sample);
        let prompts = self.question.prompts.len();
        let failed = rows.iter().filter(|row| row.outcome.is_error()).count();
        self.counts.failed += failed / prompts;
        self.log.append(&rows)?;
        self.progress.advance((rows.len() / prompts) as u64);
        Ok(())
    }
}

fn rows_of(answer: GroupAnswer, image: &Image, question: &Question) -> Vec<GenerationRow> {
    let answers = match answer.result {
        Ok(answers) => answers,
        Err(error) => {
            return image.failed(
                question,
                Outcome::ModelError,
                error.kind.name(),
                &error.message,
            );
        }
    };
    let variants = question.ask.score.len();
    let fits = answers.len() == question.prompts.len()
        && answers.iter().all(|answer| answer.scores.len() == variants);
    if !fits {
        let message = "The model did not answer each prompt with a score for each variant";
        return image.failed(question, Outcome::ModelError, "bad_reply", message);
    }
    let mut answers = answers.into_iter();
    image.rows(question, |_, base| {
        let answer = answers.next().expect("counted above");
        GenerationRow {
            outcome: match answer.finish {
                Finish::Refused => Outcome::Refused,
                Finish::End | Finish::Stopped | Finish::Length => Outcome::Ok,
            },
            generated: Some(generated(answer)),
            ..base
        }
    })
}

fn generated(answer: GeneratedAnswer) -> Generated {
    let finish = match answer.finish {
        Finish::End => "end",
        Finish::Stopped => "stopped",
        Finish::Length => "length",
        Finish::Refused => "refused",
    };
    let score = |score: focus_plugin_abi::v1::message::VariantScore| VariantLogprob {
        token: score.token,
        logprob: score.logprob,
    };
    Generated {
        text: answer.text,
        finish: finish.into(),
        scores: answer.scores.into_iter().map(score).collect(),
        prompt_tokens: answer.prompt_tokens,
        prompt_length: answer.prompt_length,
        new_tokens: answer.new_tokens,
        new_length: answer.new_length,
    }
}

/// Which batches there are.
struct Plan<'a> {
    wanted: &'a [Wanted],
    batch_size: usize,
    done: &'a BTreeSet<u32>,
    question: &'a Question,
}

/// Runs on a thread of its own; ends when all batches are handed over or the receiver is gone.
fn produce(
    plan: &Plan<'_>,
    source: &dyn PictureSource,
    cache: Option<&GenerationCache>,
    sender: &SyncSender<Work>,
) {
    for batch in plan.wanted.chunks(plan.batch_size) {
        if batch
            .iter()
            .all(|wanted| plan.done.contains(&wanted.sample))
        {
            continue;
        }
        if sender
            .send(prepare_batch(batch, plan.question, source, cache))
            .is_err()
        {
            return;
        }
    }
}

fn prepare_batch(
    batch: &[Wanted],
    question: &Question,
    source: &dyn PictureSource,
    cache: Option<&GenerationCache>,
) -> Work {
    let read: Vec<_> = batch
        .par_iter()
        .map(|wanted| (wanted, source.read(wanted.sample)))
        .collect();
    let mut known = Known::default();
    let mut readable = Vec::with_capacity(batch.len());
    for (wanted, result) in read {
        let image = |hash, note| Image {
            sample: wanted.sample,
            id: wanted.id.clone(),
            hash,
            note,
        };
        match result {
            Ok(file) => readable.push((image(Some(file.hash), file.note), file.hash, file.bytes)),
            Err(failure) => known
                .rows
                .extend(unreadable(&image(None, None), question, &failure)),
        }
    }
    if let Some(rows) = all_cached(&readable, question, cache) {
        known.rows.extend(rows);
        return Work::Known(known.rows);
    }
    let shown: Vec<_> = readable
        .into_par_iter()
        .map(|(image, hash, bytes)| (image, source.show(&bytes, hash)))
        .collect();
    let mut groups = Vec::with_capacity(shown.len());
    for (mut image, result) in shown {
        match result {
            Ok(shown) => {
                let sample = image.sample as usize;
                image.note = joined(image.note.as_deref(), shown.note.as_deref());
                known.asked.insert(sample, image);
                groups.push(AskedGroup {
                    sample,
                    pictures: vec![shown.picture],
                    prompts: question.texts(),
                });
            }
            Err(failure) => known.rows.extend(unreadable(&image, question, &failure)),
        }
    }
    if groups.is_empty() {
        Work::Known(known.rows)
    } else {
        Work::Ask(groups, known)
    }
}

/// The rows of these images; `None` unless the cache has every one.
fn all_cached(
    readable: &[(Image, ContentHash, Vec<u8>)],
    question: &Question,
    cache: Option<&GenerationCache>,
) -> Option<Vec<GenerationRow>> {
    let cache = cache?;
    let mut rows = Vec::new();
    for (image, hash, _) in readable {
        let found = cache.get(*hash)?;
        rows.extend(image.rows(question, |at, base| GenerationRow {
            message: joined(image.note.as_deref(), found[at].message.as_deref()),
            outcome: found[at].outcome,
            generated: found[at].generated.clone(),
            ..base
        }));
    }
    Some(rows)
}

fn unreadable(image: &Image, question: &Question, failure: &ImageFailure) -> Vec<GenerationRow> {
    image.failed(
        question,
        Outcome::ImageError,
        &failure.reason,
        &failure.message,
    )
}

/// A finished run's rows as a cache takes them: without errors, and without what only the file's name tells.
pub fn cacheable(rows: &[GenerationRow], prompts: usize) -> Vec<(ContentHash, Vec<GenerationRow>)> {
    rows.chunks(prompts)
        .filter(|group| group.iter().all(|row| !row.outcome.is_error()))
        .filter_map(|group| {
            let mut group = group.to_vec();
            for row in &mut group {
                row.message = row
                    .message
                    .as_deref()
                    .and_then(picture_part)
                    .map(str::to_owned);
            }
            Some((group[0].content_hash?, group))
        })
        .collect()
}
