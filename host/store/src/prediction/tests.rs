//! Files that break the contract in one way each, and what is said about them.

use super::*;
use crate::table::{Encoder, write_table};
use proptest::prelude::*;
use std::fs;

fn row(sample: u32) -> PredictionRow {
    PredictionRow {
        sample,
        id: format!("img{sample}"),
        fold: if sample.is_multiple_of(3) {
            Fold::Train
        } else {
            Fold::Test
        },
        copy: 0,
        split: Some("test".into()),
        patient: sample.is_multiple_of(2).then(|| format!("p{}", sample / 4)),
        label: [None, Some(true), Some(false)][sample as usize % 3],
        published_label: Some(sample.is_multiple_of(2)),
        score: Some(f64::from(sample % 11) / 10.0),
        predicted: Some(sample % 11 > 5),
        outcome: Outcome::Ok,
        reason: None,
        text: None,
    }
}

fn cell() -> CellKey {
    CellKey::new("idrid", "binary_dr", "linear_probing", "handcrafted/zones")
}

fn predictions(rows: u32) -> Predictions {
    let extra = vec![(
        "logit".to_owned(),
        (0..rows)
            .map(|i| (!i.is_multiple_of(5)).then_some(f64::from(i) - 3.25))
            .collect(),
    )];
    Predictions::new(cell(), (0..rows).map(row).collect(), extra).expect("sound")
}

fn read(file: &Path) -> Result<Predictions> {
    Predictions::read(file, &Limits::default())
}

// Write `rows` without any check, read them, and give the error.
fn refused(rows: Vec<PredictionRow>) -> StoreError {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("p.parquet");
    Predictions {
        cell: cell(),
        rows,
        extra: vec![],
    }
    .write_unchecked(&file)
    .expect("writes");
    read(&file).expect_err("broken")
}

#[test]
fn predictions_survive_and_come_sorted() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("p.parquet");
    let made = predictions(100);
    made.write(&file).expect("writes");
    assert_eq!(read(&file).expect("reads"), made);
    let first = fs::read(&file).expect("reads");
    let order: Vec<u32> = (0..100).map(|i| i * 37 % 100).collect();
    let value = |i: &u32| (!i.is_multiple_of(5)).then_some(f64::from(*i) - 3.25);
    let extra = vec![("logit".to_owned(), order.iter().map(value).collect())];
    let again =
        Predictions::new(cell(), order.into_iter().map(row).collect(), extra).expect("sound");
    again.write(&file).expect("writes");
    assert_eq!(
        fs::read(&file).expect("reads"),
        first,
        "rows in another order give the same bytes"
    );
}

#[test]
fn each_rule_names_file_row_and_value() {
    type Spoil = fn(&mut PredictionRow);
    let broken: [(&str, Spoil); 12] = [
        ("[0, 1]", |r| r.score = Some(1.000_000_1)),
        ("[0, 1]", |r| r.score = Some(-1e-9)),
        ("finite", |r| r.score = Some(f64::NAN)),
        ("finite", |r| r.score = Some(f64::INFINITY)),
        ("`ok` row", |r| r.score = None),
        ("`ok` row", |r| r.predicted = None),
        ("`unparseable`", |r| r.outcome = Outcome::Unparseable),
        ("`score_unavailable`", |r| {
            r.outcome = Outcome::ScoreUnavailable;
        }),
        ("error row", |r| r.outcome = Outcome::ModelError),
        ("`reason`", |r| {
            (r.outcome, r.score, r.predicted) = (Outcome::ImageError, None, None);
        }),
        ("unique", |r| r.id = "img1".into()),
        ("sorted", |r| r.sample = 1),
    ];
    for (text, spoil) in broken {
        let mut rows: Vec<_> = [1, 2, 4, 5].into_iter().map(row).collect();
        spoil(&mut rows[2]);
        let error = refused(rows.clone());
        assert!(matches!(error, StoreError::Rule { row: 2, .. }), "{error}");
        assert!(
            error.to_string().contains("p.parquet") && error.to_string().contains(text),
            "{text}: {error}"
        );
        assert!(
            Predictions {
                cell: cell(),
                rows,
                extra: vec![]
            }
            .check(Path::new("p"))
            .is_err(),
            "nor is it written"
        );
    }
    assert!(refused(vec![]).to_string().contains("at least one row"));
}

