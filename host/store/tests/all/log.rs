//! The answer log at every byte: cut, flipped, partitioned and shuffled.

use crate::common::{DIM, answer};
use focus_store::{
    AnswerFile, AnswerLog, AnswerLogOptions, AnswerRow, Limits, StoreError, SyncPolicy,
};
use proptest::prelude::*;
use std::{fs, path::Path};

fn open(path: &Path) -> focus_store::Result<(AnswerLog, focus_store::AnswersSummary)> {
    AnswerLog::open_with(
        path,
        DIM,
        AnswerLogOptions {
            sync: SyncPolicy::AtEnd,
            ..AnswerLogOptions::default()
        },
    )
}

fn append(log: &mut AnswerLog, samples: &[u32]) {
    log.append(&samples.iter().map(|n| answer(*n)).collect::<Vec<_>>())
        .expect("appends");
}

// Rows of a log as appended.
fn rows(log: &AnswerLog) -> Vec<AnswerRow> {
    log.batches()
        .flat_map(|batch| batch.expect("sound").rows().collect::<Vec<_>>())
        .collect()
}

fn compacted(log: &AnswerLog, folder: &Path) -> Vec<u8> {
    log.compact(&folder.join("c.parquet")).expect("compacts");
    fs::read(folder.join("c.parquet")).expect("reads")
}

#[test]
fn answers_survive_in_log_and_parquet() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.log");
    let (mut log, summary) = open(&path).expect("starts");
    assert!(summary.done.is_empty() && summary.torn.is_none());
    append(&mut log, &[5, 3, 9]);
    append(&mut log, &[0]);
    assert!(matches!(
        log.append(&[answer(1), answer(9)]),
        Err(StoreError::DuplicateSample { sample: 9, .. })
    ));
    assert!(matches!(
        log.append(&[answer(1), answer(1)]),
        Err(StoreError::DuplicateSample { sample: 1, .. })
    ));
    let wrong = AnswerRow {
        embedding: Some(vec![0.0; DIM + 1]),
        ..answer(2)
    };
    assert!(matches!(
        log.append(&[answer(1), wrong]),
        Err(StoreError::Rule { row: 1, .. })
    ));
    assert!(
        matches!(open(&path), Err(StoreError::Locked { .. })),
        "one at a time"
    );
    drop(log);
    let (log, summary) = open(&path).expect("opens");
    assert_eq!(
        summary.done.iter().copied().collect::<Vec<_>>(),
        [0, 3, 5, 9]
    );
    assert_eq!(rows(&log), [5, 3, 9, 0].map(answer));
    let file = log
        .compact(&folder.path().join("a.parquet"))
        .expect("compacts");
    let sorted: Vec<_> = file
        .batches()
        .expect("streams")
        .flat_map(|b| b.expect("sound").rows().collect::<Vec<_>>())
        .collect();
    assert_eq!(sorted, [0, 3, 5, 9].map(answer));
    assert_eq!(file.outcomes().expect("counts"), summary.outcomes);
}

#[test]
fn a_log_cut_at_any_byte_resumes_to_the_same_end() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.log");
    let (mut log, _) = open(&path).expect("starts");
    let mut ends = vec![fs::metadata(&path).expect("stat").len() as usize];
    let frames: [&[u32]; 4] = [&[0, 1, 2], &[7, 3], &[4], &[5, 6]];
    for frame in frames {
        append(&mut log, frame);
        ends.push(fs::metadata(&path).expect("stat").len() as usize);
    }
    let reference = compacted(&log, folder.path());
    drop(log);
    let whole = fs::read(&path).expect("reads");
    for cut in ends[0]..=whole.len() {
        fs::write(&path, &whole[..cut]).expect("cuts");
        let (mut log, summary) = open(&path).expect("a cut log opens");
        let kept = ends.iter().filter(|end| **end <= cut).count() - 1;
        let mut expected: Vec<u32> = frames[..kept].concat();
        assert_eq!(
            rows(&log),
            expected.iter().map(|n| answer(*n)).collect::<Vec<_>>(),
            "cut at {cut}"
        );
        expected.sort_unstable();
        assert_eq!(
            summary.done.into_iter().collect::<Vec<_>>(),
            expected,
            "cut at {cut}"
        );
        assert_eq!(
            summary.torn.map(|t| (t.offset as usize, t.bytes as usize)),
            (ends[kept] != cut).then(|| (ends[kept], cut - ends[kept]))
        );
        assert_eq!(
            fs::metadata(&path).expect("stat").len() as usize,
            ends[kept],
            "the torn part is gone"
        );
        if cut % 41 == 0 {
            let missing: Vec<u32> = (0..8).filter(|n| !log.done().contains(n)).collect();
            if !missing.is_empty() {
                append(&mut log, &missing);
            }
            assert_eq!(compacted(&log, folder.path()), reference, "cut at {cut}");
        }
    }
    for cut in 0..ends[0] {
        fs::write(&path, &whole[..cut]).expect("cuts");
        assert!(
            matches!(open(&path), Err(StoreError::Damaged { .. })),
            "headers appear whole: cut at {cut}"
        );
    }
}

