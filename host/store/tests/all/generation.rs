//! Generations: whole groups in, the same bytes out however they came, a kill at any byte, damage, the cache.

use focus_store::{
    AnswerLogOptions, ContentHash, Generated, GenerationCache, GenerationFile, GenerationLayout,
    GenerationLog, GenerationRow, Limits, ModelKey, Outcome, StoreError, SyncPolicy,
    VariantLogprob,
};
use std::collections::BTreeMap;
use std::path::Path;

fn layout() -> GenerationLayout {
    GenerationLayout {
        prompts: vec!["glaucoma".into(), "binary_dr".into()],
        variants: vec!["yes".into(), "\nyes".into(), " \"no\"".into()],
    }
}

fn group(sample: u32) -> Vec<GenerationRow> {
    let row = |prompt: &str, at: u32| GenerationRow {
        sample,
        prompt: prompt.into(),
        id: format!("id-{sample}"),
        content_hash: Some(ContentHash::of(&sample.to_le_bytes())),
        outcome: if sample % 5 == 3 {
            Outcome::Refused
        } else {
            Outcome::Ok
        },
        reason: None,
        message: sample
            .is_multiple_of(2)
            .then(|| "16 bits a sample brought to 8".into()),
        generated: Some(Generated {
            text: format!("Yes, \u{1f441} {at}\n"),
            finish: if sample % 5 == 3 {
                "refused"
            } else {
                "stopped"
            }
            .into(),
            scores: vec![
                VariantLogprob {
                    token: Some(10 + at),
                    logprob: Some(-0.1 * f64::from(sample + 1)),
                },
                VariantLogprob {
                    token: Some(u32::MAX),
                    logprob: None,
                },
                VariantLogprob {
                    token: None,
                    logprob: None,
                },
            ],
            prompt_tokens: vec![(2, 1), (262_144, 256), (105 + at, 2)],
            prompt_length: 259,
            new_tokens: vec![7, 7, sample],
            new_length: 3,
        }),
    };
    if sample % 7 == 6 {
        return ["glaucoma", "binary_dr"]
            .map(|prompt| GenerationRow {
                outcome: Outcome::ModelError,
                reason: Some("crash".into()),
                message: None,
                generated: None,
                ..row(prompt, 0)
            })
            .into();
    }
    vec![row("glaucoma", 0), row("binary_dr", 1)]
}

fn open(path: &Path) -> GenerationLog {
    let options = AnswerLogOptions {
        sync: SyncPolicy::AtEnd,
        ..AnswerLogOptions::default()
    };
    GenerationLog::open_with(path, &layout(), options).expect("opens")
}

fn rows(file: &GenerationFile) -> Vec<GenerationRow> {
    file.batches()
        .expect("reads")
        .flat_map(|batch| batch.expect("whole"))
        .collect()
}

#[test]
fn rows_read_back_sorted_and_the_bytes_do_not_depend_on_how_they_came() {
    let dir = tempfile::tempdir().expect("folder");
    let write = |name: &str, order: &[u32], size: usize| {
        let mut log = open(&dir.path().join(format!("{name}.log")));
        for samples in order.chunks(size) {
            let batch: Vec<_> = samples.iter().flat_map(|sample| group(*sample)).collect();
            log.append(&batch).expect("appends");
        }
        let path = dir.path().join(format!("{name}.parquet"));
        let file = log.compact(&path).expect("compacts");
        (rows(&file), std::fs::read(path).expect("reads"))
    };
    let ordered: Vec<u32> = (0..20).collect();
    let mixed: Vec<u32> = (0..20).map(|n| n * 7 % 20).collect();
    let (found, bytes) = write("a", &ordered, 4);
    assert_eq!(
        found,
        ordered.iter().flat_map(|n| group(*n)).collect::<Vec<_>>()
    );
    assert!(bytes == write("b", &mixed, 3).1);
}

