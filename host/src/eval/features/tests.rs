//! The stage on drawn pixels and a fake encoder: what is asked, what is answered, what is left alone.

use super::*;
use crate::eval::pixels::Pixels;
use crate::progress::Silent;
use focus_models::fake::{FakeEncoder, embedding, opened};
use focus_store::{EmbeddingCache, ModelKey};
use focus_wire::FailureKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const EDGE: u32 = 4;
const DIM: u32 = 3;

/// Pixels that depend on the sample; some cannot be read.
struct Drawn {
    unreadable: Vec<u32>,
    prepared: AtomicUsize,
}

impl Drawn {
    fn new(unreadable: &[u32]) -> Self {
        Self {
            unreadable: unreadable.to_vec(),
            prepared: AtomicUsize::new(0),
        }
    }

    fn pixels(sample: u32) -> Arc<[u8]> {
        let len = (EDGE * EDGE * 3) as usize;
        (0..len)
            .map(|at| (sample as usize * 31 + at * 7) as u8)
            .collect()
    }
}

impl PixelSource for Drawn {
    fn read(&self, sample: u32) -> Result<FileBytes, ImageFailure> {
        if self.unreadable.contains(&sample) {
            return Err(ImageFailure {
                reason: "truncated".into(),
                message: "The file ends early".into(),
            });
        }
        let bytes = Self::pixels(sample).to_vec();
        let hash = ContentHash::of(&bytes);
        let note = sample
            .is_multiple_of(3)
            .then(|| "the name ends in `.x`, and the content is drawn".to_owned());
        Ok(FileBytes { bytes, hash, note })
    }

    fn prepare(&self, bytes: &[u8], _: ContentHash) -> Result<Pixels, ImageFailure> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        Ok(Pixels {
            rgb: bytes.into(),
            note: bytes[0]
                .is_multiple_of(2)
                .then(|| "drawn evenly".to_owned()),
        })
    }
}

fn wanted(n: u32) -> Vec<Wanted> {
    (0..n)
        .map(|sample| Wanted {
            sample,
            id: format!("id{sample}"),
        })
        .collect()
}

fn encoder(batch: u32) -> FakeEncoder {
    FakeEncoder::new(opened(batch, DIM, EDGE, EDGE))
}

fn log(dir: &Path) -> AnswerLog {
    AnswerLog::open_or_create(&dir.join("a.log"), DIM as usize)
        .expect("opens")
        .0
}

fn rows(log: &AnswerLog) -> Vec<AnswerRow> {
    let mut rows: Vec<AnswerRow> = log
        .batches()
        .flat_map(|b| b.expect("whole").rows().collect::<Vec<_>>())
        .collect();
    rows.sort_by_key(|row| row.sample);
    rows
}

#[test]
fn every_image_ends_with_its_outcome() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut log = log(dir.path());
    let mut fake = encoder(4).fail(5, FailureKind::Crash);
    let source = Drawn::new(&[2, 9]);
    let counts = extract(&wanted(10), &source, &mut fake, &mut log, None, &Silent).expect("runs");
    assert_eq!(
        counts,
        FeatureCounts {
            resumed: 0,
            cached: 0,
            computed: 7,
            failed: 3
        }
    );
    let rows = rows(&log);
    assert_eq!(rows.len(), 10);
    for row in &rows {
        let expected = match row.sample {
            2 | 9 => (Outcome::ImageError, Some("truncated")),
            5 => (Outcome::ModelError, Some("crash")),
            _ => (Outcome::Ok, None),
        };
        assert_eq!((row.outcome, row.reason.as_deref()), expected, "{row:?}");
        assert_eq!(row.id, format!("id{}", row.sample));
        if row.outcome == Outcome::Ok {
            assert_eq!(
                row.embedding.as_deref(),
                Some(embedding(&Drawn::pixels(row.sample), DIM).as_slice())
            );
        }
    }
}

#[test]
fn what_is_answered_is_not_asked_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut log = log(dir.path());
    let first = extract(
        &wanted(8),
        &Drawn::new(&[]),
        &mut encoder(4),
        &mut log,
        None,
        &Silent,
    )
    .expect("runs");
    assert_eq!(first.computed, 8);
    let source = Drawn::new(&[]);
    let mut fake = encoder(4);
    let second = extract(&wanted(12), &source, &mut fake, &mut log, None, &Silent).expect("runs");
    assert_eq!(
        second,
        FeatureCounts {
            resumed: 8,
            cached: 0,
            computed: 4,
            failed: 0
        }
    );
    assert_eq!(
        source.prepared.load(Ordering::Relaxed),
        4,
        "answered images are not even read"
    );
    assert_eq!(rows(&log).len(), 12);
}

#[test]
fn a_batch_is_taken_from_the_cache_only_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    let key = ModelKey::from_parts(&std::collections::BTreeMap::from([(
        "model",
        "fake".to_owned(),
    )]));
    let cache = EmbeddingCache::open(&dir.path().join("cache"), &key).expect("opens");
    // The whole first batch of four and half of the second.
    let known: Vec<(ContentHash, Vec<f32>)> = (0..6)
        .map(|s| {
            (
                ContentHash::of(&Drawn::pixels(s)),
                embedding(&Drawn::pixels(s), DIM),
            )
        })
        .collect();
    cache
        .insert(
            &known
                .iter()
                .map(|(hash, e)| (*hash, e.as_slice(), Some("drawn, says the cache")))
                .collect::<Vec<_>>(),
        )
        .expect("inserts");
    let mut log = log(dir.path());
    let source = Drawn::new(&[]);
    let counts = extract(
        &wanted(8),
        &source,
        &mut encoder(4),
        &mut log,
        Some(&cache),
        &Silent,
    )
    .expect("runs");
    assert_eq!(
        counts,
        FeatureCounts {
            resumed: 0,
            cached: 4,
            computed: 4,
            failed: 0
        }
    );
    assert_eq!(source.prepared.load(Ordering::Relaxed), 4);
    for row in rows(&log) {
        assert_eq!(
            row.embedding.as_deref(),
            Some(embedding(&Drawn::pixels(row.sample), DIM).as_slice())
        );
    }
    let messages: Vec<_> = rows(&log).into_iter().map(|row| row.message).collect();
    let named = "the name ends in `.x`, and the content is drawn";
    assert_eq!(
        messages[0].as_deref(),
        Some(format!("{named} | drawn, says the cache").as_str())
    );
    assert_eq!(messages[1].as_deref(), Some("drawn, says the cache"));
    assert_eq!(
        messages[6].as_deref(),
        Some(format!("{named} | drawn evenly").as_str())
    );
    assert_eq!(messages[5], None);
}

#[test]
fn a_model_that_gives_up_ends_the_stage_and_keeps_what_was_answered() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut log = log(dir.path());
    let mut fake = encoder(4).break_after(2);
    let error = extract(
        &wanted(40),
        &Drawn::new(&[]),
        &mut fake,
        &mut log,
        None,
        &Silent,
    )
    .expect_err("breaks");
    assert!(matches!(error, FeatureError::Model(_)), "{error}");
    assert_eq!(rows(&log).len(), 8);
    let counts = extract(
        &wanted(40),
        &Drawn::new(&[]),
        &mut encoder(4),
        &mut log,
        None,
        &Silent,
    )
    .expect("goes on");
    assert_eq!((counts.resumed, counts.computed), (8, 32));
}
