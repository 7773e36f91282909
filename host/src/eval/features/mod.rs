//! The one expensive stage: every wanted image through the encoder, each batch appended to the answer log.
//!
//! A producer thread reads, hashes, decodes and resizes ahead of the model; memory is bounded by a few batches, whatever the
//! dataset's size. Batches are a function of the wanted list alone: what is cached or answered already decides only whether a
//! batch is computed, never what is in it, so an embedding never depends on how often a run was interrupted.

use super::pixels::{FileBytes, ImageFailure, PixelSource, joined};
use crate::progress::Progress;
use focus_models::{Answer, ImageEncoder, ModelError, PixelBatch, PreparedImage};
use focus_store::{
    AnswerLog, AnswerRow, CachedEmbedding, ContentHash, EmbeddingCache, Outcome, StoreError,
};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::mpsc::{SyncSender, sync_channel};

/// One image to ask the model about.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Index in the records.
    pub sample: u32,
    /// Opaque id.
    pub id: String,
}

/// What the stage did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct FeatureCounts {
    /// Answered in an earlier attempt at this run.
    pub resumed: usize,
    /// Embeddings found in the cache.
    pub cached: usize,
    /// Embeddings computed.
    pub computed: usize,
    /// Images that could not be read or that the model failed on.
    pub failed: usize,
}

/// The stage failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum FeatureError {
    /// The model.
    #[error(transparent)]
    Model(ModelError),
    /// The log or the cache.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ModelError> for FeatureError {
    /// A stream's sink only ever fails with the store's error: given back as what it is.
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Sink(inner) => match inner.downcast::<StoreError>() {
                Ok(store) => Self::Store(*store),
                Err(other) => Self::Model(ModelError::Sink(other)),
            },
            other => Self::Model(other),
        }
    }
}

/// What the producer hands over, in batch order.
enum Work {
    /// Every image of the batch was in the cache or could not be read.
    Known(Vec<AnswerRow>),
    /// A batch for the model, and rows of it that are settled (unreadable images).
    Compute(PixelBatch, Known),
}

/// What is known of a batch beside its pixels.
#[derive(Default)]
struct Known {
    rows: Vec<AnswerRow>,
    asked: HashMap<usize, Asked>,
}

/// An image in the model's hands.
struct Asked {
    id: String,
    hash: ContentHash,
    note: Option<String>,
}

/// Ask the encoder about every wanted image that the log has no answer for.
pub fn extract(
    wanted: &[Wanted],
    source: &dyn PixelSource,
    encoder: &mut dyn ImageEncoder,
    log: &mut AnswerLog,
    cache: Option<&EmbeddingCache>,
    progress: &dyn Progress,
) -> Result<FeatureCounts, FeatureError> {
    let batch_size = encoder.opened().batch_size.max(1) as usize;
    let dim = log.dim();
    let done = log.done().clone();
    let resumed = wanted.iter().filter(|w| done.contains(&w.sample)).count();
    progress.begin("Embedding images", wanted.len() as u64);
    progress.advance(resumed as u64);
    let counts = FeatureCounts {
        resumed,
        ..FeatureCounts::default()
    };
    // Two sides of one thread: the iterator that feeds the encoder and the sink that takes its answers.
    let state = RefCell::new(State {
        log,
        counts,
        progress,
        waiting: VecDeque::new(),
        failure: None,
    });
    let (sender, receiver) = sync_channel(1);
    let encoded = std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            produce(
                &Plan {
                    wanted,
                    batch_size,
                    dim,
                    done,
                },
                source,
                cache,
                &sender,
            );
        });
        let mut batches = std::iter::from_fn(|| {
            loop {
                match receiver.recv().ok()? {
                    Err(error) => {
                        state.borrow_mut().failure = Some(error);
                        return None;
                    }
                    Ok(Work::Known(rows)) => {
                        let mut state = state.borrow_mut();
                        let found = rows.iter().filter(|row| row.outcome == Outcome::Ok).count();
                        state.counts.cached += found;
                        if let Err(error) = state.append(rows) {
                            state.failure = Some(error);
                            return None;
                        }
                    }
                    Ok(Work::Compute(batch, known)) => {
                        state.borrow_mut().waiting.push_back(known);
                        return Some(batch);
                    }
                }
            }
        });
        let mut sink = |answers: Vec<Answer>| Ok(state.borrow_mut().answered(answers)?);
        let encoded = encoder.encode_all(&mut batches, &mut sink);
        // Unblocks a producer that still has work when the encoder gave up.
        drop(receiver);
        encoded
    });
    let State {
        counts, failure, ..
    } = state.into_inner();
    if let Some(error) = failure {
        return Err(error.into());
    }
    encoded?;
    progress.end(&format!(
        "{} images: {} computed, {} from the cache, {} answered before, {} failed",
        wanted.len(),
        counts.computed,
        counts.cached,
        counts.resumed,
        counts.failed
    ));
    Ok(counts)
}

struct State<'a> {
    log: &'a mut AnswerLog,
    counts: FeatureCounts,
    progress: &'a dyn Progress,
    waiting: VecDeque<Known>,
    failure: Option<StoreError>,
}

