//! Tables that are not what they should be: cut short, of another version, swapped, or at odds with each other. Each is
//! an error that names file, row and rule. (Bad values within a table are tested beside the tables.)

use crate::common::manifest;
use focus_store::{
    CellKey, Fold, MetricRow, Metrics, Outcome, PredictionRow, Predictions, Record, Records,
    RunFolder, StoreError,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn records() -> Records {
    let record = |n: u32| Record {
        dataset: "synthetic".into(),
        id: format!("image-{n}"),
        patient: Some(format!("p{}", n / 2)),
        labels: BTreeMap::from([("binary_dr".to_owned(), n.is_multiple_of(2))]),
        published_labels: BTreeMap::from([("binary_dr".to_owned(), n.is_multiple_of(2))]),
        ..Record::default()
    };
    Records {
        tasks: ["binary_dr".to_owned()].into(),
        rows: (0..30).map(record).collect(),
    }
}

fn predictions(model: &str, spoil: impl Fn(&mut PredictionRow)) -> Predictions {
    let row = |n: u32| {
        let mut row = PredictionRow {
            sample: n,
            id: format!("image-{n}"),
            fold: Fold::Test,
            copy: 0,
            split: None,
            patient: Some(format!("p{}", n / 2)),
            label: Some(n.is_multiple_of(2)),
            published_label: Some(n.is_multiple_of(2)),
            score: Some(f64::from(n) / 32.0),
            predicted: Some(n > 16),
            outcome: Outcome::Ok,
            reason: None,
            text: None,
        };
        spoil(&mut row);
        row
    };
    let cell = CellKey::new("synthetic", "binary_dr", "prompting", model);
    Predictions::new(cell, (0..30).map(row).collect(), vec![]).expect("sound")
}

fn run(folder: &Path) -> RunFolder {
    let run = RunFolder::create_or_resume(&folder.join("run"), &manifest()).expect("starts");
    run.write_records(&records()).expect("writes");
    run.write_predictions(&predictions("m", |_| {}))
        .expect("writes");
    let metric = MetricRow {
        cell: CellKey::new("synthetic", "binary_dr", "prompting", "m"),
        track: "corrected".into(),
        subset: "test".into(),
        metric: "auroc".into(),
        value: Some(0.5),
        missing: None,
        ci_low: None,
        ci_high: None,
        p_value: None,
        flags: vec![],
        n: 30,
        n_pos: 15,
        n_neg: 15,
    };
    run.write_metrics(&Metrics::new(vec![metric]).expect("sound"))
        .expect("writes");
    run
}

type Spoil = fn(&mut PredictionRow);

// Each table's file, and how a run reads it.
type Reader = fn(&RunFolder) -> Option<StoreError>;

fn tables(run: &RunFolder) -> [(PathBuf, Reader); 3] {
    [
        (run.records_path(), |run| run.records().err()),
        (run.prediction_files().expect("lists")[0].clone(), |run| {
            run.all_predictions().expect("lists").find_map(Result::err)
        }),
        (run.metrics_path(), |run| run.metrics().err()),
    ]
}

#[test]
fn a_table_cut_anywhere_is_damage_and_named() {
    let folder = tempfile::tempdir().expect("folder");
    let run = run(folder.path());
    for (file, read) in tables(&run) {
        let whole = fs::read(&file).expect("reads");
        let name = file.to_string_lossy().into_owned();
        for cut in (0..whole.len())
            .step_by(37)
            .chain(whole.len() - 9..whole.len())
        {
            fs::write(&file, &whole[..cut]).expect("writes");
            let error = read(&run).expect("an error");
            let damage = matches!(
                error,
                StoreError::Damaged { .. } | StoreError::TooLarge { .. }
            );
            assert!(
                damage && error.to_string().contains(&name),
                "{cut}: {error}"
            );
            assert!(error.hint().is_some(), "{error}");
        }
        fs::write(&file, &whole).expect("restores");
        assert!(read(&run).is_none());
    }
}

#[test]
fn another_version_or_another_table_is_said_so() {
    let folder = tempfile::tempdir().expect("folder");
    let run = run(folder.path());
    let key = b"focus.schema_version";
    let tables = tables(&run);
    for (i, (file, read)) in tables.iter().enumerate() {
        let whole = fs::read(file).expect("reads");
        let at = whole
            .windows(key.len())
            .position(|window| window == key)
            .expect("the key is there")
            + key.len()
            + 2;
        assert_eq!(whole[at], b'1');
        let mut later = whole.clone();
        later[at] = b'2';
        fs::write(file, later).expect("writes");
        let error = read(&run).expect("an error");
        assert!(
            matches!(&error, StoreError::SchemaVersion { file: named, expected: 1, found } if named == file && found == "2"),
            "{error}"
        );
        fs::copy(&tables[(i + 1) % 3].0, file).expect("swaps");
        let error = read(&run).expect("an error");
        assert!(
            matches!(&error, StoreError::SchemaName { file: named, .. } if named == file),
            "{error}"
        );
        fs::write(file, &whole).expect("restores");
    }
}

#[test]
fn arms_that_disagree_with_the_records_are_told_by_file_row_and_rule() {
    let records = records();
    let file = Path::new("arm.parquet");
    let whole = predictions("arm", |_| {});
    records.check_predictions(&whole, file).expect("agrees");
    let unknown = predictions("arm", |row| (row.label, row.published_label) = (None, None));
    records.check_predictions(&unknown, file).expect("agrees");
    let cases: [(&str, Spoil); 5] = [
        (
            "`label` must be the record's, found false for `image-4`, the record has true",
            |r| r.label = r.label.map(|l| l && r.sample != 4),
        ),
        ("`published_label` must be the record's", |r| {
            r.published_label = r.published_label.map(|l| l && r.sample != 4);
        }),
        ("`patient` must be the record's", |r| {
            r.patient = r.patient.take().filter(|_| r.sample != 4);
        }),
        ("`sample` and `id` must mean the same image", |r| {
            if r.sample == 4 {
                r.id = "other".into();
            }
        }),
        ("`sample` must be the number of a record", |r| {
            if r.sample == 4 {
                (r.sample, r.id) = (40, "image-40".into());
            }
        }),
    ];
    for (text, spoil) in cases {
        let arm = predictions("arm", spoil);
        let error = records.check_predictions(&arm, file).expect_err(text);
        // Row 29 is where a sample of 40 sorts to.
        let row = if text.contains("number") { 29 } else { 4 };
        let start = format!("`arm.parquet`, row {row}: {text}");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
    let shorter = Records {
        rows: records.rows[..10].to_vec(),
        ..records
    };
    assert!(shorter.check_predictions(&whole, file).is_err());
}