#[test]
fn a_flipped_bit_anywhere_is_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.log");
    let (mut log, _) = open(&path).expect("starts");
    let header = fs::metadata(&path).expect("stat").len() as usize;
    append(&mut log, &[0, 1, 2]);
    let first = fs::metadata(&path).expect("stat").len() as usize;
    append(&mut log, &[7, 3]);
    drop(log);
    let whole = fs::read(&path).expect("reads");
    for at in 0..whole.len() {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&path, &bad).expect("flips");
        let error = open(&path).expect_err("a flip is no torn tail");
        match error {
            StoreError::DamagedFrame { frame, offset, .. } => {
                let expected = if at < first { (0, header) } else { (1, first) };
                assert_eq!(
                    (frame, offset as usize),
                    (expected.0, expected.1),
                    "byte {at}"
                );
            }
            other => assert!(at < header, "byte {at}: {other}"),
        }
        assert_eq!(
            fs::read(&path).expect("reads"),
            bad,
            "a damaged log is left as it was"
        );
    }
}

#[test]
fn an_answer_file_cut_or_flipped_is_an_error_or_unchanged() {
    let folder = tempfile::tempdir().expect("folder");
    let (mut log, _) = open(&folder.path().join("a.log")).expect("starts");
    append(&mut log, &(0..12).collect::<Vec<_>>());
    let whole = compacted(&log, folder.path());
    let expected = rows(&log);
    let path = folder.path().join("c.parquet");
    let read = || -> focus_store::Result<Vec<AnswerRow>> {
        let file = AnswerFile::open(&path, &Limits::default())?;
        let mut rows = Vec::new();
        for batch in file.batches()? {
            rows.extend(batch?.rows());
        }
        Ok(rows)
    };
    for cut in (0..whole.len())
        .step_by(17)
        .chain(whole.len() - 9..whole.len())
    {
        fs::write(&path, &whole[..cut]).expect("cuts");
        assert!(read().is_err(), "cut at {cut}");
    }
    // Every third byte: a debug build takes milliseconds to read a footer.
    for at in (0..whole.len()).step_by(3) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&path, &bad).expect("flips");
        if let Ok(found) = read() {
            assert_eq!(found, expected, "byte {at} changed what was read");
        }
    }
}

#[test]
fn more_than_one_row_group_streams_in_order() {
    let folder = tempfile::tempdir().expect("folder");
    let (dim, samples) = (16_384, 600u32);
    let (mut log, _) =
        AnswerLog::open_or_create(&folder.path().join("a.log"), dim).expect("starts");
    let wide = |n: u32| AnswerRow {
        embedding: Some(vec![n as f32; dim]),
        outcome: focus_store::Outcome::Ok,
        reason: None,
        ..answer(n)
    };
    for start in (0..samples).rev().step_by(100) {
        log.append(&(start - 99..=start).map(wide).collect::<Vec<_>>())
            .expect("appends");
    }
    let file = log
        .compact(&folder.path().join("a.parquet"))
        .expect("compacts");
    let batches: Vec<_> = file
        .batches()
        .expect("streams")
        .map(|b| b.expect("sound"))
        .collect();
    assert_eq!(
        batches
            .iter()
            .map(focus_store::AnswerBatch::len)
            .collect::<Vec<_>>(),
        [256, 256, 88]
    );
    let found: Vec<u32> = batches.iter().flat_map(|b| b.samples().to_vec()).collect();
    assert_eq!(found, (0..samples).collect::<Vec<_>>());
    assert!(batches.iter().all(|b| {
        (0..b.len()).all(|i| b.embedding(i) == Some(&vec![b.samples()[i] as f32; dim][..]))
    }));
}

