//! Runs out and, where there is a way, back in.

use super::*;
use crate::{
    import::{Aliases, ImportOptions, import_focus_csv},
    simulate::{Preset, SimModel, simulate},
};
use focus_store::{CellKey, MetricRow, Metrics, RunFolder, RunView};
use std::fs;

fn models() -> Vec<SimModel> {
    let model = |id: &str, methods: &[&str], adapters: &[&str]| SimModel {
        id: id.into(),
        methods: methods.iter().map(|m| (*m).to_owned()).collect(),
        adapters: adapters.iter().map(|m| (*m).to_owned()).collect(),
    };
    vec![
        model(
            "google/vit-large-patch16-224",
            &["linear_probing", "linear_probing+unweighted"],
            &[],
        ),
        model("jusiro2/FLAIR", &["linear_probing", "zero_shot"], &[]),
        model(
            "google/medgemma-4b-it",
            &["prompting"],
            &["brset", "mbrset"],
        ),
    ]
}

fn run(folder: &Path) -> RunView {
    let path = folder.join("run");
    simulate(&Preset::Small.plan(&models(), 5), &path, "0.1.0").expect("simulates");
    RunView::open(&path).expect("opens")
}

#[test]
fn the_published_layout_comes_back_the_same() {
    let folder = tempfile::tempdir().expect("folder");
    let run = run(folder.path());
    let vision = BTreeSet::from(["google/vit-large-patch16-224".to_owned()]);
    let out = folder.path().join("csv");
    let summary = export(
        &run,
        &out,
        &ExportOptions {
            vision_models: vision,
            ..ExportOptions::new(ExportFormat::FocusCsv)
        },
    )
    .expect("exports");
    assert_eq!(
        summary.cells_left_out,
        BTreeMap::from([("its method or model has no name there".into(), 3)])
    );
    assert_eq!(summary.cells, 18);
    assert!(
        out.join("cv_refuge_glaucoma_linear_probing_google_vit_large_patch16_224.csv")
            .exists()
    );
    let back = folder.path().join("back");
    let options = ImportOptions {
        tool_version: "0.1.0".into(),
        aliases: Aliases::of_ids(models().iter().map(|m| m.id.clone())),
        synthetic: true,
        ..ImportOptions::default()
    };
    import_focus_csv(&out, &back, &options).expect("imports");
    let back = RunView::open(&back).expect("opens");
    assert_eq!(back.prediction_files().expect("lists").len(), 18);
    for again in back.all_predictions().expect("lists") {
        let again = again.expect("reads");
        let mut first = run.predictions(&again.cell).expect("is there");
        // What the layout does not say.
        first.rows.iter_mut().for_each(|row| row.patient = None);
        // Samples are counted within the records of each run; both are in order of dataset and id here.
        assert_eq!(first, again);
    }
}

