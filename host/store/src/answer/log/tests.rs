//! Logs that only somebody who computes checksums could have made: duplicates, lies about sizes, changed messages.

use super::*;
use crate::log::{encode, encode_frame, encode_header, schema_bytes};
use std::{fs::File, io::Write, path::PathBuf};

fn row(sample: u32) -> AnswerRow {
    AnswerRow {
        sample,
        id: format!("id-{sample}"),
        content_hash: None,
        outcome: Outcome::Ok,
        reason: None,
        message: None,
        embedding: Some(vec![sample as f32, 0.5]),
    }
}

fn payload(rows: &[AnswerRow]) -> Vec<u8> {
    encode(&to_batch(&answer_schema(2), 2, rows)).expect("encodes")
}

// A log of frames given as (stated rows, payload), each with right checksums.
fn forge(frames: &[(u32, Vec<u8>)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.log");
    let mut bytes = encode_header(&schema_bytes(&answer_schema(2)));
    for (number, (rows, payload)) in frames.iter().enumerate() {
        bytes.extend(
            encode_frame(number as u32, 0, *rows, payload)
                .expect("short")
                .0,
        );
    }
    File::create(&path)
        .and_then(|mut f| f.write_all(&bytes))
        .expect("writes");
    (folder, path)
}

#[test]
fn a_sample_answered_twice_is_an_error() {
    for frames in [
        vec![(2, payload(&[row(1), row(1)]))],
        vec![(1, payload(&[row(1)])), (1, payload(&[row(1)]))],
    ] {
        let (_folder, path) = forge(&frames);
        let error = AnswerLog::open_or_create(&path, 2).expect_err("twice");
        assert!(
            matches!(error, StoreError::DuplicateSample { sample: 1, .. }),
            "{error}"
        );
    }
}

#[test]
fn rows_that_break_a_rule_are_named() {
    let mut bad = row(7);
    bad.embedding = Some(vec![f32::NAN, 0.0]);
    let (_folder, path) = forge(&[(2, payload(&[row(1), row(2)])), (1, payload(&[bad]))]);
    let error = AnswerLog::open_or_create(&path, 2).expect_err("not finite");
    assert!(
        matches!(error, StoreError::Rule { row: 2, .. }) && error.to_string().contains("finite"),
        "{error}"
    );
}

#[test]
fn a_frame_that_lies_about_its_rows_is_damage() {
    let (_folder, path) = forge(&[(3, payload(&[row(1)]))]);
    let error = AnswerLog::open_or_create(&path, 2).expect_err("lies");
    assert!(
        error.to_string().contains("should hold 3 rows and holds 1"),
        "{error}"
    );
}

#[test]
fn any_message_with_a_right_checksum_is_read_or_refused() {
    let good = payload(&[row(1), row(2), row(3)]);
    let mut refused = 0;
    for at in 0..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            let (_folder, path) = forge(&[(3, bad)]);
            refused += usize::from(AnswerLog::open_or_create(&path, 2).is_err());
        }
    }
    assert!(
        refused > good.len() / 4,
        "{refused} of {} flips refused",
        3 * good.len()
    );
    for cut in 0..good.len() {
        let (_folder, path) = forge(&[(3, good[..cut].to_vec())]);
        assert!(AnswerLog::open_or_create(&path, 2).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_header_for_other_columns_or_widths_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.log");
    drop(AnswerLog::open_or_create(&path, 3).expect("starts"));
    let error = AnswerLog::open_or_create(&path, 2).expect_err("width");
    assert!(
        matches!(
            error,
            StoreError::Width {
                expected: 2,
                found: 3,
                ..
            }
        ),
        "{error}"
    );

    let fields: Vec<_> = answer_schema(2)
        .fields()
        .iter()
        .filter(|f| f.name() != "message")
        .cloned()
        .collect();
    let other = std::sync::Arc::new(arrow_schema::Schema::new(fields));
    std::fs::write(&path, encode_header(&schema_bytes(&other))).expect("writes");
    let error = AnswerLog::open_or_create(&path, 2).expect_err("columns");
    assert!(error.to_string().contains("columns"), "{error}");
    std::fs::write(&path, encode_header(&schema_bytes(&answer_schema(1 << 20)))).expect("writes");
    assert!(matches!(
        AnswerLog::open_or_create(&path, 2),
        Err(StoreError::TooLarge { .. })
    ));
    assert!(matches!(
        AnswerLog::open_or_create(&folder.path().join("b.log"), 0),
        Err(StoreError::TooLarge { .. })
    ));
}
