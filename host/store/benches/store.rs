//! What storing costs: appending a batch with and without `fdatasync`, opening a log again, compacting it, and the cache.
//! A batch is 32 embeddings of 1,024 values (128 KiB), as of a ViT-L. `FOCUS_BENCH_DIR` chooses the disk.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use focus_store::{
    AnswerLog, AnswerLogOptions, AnswerRow, ContentHash, EmbeddingCache, Limits, ModelKey, Outcome,
    SyncPolicy,
};
use std::{collections::BTreeMap, path::Path};

const DIM: usize = 1024;
const BATCH: u32 = 32;

fn batch(first: u32) -> Vec<AnswerRow> {
    let row = |sample: u32| {
        // Digits that do not compress, as of real embeddings.
        let mut state = u64::from(sample) + 1;
        let mut value = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / 8_388_608.0 - 1.0
        };
        AnswerRow {
            sample,
            id: format!("image-{sample:06}"),
            content_hash: Some(ContentHash::of(&sample.to_le_bytes())),
            outcome: Outcome::Ok,
            reason: None,
            message: None,
            embedding: Some((0..DIM).map(|_| value()).collect()),
        }
    };
    (first..first + BATCH).map(row).collect()
}

fn folder() -> tempfile::TempDir {
    let base = std::env::var_os("FOCUS_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    tempfile::tempdir_in(base).expect("a folder")
}

fn open(path: &Path, sync: SyncPolicy) -> AnswerLog {
    AnswerLog::open_with(
        path,
        DIM,
        AnswerLogOptions {
            sync,
            ..AnswerLogOptions::default()
        },
    )
    .expect("opens")
    .0
}

fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("append 32 x 1024");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(BATCH.into()));
    for (name, sync) in [
        ("at end", SyncPolicy::AtEnd),
        ("fdatasync each", SyncPolicy::EachBatch),
    ] {
        let folder = folder();
        let mut log = open(&folder.path().join("a.log"), sync);
        let mut next = 0;
        group.bench_function(name, |b| {
            let fresh = || {
                next += BATCH;
                batch(next)
            };
            b.iter_batched(
                fresh,
                |rows| log.append(&rows).expect("appends"),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn rest(c: &mut Criterion) {
    let folder = folder();
    let path = folder.path().join("a.log");
    let mut log = open(&path, SyncPolicy::AtEnd);
    for first in (0..8192).step_by(BATCH as usize) {
        log.append(&batch(first)).expect("appends");
    }
    drop(log);
    let mut group = c.benchmark_group("8192 x 1024");
    group.sample_size(10).throughput(Throughput::Elements(8192));
    group.bench_function("open log", |b| b.iter(|| open(&path, SyncPolicy::AtEnd)));
    let log = open(&path, SyncPolicy::AtEnd);
    let target = folder.path().join("a.parquet");
    group.bench_function("compact", |b| {
        b.iter(|| log.compact(&target).expect("compacts"));
    });
    let file = focus_store::AnswerFile::open(&target, &Limits::default()).expect("opens");
    group.bench_function("read parquet", |b| {
        b.iter(|| {
            file.batches()
                .expect("streams")
                .map(|b| b.expect("sound").len())
                .sum::<usize>()
        });
    });
    let rows: Vec<AnswerRow> = log
        .batches()
        .flat_map(|b| b.expect("sound").rows().collect::<Vec<_>>())
        .collect();
    let pairs: Vec<_> = rows
        .iter()
        .map(|r| {
            (
                r.content_hash.expect("has one"),
                r.embedding.as_deref().expect("has one"),
                None,
            )
        })
        .collect();
    let key = ModelKey::from_parts(&BTreeMap::from([("model", "m".to_owned())]));
    group.bench_function("cache insert", |b| {
        let fresh = || tempfile::tempdir_in(folder.path()).expect("a folder");
        b.iter_batched(
            fresh,
            |dir| EmbeddingCache::open(dir.path(), &key).and_then(|c| c.insert(&pairs)),
            BatchSize::PerIteration,
        );
    });
    let cache = EmbeddingCache::open(folder.path(), &key).expect("opens");
    cache.insert(&pairs).expect("inserts");
    let wanted: Vec<_> = pairs.iter().map(|(hash, ..)| *hash).collect();
    group.bench_function("cache get", |b| {
        b.iter(|| cache.get(&wanted, DIM).expect("gets").len());
    });
    group.finish();
}

criterion_group!(benches, append, rest);
criterion_main!(benches);