#[test]
fn one_id_may_be_on_both_sides_of_a_published_split() {
    let mut twice = vec![row(1), row(2)];
    (twice[1].id, twice[1].fold) = (twice[0].id.clone(), Fold::Train);
    Predictions::new(cell(), twice, vec![]).expect("fold and id together are unique");
}

#[test]
fn a_file_cut_anywhere_is_damage() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("p.parquet");
    predictions(40).write(&file).expect("writes");
    let whole = fs::read(&file).expect("reads");
    for cut in (0..whole.len())
        .step_by(11)
        .chain(whole.len() - 9..whole.len())
    {
        fs::write(&file, &whole[..cut]).expect("writes");
        let error = read(&file).expect_err("cut");
        assert!(
            matches!(
                error,
                StoreError::Damaged { .. } | StoreError::TooLarge { .. }
            ),
            "{cut}: {error}"
        );
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("p.parquet");
    let made = predictions(40);
    made.write(&file).expect("writes");
    let whole = fs::read(&file).expect("reads");
    // Every third byte: a debug build takes milliseconds to read a footer.
    for at in (0..whole.len()).step_by(3) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&file, &bad).expect("writes");
        if let Ok(found) = read(&file) {
            assert_eq!(found, made, "byte {at} changed what was read");
        }
    }
}

#[test]
fn versions_names_and_columns_are_checked() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("p.parquet");
    let good = spec(false, std::iter::empty());
    let empty = |spec: &TableSpec| {
        write_table(&file, spec, 0, |_| unreachable!("no rows")).expect("writes");
        read(&file).expect_err("broken")
    };
    let error = empty(&TableSpec {
        version: 2,
        ..good.clone()
    });
    assert!(
        matches!(&error, StoreError::SchemaVersion { expected: 1, found, .. } if found == "2"),
        "{error}"
    );
    assert!(error.hint().is_some());
    let error = empty(&TableSpec {
        name: "metrics",
        ..good.clone()
    });
    assert_eq!(
        error.to_string().split(": ").last(),
        Some("expected schema `predictions`, found `metrics`")
    );
    for missing in 0..good.schema.fields().len() {
        let mut fields: Vec<_> = good
            .schema
            .fields()
            .iter()
            .map(|f| f.as_ref().clone())
            .collect();
        let name = fields.remove(missing).name().clone();
        let error = empty(&TableSpec {
            schema: table::schema(fields.clone()),
            ..good.clone()
        });
        assert!(
            matches!(&error, StoreError::MissingColumn { column, .. } if *column == name),
            "{error}"
        );
        fields.insert(missing, optional(&name, DataType::Int32));
        let error = empty(&TableSpec {
            schema: table::schema(fields),
            ..good.clone()
        });
        assert!(
            matches!(&error, StoreError::ColumnType { column, found, .. } if *column == name && found == "Int32"),
            "{error}"
        );
    }
    fs::write(&file, b"id,label\n1,0\n").expect("writes");
    assert!(matches!(read(&file), Err(StoreError::Damaged { .. })));
    assert!(matches!(
        read(&folder.path().join("none")),
        Err(StoreError::Io { .. })
    ));
}

#[test]
fn columns_of_a_later_addition_are_passed_over() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("p.parquet");
    let made = Predictions {
        extra: vec![],
        ..predictions(5)
    };
    made.write(&file).expect("writes");
    let reader =
        TableReader::open(&file, NAME, PREDICTIONS_VERSION, &Limits::default()).expect("opens");
    let names: Vec<String> = reader
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, batch) = reader
        .batches(&names, None)
        .expect("streams")
        .next()
        .expect("one")
        .expect("sound");
    let mut fields: Vec<_> = batch
        .schema_ref()
        .fields()
        .iter()
        .map(|f| f.as_ref().clone())
        .collect();
    fields.insert(3, optional("later", DataType::Utf8));
    let mut columns = batch.columns().to_vec();
    columns.insert(3, texts((0..5).map(|_| Some("new"))));
    let later = TableSpec {
        schema: table::schema(fields),
        ..spec(false, std::iter::empty())
    };
    let mut encoder = Encoder::new(&file, &later, Vec::new()).expect("starts");
    encoder
        .write(&RecordBatch::try_new(later.schema.clone(), columns).expect("fits"))
        .expect("writes");
    fs::write(&file, encoder.finish().expect("ends")).expect("writes");
    assert_eq!(read(&file).expect("reads"), made);
}