#[test]
fn a_log_cut_at_any_byte_keeps_every_whole_group() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("a.log");
    let mut ends = vec![std::fs::metadata(open(&path).path()).expect("there").len()];
    let mut log = open(&path);
    for sample in 0..4 {
        log.append(&group(sample)).expect("appends");
        ends.push(std::fs::metadata(&path).expect("there").len());
    }
    drop(log);
    let whole = std::fs::read(&path).expect("reads");
    for cut in (ends[0] as usize..=whole.len()).step_by(37) {
        std::fs::write(&path, &whole[..cut]).expect("writes");
        let mut log = open(&path);
        let kept = ends.iter().filter(|end| **end <= cut as u64).count() - 1;
        assert_eq!(log.done().len(), kept, "cut at {cut}");
        assert_eq!(log.torn().is_some(), !ends.contains(&(cut as u64)));
        for sample in kept as u32..4 {
            log.append(&group(sample)).expect("goes on");
        }
        drop(log);
        assert!(
            whole == std::fs::read(&path).expect("reads"),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_flipped_byte_is_damage_and_never_another_answer() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("a.log");
    let mut log = open(&path);
    (0..3).for_each(|n| log.append(&group(n)).expect("appends"));
    let parquet = dir.path().join("a.parquet");
    let expected = rows(&log.compact(&parquet).expect("compacts"));
    drop(log);
    let good = std::fs::read(&path).expect("reads");
    for at in (0..good.len()).step_by(11) {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        std::fs::write(&path, &bad).expect("writes");
        let opened = GenerationLog::open_with(&path, &layout(), AnswerLogOptions::default());
        assert!(opened.is_err(), "byte {at}");
    }
    let good = std::fs::read(&parquet).expect("reads");
    for at in (0..good.len()).step_by(5) {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        std::fs::write(&parquet, &bad).expect("writes");
        let read = GenerationFile::open(&parquet, &layout(), &Limits::default()).and_then(|file| {
            file.batches()?
                .collect::<Result<Vec<_>, StoreError>>()
                .map(|batches| batches.concat())
        });
        // A flip in metadata that nobody reads changes nothing.
        assert!(
            read.is_err() || read.is_ok_and(|rows| rows == expected),
            "byte {at}"
        );
    }
}

fn said(rows: &mut [GenerationRow]) -> &mut Generated {
    rows[0].generated.as_mut().expect("an answer")
}

#[test]
fn rows_that_break_a_rule_are_refused_and_leave_the_log_as_it_was() {
    let dir = tempfile::tempdir().expect("folder");
    let mut log = open(&dir.path().join("a.log"));
    log.append(&group(0)).expect("appends");
    let broken = |change: fn(&mut Vec<GenerationRow>)| {
        let mut rows = group(1);
        change(&mut rows);
        rows
    };
    let wrong: Vec<(&str, Vec<GenerationRow>)> = vec![
        ("row for each prompt", broken(|rows| drop(rows.pop()))),
        ("prompt in order", broken(|rows| rows.swap(0, 1))),
        (
            "one of the layout",
            broken(|rows| rows[1].prompt = "other".into()),
        ),
        ("lie together", broken(|rows| rows[1].sample = 2)),
        ("must not be empty", broken(|rows| rows[0].id.clear())),
        (
            "`outcome`",
            broken(|rows| rows[0].outcome = Outcome::Unparseable),
        ),
        (
            "`finish`",
            broken(|rows| rows[0].outcome = Outcome::Refused),
        ),
        ("`finish`", broken(|rows| said(rows).finish = "stop".into())),
        (
            "`reason`",
            broken(|rows| rows[0].reason = Some("crash".into())),
        ),
        ("`reason`", broken(|rows| rows[0].generated = None)),
        ("each variant", broken(|rows| said(rows).scores.truncate(2))),
        (
            "finite",
            broken(|rows| said(rows).scores[0].logprob = Some(f64::NAN)),
        ),
        (
            "finite",
            broken(|rows| said(rows).scores[0].logprob = Some(f64::NEG_INFINITY)),
        ),
        (
            "string_bytes",
            broken(|rows| said(rows).text = "x".repeat(2 << 20)),
        ),
    ];
    for (rule, rows) in wrong {
        let error = log.append(&rows).expect_err(rule);
        assert!(error.to_string().contains(rule), "{rule}: {error}");
    }
    assert!(matches!(
        log.append(&group(0)),
        Err(StoreError::DuplicateSample { sample: 0, .. })
    ));
    assert_eq!(log.done().len(), 1);
    log.append(&group(1)).expect("goes on");
}

#[test]
fn another_layout_is_refused() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("a.log");
    drop(open(&path));
    let mut other = layout();
    other.variants[1] = "\\nyes".into();
    let options = AnswerLogOptions::default();
    assert!(GenerationLog::open_with(&path, &other, options).is_err());
    for bad in [
        GenerationLayout {
            prompts: Vec::new(),
            ..layout()
        },
        GenerationLayout {
            prompts: vec!["a".into(), "a".into()],
            ..layout()
        },
        GenerationLayout {
            variants: vec!["yes".into(), "yes".into()],
            ..layout()
        },
        GenerationLayout {
            variants: vec![String::new()],
            ..layout()
        },
    ] {
        let path = dir.path().join("b.log");
        assert!(
            GenerationLog::open_with(&path, &bad, options).is_err(),
            "{bad:?}"
        );
        assert!(!path.exists());
    }
}

#[test]
fn a_cache_gives_back_whole_groups_and_survives_damage() {
    let dir = tempfile::tempdir().expect("folder");
    let key = ModelKey::from_parts(&BTreeMap::from([("model", "m".to_owned())]));
    let cache = || GenerationCache::open(dir.path(), &key, &layout()).expect("opens");
    let hash = |n: u32| ContentHash::of(&n.to_le_bytes());
    let groups: Vec<_> = (0..5).map(|n| (hash(n), group(n))).collect();
    assert_eq!(cache().insert(&groups).expect("inserts"), 5);
    let mut again = cache();
    assert_eq!(again.insert(&groups).expect("inserts"), 0);
    assert_eq!(again.get(hash(9)), None);
    for (hash, rows) in &groups {
        let found = again.get(*hash).expect("there");
        let said = |rows: &[GenerationRow]| -> Vec<_> {
            rows.iter()
                .map(|r| {
                    (
                        r.prompt.clone(),
                        r.generated.clone(),
                        r.message.clone(),
                        r.outcome,
                    )
                })
                .collect()
        };
        assert_eq!(said(found), said(rows));
    }
    assert!(
        again.insert(&[(hash(6), group(6))]).is_err(),
        "an error is no answer"
    );
    let folder = dir.path().join(key.to_string());
    let segment = std::fs::read_dir(&folder)
        .expect("lists")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|end| end == "parquet"))
        .expect("a segment");
    let bytes = std::fs::read(&segment).expect("reads");
    std::fs::write(&segment, &bytes[..bytes.len() / 2]).expect("writes");
    assert_eq!(cache().get(hash(0)), None, "dropped");
    assert!(!segment.exists());
    assert_eq!(
        cache().insert(&groups).expect("inserts"),
        5,
        "and it fills again"
    );
}
