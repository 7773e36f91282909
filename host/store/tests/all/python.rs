//! What others see: the tables through pyarrow, pandas, polars and DuckDB, and the log through forty lines of Python.

use crate::common::{DIM, answer, manifest};
use focus_store::{
    AnswerLogOptions, Answers, CellKey, EmbeddingCache, Fold, MetricRow, Metrics, ModelKey,
    Outcome, PredictionRow, Predictions, Record, Records, RunFolder,
};
use std::{collections::BTreeMap, io::Write, path::Path, process::Command};

fn fill(path: &Path) {
    let run = RunFolder::create_or_resume(&path.join("run"), &manifest()).expect("starts");
    let record = |n: u32| Record {
        dataset: "synthetic".into(),
        id: format!("image-{n:04}"),
        content_hash: answer(n).content_hash,
        age: n.is_multiple_of(2).then(|| 40.5 + f64::from(n)),
        labels: if n.is_multiple_of(3) {
            BTreeMap::new()
        } else {
            BTreeMap::from([("binary_dr".to_owned(), n % 3 == 1)])
        },
        ..Record::default()
    };
    let records = Records {
        tasks: ["binary_dr".to_owned()].into(),
        rows: (0..20).map(record).collect(),
    };
    run.write_records(&records).expect("writes");
    for (name, finish) in [("done", true), ("going", false)] {
        let Ok(Answers::Open(mut log, _)) = run.answers(name, DIM, AnswerLogOptions::default())
        else {
            panic!("opens")
        };
        for batch in [19, 12, 5].windows(2) {
            log.append(&(batch[1]..batch[0]).map(answer).collect::<Vec<_>>())
                .expect("appends");
        }
        if finish {
            run.finish_answers(log).expect("finishes");
        }
    }
    let cell = CellKey::new(
        "synthetic",
        "binary_dr",
        "linear_probing",
        "handcrafted/zones",
    );
    let row = |n: u32| PredictionRow {
        sample: n,
        id: format!("image-{n:04}"),
        fold: Fold::Test,
        copy: 0,
        split: None,
        patient: None,
        label: [None, Some(true), Some(false)][n as usize % 3],
        published_label: None,
        score: Some(f64::from(n) / 32.0),
        predicted: Some(n > 16),
        outcome: Outcome::Ok,
        reason: None,
        text: None,
    };
    let extra = vec![(
        "logit".to_owned(),
        (0..20).map(|n| Some(f64::from(n))).collect(),
    )];
    run.write_predictions(
        &Predictions::new(cell.clone(), (0..20).map(row).collect(), extra).expect("sound"),
    )
    .expect("writes");
    let metric = MetricRow {
        cell,
        track: "corrected".into(),
        subset: "test".into(),
        metric: "auroc".into(),
        value: None,
        missing: Some("one_class".into()),
        ci_low: None,
        ci_high: None,
        p_value: None,
        flags: vec![],
        n: 20,
        n_pos: 7,
        n_neg: 6,
    };
    run.write_metrics(&Metrics::new(vec![metric]).expect("sound"))
        .expect("writes");
    let key = ModelKey::from_parts(&BTreeMap::from([
        ("model", "é \"m\"".to_owned()),
        ("dtype", "f32".to_owned()),
    ]));
    let cache = EmbeddingCache::open(&path.join("cache"), &key).expect("opens");
    let rows: Vec<_> = (0..20)
        .map(answer)
        .filter_map(|a| Some((a.content_hash?, a.embedding?)))
        .collect();
    cache
        .insert(
            &rows
                .iter()
                .map(|(h, e)| (*h, e.as_slice(), None))
                .collect::<Vec<_>>(),
        )
        .expect("inserts");
}

#[test]
fn python_reads_what_the_contract_says() {
    let python = std::env::var("FOCUS_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python)
        .args(["-c", "import pyarrow"])
        .output();
    if !has.is_ok_and(|o| o.status.success()) {
        writeln!(
            std::io::stderr(),
            "skipped: `{python}` has no pyarrow; FOCUS_PYTHON names another"
        )
        .expect("stderr");
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    fill(folder.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/read_tables.py");
    let output = Command::new(&python)
        .arg(&script)
        .arg(folder.path())
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    writeln!(std::io::stderr(), "{}", text.trim()).expect("stderr");
    assert!(text.contains("read by: pyarrow"), "{text}");
}