#[test]
fn caps_hold() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("p.parquet");
    let mut rows: Vec<_> = [1, 2].into_iter().map(row).collect();
    // A megabyte that takes a hundred bytes on disk.
    rows[1].text = Some("a".repeat(1 << 20));
    Predictions::new(cell(), rows, vec![])
        .expect("sound")
        .write(&file)
        .expect("writes");
    assert!(fs::metadata(&file).expect("stat").len() < 20_000);
    let tight = |spoil: fn(&mut Limits)| {
        let mut limits = Limits::default();
        spoil(&mut limits);
        Predictions::read(&file, &limits)
            .expect_err("too large")
            .to_string()
    };
    assert!(tight(|l| l.rows = 1).contains("rows: expected at most 1, found 2"));
    assert!(tight(|l| l.file_bytes = 100).contains("bytes"));
    assert!(tight(|l| l.footer_bytes = 100).contains("footer"));
    assert!(tight(|l| l.page_bytes = 1 << 19).contains("bytes of a page"));
    assert!(tight(|l| l.row_group_bytes = 1 << 19).contains("row group"));
    assert!(tight(|l| l.string_bytes = 1 << 19).contains("bytes of a text"));
    assert!(Predictions::read(&file, &Limits::default()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_sound_rows_survive(
        parts in proptest::collection::vec((any::<u32>(), ".{0,12}", 0usize..6, 0.0f64..=1.0, any::<[Option<bool>; 3]>(), any::<Option<u16>>()), 1..60),
        other in proptest::option::of(proptest::num::f64::NORMAL),
    ) {
        let rows: std::collections::BTreeMap<u32, PredictionRow> = parts.into_iter().map(|(sample, text, outcome, score, labels, patient)| {
            let outcome = Outcome::ALL[outcome];
            let scored = outcome == Outcome::Ok || outcome == Outcome::Unparseable;
            (sample, PredictionRow {
                sample,
                id: format!("{sample}{text}"),
                fold: if score > 0.5 { Fold::Train } else { Fold::Test },
                copy: 0,
                split: patient.map(|p| p.to_string()),
                patient: patient.map(|p| format!("{p}\n\"{text}\"")),
                label: labels[0],
                published_label: labels[1],
                score: scored.then_some(score),
                predicted: if outcome == Outcome::Ok { Some(score > 0.5) } else { None },
                outcome,
                reason: outcome.is_error().then(|| "crash".to_owned()),
                text: (!text.is_empty()).then_some(text),
            })
        }).collect();
        let values = rows.values().map(|_| other).collect();
        let made = Predictions::new(cell(), rows.into_values().collect(), vec![("v".into(), values)]).expect("sound");
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("p.parquet");
        made.write(&file).expect("writes");
        prop_assert_eq!(read(&file).expect("reads"), made);
    }
}

#[test]
fn further_rows_of_an_image_are_kept_and_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("p.parquet");
    let copies = |copies: &[u32]| {
        let rows = copies.iter().map(|&copy| PredictionRow {
            copy,
            published_label: Some(copy == 1),
            ..row(1)
        });
        Predictions::new(cell(), rows.collect(), Vec::new())
    };
    let made = copies(&[1, 0, 2]).expect("fits");
    made.write(&file).expect("writes");
    assert_eq!(read(&file).expect("reads"), made);
    let error = copies(&[1, 1]).expect_err("twice");
    assert!(error.to_string().contains("`copy`"), "{error}");
}
