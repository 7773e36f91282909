//! Decoding once what models will ask for: every file at every wanted size, into the pixel cache. Must not know models or datasets.
//!
//! A file is read, its hash compared where one is known, and its entries looked up: only sizes that are not there (whole and checked) are made, so that a second
//! run does nothing and a stopped one goes on. Sizes that are decoded exactly share one decoding. Memory is one file and one decoded picture a thread.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use focus_images::{
    ContentHash, Decode, DecodeNotes, ImageError, Limits, PixelCache, PrepareSpec, PreparedImage,
    RgbImage,
    decode, prepare, read_file,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::audit::{Progress, pool};
use crate::{CurationError, Result};

/// What is prepared.
#[derive(Debug, Clone, Copy)]
pub struct PrepareJob<'a> {
    /// Files.
    pub files: &'a [PathBuf],
    /// The content that each file is known to have, as far as it is; empty where nothing is known, else one for each file.
    pub expected: &'a [Option<ContentHash>],
    /// Sizes.
    pub specs: &'a [PrepareSpec],
    /// Where the pixels go.
    pub cache: &'a PixelCache,
    /// Caps on files and pictures.
    pub limits: Limits,
    /// Threads, 0 for one a core.
    pub threads: usize,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum PrepareOutcome {
    /// All sizes were there.
    Present {
        /// Content of the file.
        content_hash: ContentHash,
    },
    /// Some sizes were made.
    Made {
        /// Content of the file.
        content_hash: ContentHash,
        /// How many of the sizes.
        sizes: u32,
    },
    /// The file is no usable photograph, or not the one it should be. None of its sizes was written.
    Failed {
        /// Kind of the image error, or `changed` where the content is not the expected.
        kind: String,
        /// In words.
        message: String,
    },
    /// The work was stopped before this file.
    NotReached,
}

/// What became of all files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepareReport {
    /// By file, in their order.
    pub outcomes: Vec<PrepareOutcome>,
    /// Files all of whose sizes were there.
    pub present: u64,
    /// Files for which something was made.
    pub made: u64,
    /// Cache entries written.
    pub entries: u64,
    /// Files that failed, by kind.
    pub failed: BTreeMap<String, u64>,
    /// Files not reached because the work was stopped.
    pub not_reached: u64,
}

impl PrepareReport {
    fn of(outcomes: Vec<PrepareOutcome>) -> Self {
        let mut report = Self {
            outcomes: Vec::new(),
            present: 0,
            made: 0,
            entries: 0,
            failed: BTreeMap::new(),
            not_reached: 0,
        };
        for outcome in &outcomes {
            match outcome {
                PrepareOutcome::Present { .. } => report.present += 1,
                PrepareOutcome::Made { sizes, .. } => {
                    report.made += 1;
                    report.entries += u64::from(*sizes);
                }
                PrepareOutcome::Failed { kind, .. } => {
                    *report.failed.entry(kind.clone()).or_default() += 1;
                }
                PrepareOutcome::NotReached => report.not_reached += 1,
            }
        }
        report.outcomes = outcomes;
        report
    }
}

/// A fault of the picture, or of the machine.
enum Fault {
    Image(&'static str, String),
    Machine(CurationError),
}

impl From<ImageError> for Fault {
    fn from(error: ImageError) -> Self {
        Self::Image(error.kind(), error.to_string())
    }
}

/// Prepares all files. `progress` is called from any thread after each file and may stop the work; files under way are then finished.
///
/// An image that fails is an outcome; a cache that cannot be written is an error, and what was written stays for the next try.
pub fn prepare_all(
    job: &PrepareJob<'_>,
    progress: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<PrepareReport> {
    if !job.expected.is_empty() && job.expected.len() != job.files.len() {
        return Err(CurationError::Lengths {
            what: "expected hash",
            expected: job.files.len(),
            found: job.expected.len(),
        });
    }
    let (done, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let total = job.files.len() as u64;
    let outcomes = pool(job.threads)?.install(|| {
        (0..job.files.len())
            .into_par_iter()
            .map(|i| {
                if stopped.load(Ordering::Relaxed) {
                    return Ok(PrepareOutcome::NotReached);
                }
                let outcome = match one(job, i) {
                    Ok(outcome) => outcome,
                    Err(Fault::Image(kind, message)) => PrepareOutcome::Failed {
                        kind: kind.into(),
                        message,
                    },
                    Err(Fault::Machine(error)) => {
                        stopped.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                };
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if progress(Progress { done, total }).is_break() {
                    stopped.store(true, Ordering::Relaxed);
                }
                Ok(outcome)
            })
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(PrepareReport::of(outcomes))
}

fn one(job: &PrepareJob<'_>, i: usize) -> Result<PrepareOutcome, Fault> {
    let bytes = read_file(&job.files[i], &job.limits)?;
    let content_hash = ContentHash::of(&bytes);
    if let Some(expected) = job.expected.get(i).copied().flatten()
        && expected != content_hash
    {
        let message =
            format!("Content of the file differs: expected `{expected}`, found `{content_hash}`");
        return Err(Fault::Image("changed", message));
    }
    let mut wanted: Vec<&PrepareSpec> = Vec::new();
    for spec in job.specs {
        if !wanted.contains(&spec) && job.cache.get(&content_hash, spec).is_none() {
            wanted.push(spec);
        }
    }
    if wanted.is_empty() {
        return Ok(PrepareOutcome::Present { content_hash });
    }
    // All sizes before the first is written: a picture that one size does not fit leaves none.
    let made = render(&bytes, &wanted, &job.limits)?;
    for (spec, (image, notes)) in wanted.iter().zip(&made) {
        job.cache
            .put(&content_hash, spec, image, notes)
            .map_err(|source| {
                Fault::Machine(CurationError::Io {
                    action: "write",
                    path: job.cache.path_of(&content_hash, spec),
                    source,
                })
            })?;
    }
    Ok(PrepareOutcome::Made {
        content_hash,
        sizes: made.len() as u32,
    })
}

/// The pixels and notes of `focus_images::prepare` for each spec, with one full decoding for all that are exact.
fn render(
    bytes: &[u8],
    specs: &[&PrepareSpec],
    limits: &Limits,
) -> Result<Vec<(PreparedImage, DecodeNotes)>, ImageError> {
    let exact = specs.iter().filter(|spec| spec.decode == Decode::Exact);
    if exact.count() < 2 {
        return specs
            .iter()
            .map(|spec| prepare(bytes, spec, limits))
            .collect();
    }
    let (image, notes) = decode(bytes, limits)?;
    let upright = pixmap(image);
    // What a pixmap may hold is what was decoded: the limits were met above.
    let open = Limits {
        max_pixels: u64::MAX,
        ..*limits
    };
    specs
        .iter()
        .map(|spec| {
            if spec.decode != Decode::Exact {
                return prepare(bytes, spec, limits);
            }
            let (image, shaped) = prepare(&upright, spec, &open)?;
            let notes = DecodeNotes {
                field: shaped.field,
                ..notes.clone()
            };
            Ok((image, notes))
        })
        .collect()
}

/// Upright pixels as a binary portable pixmap: a header before the bytes, which decodes at the cost of a copy.
fn pixmap(image: RgbImage) -> Vec<u8> {
    let mut bytes = image.pixels;
    let header = format!("P6\n{} {}\n255\n", image.width, image.height);
    bytes.splice(0..0, header.bytes());
    bytes
}