impl State<'_> {
    /// Answers of the oldest batch in flight.
    fn answered(&mut self, answers: Vec<Answer>) -> Result<(), StoreError> {
        let mut known = self
            .waiting
            .pop_front()
            .expect("answers come in the order of the batches asked");
        for answer in answers {
            let asked = known
                .asked
                .remove(&answer.sample)
                .expect("an answer is for an image that was asked about");
            known.rows.push(row_of(answer, asked));
        }
        let fresh = known
            .rows
            .iter()
            .filter(|row| row.outcome == Outcome::Ok && !self.log.done().contains(&row.sample));
        self.counts.computed += fresh.count();
        self.append(known.rows)
    }

    /// Append what is new: a batch that was partly known is computed whole, but answered once.
    fn append(&mut self, mut rows: Vec<AnswerRow>) -> Result<(), StoreError> {
        rows.retain(|row| !self.log.done().contains(&row.sample));
        rows.sort_by_key(|row| row.sample);
        self.counts.failed += rows.iter().filter(|row| row.outcome != Outcome::Ok).count();
        self.log.append(&rows)?;
        self.progress.advance(rows.len() as u64);
        Ok(())
    }
}

fn row_of(answer: Answer, asked: Asked) -> AnswerRow {
    let sample = u32::try_from(answer.sample).expect("sample indices are u32");
    let base = AnswerRow {
        sample,
        id: asked.id,
        content_hash: Some(asked.hash),
        outcome: Outcome::Ok,
        reason: None,
        message: None,
        embedding: None,
    };
    match answer.result {
        Ok(embedding) => AnswerRow {
            embedding: Some(embedding),
            message: asked.note,
            ..base
        },
        Err(error) => AnswerRow {
            outcome: Outcome::ModelError,
            reason: Some(error.kind.name().into()),
            message: Some(error.message),
            ..base
        },
    }
}

/// Which batches there are.
struct Plan<'a> {
    wanted: &'a [Wanted],
    batch_size: usize,
    dim: usize,
    done: &'a BTreeSet<u32>,
}

/// Runs on a thread of its own; ends when all batches are handed over or the receiver is gone.
fn produce(
    plan: &Plan<'_>,
    source: &dyn PixelSource,
    cache: Option<&EmbeddingCache>,
    sender: &SyncSender<Result<Work, StoreError>>,
) {
    for batch in plan.wanted.chunks(plan.batch_size) {
        if batch
            .iter()
            .all(|wanted| plan.done.contains(&wanted.sample))
        {
            continue;
        }
        let work = prepare_batch(batch, plan.dim, source, cache);
        let failed = work.is_err();
        if sender.send(work).is_err() || failed {
            return;
        }
    }
}

fn prepare_batch(
    plan: &[Wanted],
    dim: usize,
    source: &dyn PixelSource,
    cache: Option<&EmbeddingCache>,
) -> Result<Work, StoreError> {
    let read: Vec<_> = plan
        .par_iter()
        .map(|wanted| (wanted, source.read(wanted.sample)))
        .collect();
    let mut known = Known::default();
    let mut readable = Vec::with_capacity(plan.len());
    for (wanted, result) in read {
        match result {
            Ok(file) => readable.push((wanted, file)),
            Err(failure) => known.rows.push(failed(wanted, None, failure)),
        }
    }
    let hashes: Vec<_> = readable.iter().map(|(_, file)| file.hash).collect();
    if let Some(found) = all_cached(&hashes, dim, cache)? {
        known.rows.extend(
            readable
                .iter()
                .zip(found)
                .map(|((wanted, file), cached)| AnswerRow {
                    sample: wanted.sample,
                    id: wanted.id.clone(),
                    content_hash: Some(file.hash),
                    outcome: Outcome::Ok,
                    reason: None,
                    message: joined(file.note.as_deref(), cached.note.as_deref()),
                    embedding: Some(cached.embedding),
                }),
        );
        return Ok(Work::Known(known.rows));
    }
    let prepared: Vec<_> = readable
        .into_par_iter()
        .map(|(wanted, FileBytes { bytes, hash, note })| {
            (wanted, hash, note, source.prepare(&bytes, hash))
        })
        .collect();
    let mut batch = PixelBatch::default();
    for (wanted, hash, note, result) in prepared {
        match result {
            Ok(pixels) => {
                let sample = wanted.sample as usize;
                let asked = Asked {
                    id: wanted.id.clone(),
                    hash,
                    note: joined(note.as_deref(), pixels.note.as_deref()),
                };
                known.asked.insert(sample, asked);
                batch.images.push(PreparedImage {
                    sample,
                    pixels: pixels.rgb,
                });
            }
            Err(failure) => known.rows.push(failed(wanted, Some(hash), failure)),
        }
    }
    Ok(if batch.images.is_empty() {
        Work::Known(known.rows)
    } else {
        Work::Compute(batch, known)
    })
}

/// The embeddings of these images; `None` unless the cache has every one.
fn all_cached(
    hashes: &[ContentHash],
    dim: usize,
    cache: Option<&EmbeddingCache>,
) -> Result<Option<Vec<CachedEmbedding>>, StoreError> {
    let Some(cache) = cache else { return Ok(None) };
    let hits = cache.get(hashes, dim)?;
    Ok(hashes.iter().map(|hash| hits.get(hash).cloned()).collect())
}

fn failed(wanted: &Wanted, content_hash: Option<ContentHash>, failure: ImageFailure) -> AnswerRow {
    AnswerRow {
        sample: wanted.sample,
        id: wanted.id.clone(),
        content_hash,
        outcome: Outcome::ImageError,
        reason: Some(failure.reason),
        message: Some(failure.message),
        embedding: None,
    }
}

#[cfg(test)]
mod tests;