#[test]
fn csv_holds_every_value_exactly() {
    let folder = tempfile::tempdir().expect("folder");
    run(folder.path());
    let path = folder.path().join("run");
    let manifest = RunView::open(&path).expect("opens").manifest().clone();
    let run = RunFolder::create_or_resume(&path, &manifest).expect("resumes");
    let metric = MetricRow {
        cell: CellKey::new("refuge", "glaucoma", "prompting", "=cmd()"),
        track: "corrected".into(),
        subset: "test".into(),
        metric: "auroc".into(),
        value: Some(0.1 + 0.2),
        missing: None,
        ci_low: Some(-1e-7),
        ci_high: Some(0.5),
        p_value: None,
        flags: vec![],
        n: 3,
        n_pos: 1,
        n_neg: 2,
    };
    run.write_metrics(&Metrics::new(vec![metric]).expect("sound"))
        .expect("writes");
    for per_cell in [false, true] {
        let out = folder.path().join(format!("csv{per_cell}"));
        let summary = export(
            &run,
            &out,
            &ExportOptions {
                per_cell,
                ..ExportOptions::new(ExportFormat::Csv)
            },
        )
        .expect("exports");
        let cells = run.prediction_files().expect("lists").len() as u64;
        assert_eq!(
            (summary.cells, summary.files),
            (cells, if per_cell { 3 + cells } else { 4 })
        );
        let rows = |name: &str| -> Vec<Vec<String>> {
            let mut reader = csv::Reader::from_path(out.join(name)).expect("opens");
            let header: Vec<String> = reader
                .headers()
                .expect("header")
                .iter()
                .map(str::to_owned)
                .collect();
            let rows = reader
                .records()
                .map(|r| r.expect("row").iter().map(str::to_owned).collect());
            std::iter::once(header).chain(rows).collect()
        };
        let metrics = rows("metrics.csv");
        let at = |name: &str| metrics[0].iter().position(|h| h == name).expect("column");
        assert_eq!(
            (
                metrics[1][at("model")].as_str(),
                metrics[1][at("value")].parse()
            ),
            ("'=cmd()", Ok(0.1 + 0.2))
        );
        assert_eq!(
            (
                metrics[1][at("ci_low")].as_str(),
                metrics[1][at("p_value")].as_str()
            ),
            ("-1e-7", "")
        );
        let columns = rows("columns.csv");
        let described = |table: &str| {
            columns
                .iter()
                .filter(|r| r[0] == table)
                .map(|r| r[1].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (described("metrics"), described("records")),
            (metrics[0].clone(), rows("records.csv")[0].clone())
        );
        if per_cell {
            continue;
        }
        let predictions = rows("predictions.csv");
        assert_eq!(described("predictions"), predictions[0]);
        assert_eq!(predictions.len() as u64, 1 + summary.rows);
        let at = |name: &str| {
            predictions[0]
                .iter()
                .position(|h| h == name)
                .expect("column")
        };
        let mut written = predictions[1..].iter();
        for cell in run.all_predictions().expect("lists") {
            for row in cell.expect("reads").rows {
                let line = written.next().expect("a line for each row");
                assert_eq!(unprotect_text(&line[at("id")]), Some(row.id.as_str()));
                assert_eq!(line[at("score")].parse::<f64>().ok(), row.score);
                assert_eq!(unprotect_text(&line[at("text")]), row.text.as_deref());
            }
        }
    }
}

#[test]
fn parquet_is_copied_only_when_sound_and_whole() {
    let folder = tempfile::tempdir().expect("folder");
    let run = run(folder.path());
    let out = folder.path().join("tables");
    let options = ExportOptions::new(ExportFormat::Parquet);
    let summary = export(&run, &out, &options).expect("exports");
    assert_eq!((summary.files, summary.cells), (22, 21));
    let name = "records.parquet";
    assert_eq!(
        fs::read(out.join(name)).expect("copy"),
        fs::read(run.path().join(name)).expect("original")
    );
    assert!(matches!(
        export(&run, &out, &options),
        Err(crate::ExchangeError::OutputExists { .. })
    ));
    let file = &run.prediction_files().expect("lists")[0];
    let bytes = fs::read(file).expect("reads");
    fs::write(file, &bytes[..bytes.len() / 2]).expect("cuts");
    for format in [
        ExportFormat::Parquet,
        ExportFormat::Csv,
        ExportFormat::FocusCsv,
    ] {
        let out = folder.path().join("broken");
        export(&run, &out, &ExportOptions::new(format)).expect_err("damaged");
        assert!(!out.exists());
    }
}

#[test]
fn names_that_the_layout_does_not_have_are_none() {
    let name = |method: &str, model: &str| {
        published_name(&CellKey::new("idrid", "binary_dr", method, model), false)
    };
    assert_eq!(
        name("prompting+cot", "a/b").as_deref(),
        Some("idrid_binary_dr_cot_a_b.csv")
    );
    for (method, model) in [
        ("prompting+shuffled", "a/b"),
        ("linear_probing+as_published", "a/b"),
        ("linear_probing", "a/b+lora-brset-binary_dr"),
        ("prompting", "a/b+tuned"),
        ("prompting", "a/b+other-brset-binary_dr"),
        ("other", "a/b"),
    ] {
        assert_eq!(name(method, model), None, "{method} {model}");
    }
}

mod round_trip {
    use super::*;
    use crate::answer_text::parse_yes_no;
    use focus_store::{Fold, Outcome, PredictionRow, Predictions, Record, Records, RunManifest};
    use proptest::prelude::*;

    type Parts = (Option<bool>, Option<f64>, Option<f64>, String, &'static str);

    // Rows as an import would have made them, with whatever text.
    fn row(sample: u32, (label, score, _, text, answer): &Parts) -> PredictionRow {
        let text = format!("{text} {answer}");
        let failed = text.trim() == "ERROR";
        let predicted = parse_yes_no(&text).filter(|_| !failed);
        let score = score.filter(|_| !failed);
        PredictionRow {
            sample,
            id: format!("=image, \"{sample:03}\""),
            fold: Fold::Test,
            copy: 0,
            split: Some("test".into()),
            patient: None,
            label: *label,
            published_label: *label,
            score,
            predicted,
            outcome: match (failed, predicted, score) {
                (true, ..) => Outcome::ModelError,
                (_, None, _) => Outcome::Unparseable,
                (_, _, None) => Outcome::ScoreUnavailable,
                _ => Outcome::Ok,
            },
            reason: failed.then(|| "error_text".to_owned()),
            text: Some(if failed { "ERROR".to_owned() } else { text }),
        }
    }

    fn manifest() -> RunManifest {
        RunManifest {
            tool_version: "0.1.0".into(),
            models: vec![],
            datasets: vec![],
            tasks: vec![],
            methods: vec![],
            device_kind: "cpu".into(),
            seeds: BTreeMap::new(),
            permissions: vec![],
            synthetic: true,
            options: BTreeMap::new(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_answers_come_back(parts in proptest::collection::vec((
            any::<Option<bool>>(),
            proptest::option::of(0.0..=1.0_f64),
            proptest::option::of(0.0..=1.0_f64),
            "[^\u{0}]{0,12}",
            prop_oneof![Just("yes"), Just("No."), Just(""), Just("ERROR"), Just("\"\r\n\"")],
        ), 1..12)) {
            let folder = tempfile::tempdir().expect("folder");
            let path = folder.path().join("run");
            let run = RunFolder::create_or_resume(&path, &manifest()).expect("starts");
            let rows: Vec<_> = parts.iter().enumerate().map(|(i, part)| row(i as u32, part)).collect();
            let record = |row: &PredictionRow| {
                let labels: BTreeMap<String, bool> = row.label.map(|l| ("glaucoma".to_owned(), l)).into_iter().collect();
                Record {
                    dataset: "refuge".into(),
                    id: row.id.clone(),
                    split: row.split.clone(),
                    labels: labels.clone(),
                    published_labels: labels,
                    ..Record::default()
                }
            };
            let records = Records {
                tasks: ["glaucoma".to_owned()].into(),
                rows: rows.iter().map(record).collect(),
            };
            run.write_records(&records).expect("writes");
            let failed = |i: usize| rows[i].outcome == Outcome::ModelError;
            let prob_no = parts.iter().enumerate().map(|(i, part)| part.2.filter(|_| !failed(i))).collect();
            let cell = CellKey::new("refuge", "glaucoma", "prompting", "a/b");
            let made = Predictions::new(cell, rows.clone(), vec![("prob_no".into(), prob_no)]).expect("sound");
            run.write_predictions(&made).expect("writes");
            let out = folder.path().join("csv");
            export(&run, &out, &ExportOptions::new(ExportFormat::FocusCsv)).expect("exports");
            let back = folder.path().join("back");
            let options = ImportOptions { aliases: Aliases::of_ids(["a/b"]), ..ImportOptions::default() };
            import_focus_csv(&out, &back, &options).expect("imports");
            let back = RunView::open(&back).expect("opens");
            prop_assert_eq!(back.predictions(&made.cell).expect("reads"), made);
            prop_assert_eq!(back.records().expect("reads"), records);
        }
    }
}