#[test]
fn missing_embeddings_cannot_inflate_beyond_the_cap() {
    let folder = tempfile::tempdir().expect("folder");
    let (mut log, _) =
        AnswerLog::open_or_create(&folder.path().join("a.log"), 4096).expect("starts");
    log.append(
        &(0..500)
            .map(|n| AnswerRow {
                sample: n,
                ..answer(3)
            })
            .collect::<Vec<_>>(),
    )
    .expect("appends");
    let path = folder.path().join("a.parquet");
    log.compact(&path).expect("compacts");
    assert!(
        fs::metadata(&path).expect("stat").len() < 1 << 16,
        "eight megabytes of nothing take little"
    );
    let limits = Limits {
        row_group_bytes: 1 << 20,
        ..Limits::default()
    };
    let file = AnswerFile::open(&path, &limits).expect("opens");
    assert!(matches!(
        file.batches().err(),
        Some(StoreError::TooLarge {
            found: 8_192_000,
            ..
        })
    ));
    assert_eq!(
        file.outcomes()
            .expect("needs no embedding")
            .values()
            .sum::<u64>(),
        500
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn bytes_do_not_tell_how_answers_came(order in Just((0u32..60).collect::<Vec<_>>()).prop_shuffle(), cuts in proptest::collection::vec(1usize..20, 60)) {
        let folder = tempfile::tempdir().expect("folder");
        let (mut sorted, _) = open(&folder.path().join("a.log")).expect("starts");
        append(&mut sorted, &(0..60).collect::<Vec<_>>());
        let (mut other, _) = open(&folder.path().join("b.log")).expect("starts");
        let mut left = &order[..];
        for size in cuts {
            let (batch, rest) = left.split_at(size.min(left.len()));
            other.append(&batch.iter().map(|n| answer(*n)).collect::<Vec<_>>()).expect("appends");
            left = rest;
        }
        prop_assert_eq!(compacted(&sorted, folder.path()), compacted(&other, folder.path()));
    }

    #[test]
    fn any_answers_survive(parts in proptest::collection::btree_map(any::<u32>(), (".{0,20}", proptest::option::of(".{0,9}"), proptest::option::of(proptest::array::uniform5(proptest::num::f32::NORMAL | proptest::num::f32::ZERO | proptest::num::f32::SUBNORMAL))), 1..40)) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.log");
        let (mut log, _) = open(&path).expect("starts");
        let made: Vec<AnswerRow> = parts.into_iter().map(|(sample, (id, message, values))| AnswerRow {
            sample,
            id,
            content_hash: None,
            outcome: if values.is_some() { focus_store::Outcome::Ok } else { focus_store::Outcome::ImageError },
            reason: values.is_none().then(|| "decode".to_owned()),
            message,
            embedding: values.map(Vec::from),
        }).collect();
        for batch in made.chunks(9) {
            log.append(batch).expect("appends");
        }
        drop(log);
        let (log, _) = open(&path).expect("opens");
        // Bits, not values: a zero keeps its sign.
        prop_assert_eq!(format!("{:?}", rows(&log)), format!("{:?}", &made));
        let file = log.compact(&folder.path().join("c.parquet")).expect("compacts");
        let found: Vec<_> = file.batches().expect("streams").flat_map(|b| b.expect("sound").rows().collect::<Vec<_>>()).collect();
        prop_assert_eq!(format!("{found:?}"), format!("{made:?}"));
    }
}
