//! Folders of made-up result files, in and out.

use super::*;
use crate::error::Conflict;
use focus_store::{Record, RunView};

const VIT: &str = "cv_refuge_glaucoma_linear_probing_google_vit_large_patch16_224.csv";
const GEMMA: &str = "refuge_glaucoma_google_medgemma-4b-it.csv";
const ADAPTER: &str = "evals_sft/sft_x/train_model-google_medgemma-4b-it_train_dataset-brset_train_task-glaucoma_train_strategy-base__test_model-google_medgemma-4b-it_test_dataset-refuge_test_task-glaucoma_test_strategy-base_split-test.csv";
const ENCODER: &str =
    "id,ground_truth,prediction,prob_1\nV0001,1,1,0.875\nV0002,0,0,0.25\nV0003,0.0,1,6.5e-05\n";
const PROMPTED: &str = "id,ground_truth,prediction_text,prompt,prob_yes,prob_no\nV0003,0,No.,q,0.1,0.8\nV0001,1,\"Yes, \"\"clearly\"\"\",q,0.7,0.2\nV0002,0,maybe,q,0.3,0.3\nV0004,,ERROR,q,0.0,0.0\n";

struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        for (name, text) in files {
            let path = folder.path().join("in").join(name);
            fs::create_dir_all(path.parent().expect("parent")).expect("folders");
            fs::write(path, text).expect("writes");
        }
        Self { folder }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn import(&self, options: &ImportOptions<'_>) -> Result<ImportSummary> {
        import_focus_csv(&self.folder.path().join("in"), &self.out(), options)
    }

    fn refused(&self, options: &ImportOptions<'_>) -> ExchangeError {
        let error = self.import(options).expect_err("refused");
        assert!(!self.out().exists(), "nothing is written");
        error
    }
}

fn options<'a>() -> ImportOptions<'a> {
    ImportOptions {
        tool_version: "0.1.0".into(),
        aliases: Aliases::of_ids(["google/vit-large-patch16-224", "google/medgemma-4b-it"]),
        ..ImportOptions::default()
    }
}

fn dropping<'a>() -> ImportOptions<'a> {
    ImportOptions {
        on_bad_row: OnBadRow::Drop,
        ..options()
    }
}

#[test]
fn encoders_prompts_and_adapters_become_one_run() {
    let case = Case::new(&[(VIT, ENCODER), (GEMMA, PROMPTED), (ADAPTER, PROMPTED)]);
    let summary = case.import(&options()).expect("imports");
    assert_eq!(
        (summary.files, summary.cells, summary.rows, summary.images),
        (3, 3, 11, 4)
    );
    assert_eq!(summary.unknown_labels, 2);
    assert_eq!(
        summary.excluded,
        BTreeMap::from([
            ("model_error:error_text".into(), 2),
            ("unparseable".into(), 2)
        ])
    );
    assert_eq!(summary.unread_columns["prompt"], 2);
    let run = RunView::open(&case.out()).expect("opens");
    assert!(run.manifest().models.iter().all(|m| m.plugin.is_none()));
    assert_eq!(run.manifest().datasets[0].mapper_digest, None);
    assert_eq!(run.manifest().datasets[0].tables.len(), 3);
    let records = run.records().expect("records");
    let ids: Vec<_> = records.rows.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids, ["V0001", "V0002", "V0003", "V0004"]);
    assert_eq!(
        records.rows[3].labels.get("glaucoma"),
        None,
        "blank is unknown"
    );
    let cell = CellKey::new(
        "refuge",
        "glaucoma",
        "prompting",
        "google/medgemma-4b-it+lora-brset-glaucoma",
    );
    let adapted = run.predictions(&cell).expect("cell");
    assert_eq!(
        adapted.extra[0],
        (
            "prob_no".to_owned(),
            vec![Some(0.2), Some(0.3), Some(0.8), None]
        )
    );
    assert_eq!(adapted.rows[0].text.as_deref(), Some("Yes, \"clearly\""));
    let probe = CellKey::new(
        "refuge",
        "glaucoma",
        "linear_probing",
        "google/vit-large-patch16-224",
    );
    let scores: Vec<_> = run
        .predictions(&probe)
        .expect("cell")
        .rows
        .iter()
        .map(|r| r.score)
        .collect();
    assert_eq!(scores, [Some(0.875), Some(0.25), Some(6.5e-5)]);
    assert!(
        fs::read_to_string(case.out().join("import.json"))
            .expect("note")
            .contains("both `ground_truth`")
    );
    // The same again is the same run; another file makes it another.
    assert_eq!(case.import(&options()).expect("again"), summary);
    fs::write(
        case.folder.path().join("in").join(VIT),
        ENCODER.replace("0.25", "0.26"),
    )
    .expect("writes");
    assert!(
        case.import(&options())
            .expect_err("another run")
            .to_string()
            .contains("belongs to another run")
    );
}

#[test]
fn all_bad_rows_are_listed_or_dropped_and_counted() {
    let bad = "id,ground_truth,prediction,prob_1\nV0001,1,1,0.875\nV0002,0,0,1.25\nV0003,3,1,0.5\n,0,1,0.5\nV0005,0,0,0.5\nV0005,0,0,0.5\n";
    let case = Case::new(&[(VIT, bad), (GEMMA, &PROMPTED.replace("0.1,", "nan_,"))]);
    let error = case.refused(&options());
    let text = error.to_string();
    assert!(
        text.starts_with("Rows break rules: expected none, found 5"),
        "{text}"
    );
    for part in [
        format!("`{VIT}`, line 3: a probability must be finite and lie in [0, 1], found `1.25`"),
        format!("`{VIT}`, line 4: `ground_truth` must be 0 or 1"),
        format!("`{VIT}`, line 5: `id` must not be empty"),
        format!("`{VIT}`, line 7: `id` must be there once"),
        format!("`{GEMMA}`, line 2: a probability"),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    assert!(error.hint().expect("advice").contains("--on-bad-row drop"));
    let summary = case.import(&dropping()).expect("imports");
    assert_eq!(
        summary.dropped,
        BTreeMap::from([("breaks a rule".into(), 4), ("repeats a row".into(), 1)])
    );
    assert_eq!((summary.cells, summary.rows), (2, 5));
}

#[test]
fn a_long_list_of_bad_rows_is_capped_and_its_number_kept() {
    let rows: String = (0..500).map(|i| format!("V{i},7,1,0.5\n")).collect();
    let case = Case::new(&[(VIT, &format!("id,ground_truth,prediction,prob_1\n{rows}"))]);
    let text = case.refused(&options()).to_string();
    assert!(
        text.contains("found 500") && text.contains("and 480 more") && text.lines().count() == 22,
        "{text}"
    );
    let empty = case.import(&dropping()).expect("nothing left");
    assert_eq!(
        (
            empty.cells,
            empty.empty_cells.len(),
            empty.dropped["breaks a rule"]
        ),
        (0, 1, 500)
    );
}

#[test]
fn labels_that_disagree_between_files_name_both() {
    let case = Case::new(&[
        (VIT, ENCODER),
        (GEMMA, &PROMPTED.replace("V0001,1", "V0001,0")),
    ]);
    for options in [options(), dropping()] {
        let error = case.refused(&options);
        let ExchangeError::LabelsDisagree { shown, total: 1 } = &error else {
            panic!("{error}")
        };
        let first = (VIT.to_owned(), 2, true);
        assert_eq!(
            shown[0],
            Conflict {
                dataset: "refuge".into(),
                task: "glaucoma".into(),
                id: "V0001".into(),
                first,
                second: (GEMMA.into(), 3, false)
            }
        );
        assert!(
            error
                .to_string()
                .contains(&format!("1 (`{VIT}`, line 2) and 0 (`{GEMMA}`, line 3)")),
            "{error}"
        );
    }
}

#[test]
fn names_cells_and_columns_must_be_clear() {
    let case = Case::new(&[
        (VIT, ENCODER),
        ("analysis/aggregated_metrics.csv", "a\n1\n"),
    ]);
    let error = case.refused(&options());
    assert!(
        error
            .to_string()
            .contains("`analysis/aggregated_metrics.csv`: no reading"),
        "{error}"
    );
    assert_eq!(
        case.import(&dropping()).expect("imports").skipped_files,
        ["analysis/aggregated_metrics.csv"]
    );
    let twin = "refuge_glaucoma_linear_probing_google_vit-large-patch16-224.csv";
    let error = Case::new(&[(VIT, ENCODER), (twin, ENCODER)]).refused(&options());
    assert!(
        error.to_string().contains(VIT) && error.to_string().contains(twin),
        "{error}"
    );
    let error = Case::new(&[(VIT, PROMPTED)]).refused(&options());
    assert!(
        error.to_string().contains("those of `linear_probing`"),
        "{error}"
    );
    let error = Case::new(&[("x.txt", "")]).refused(&options());
    assert!(matches!(error, ExchangeError::NoFiles { .. }), "{error}");
}

#[test]
fn what_spreadsheets_do_to_files_is_tolerated() {
    let case = Case::new(&[]);
    let folder = case.folder.path().join("in");
    fs::create_dir_all(&folder).expect("folder");
    let text = ENCODER
        .replace("V0001", "V\u{e9}1")
        .replace(',', ";")
        .replace("0.875", "0,875")
        .replace('\n', "\r\n");
    let bytes = encoding_rs::WINDOWS_1252.encode(&text).0.into_owned();
    fs::write(folder.join(VIT), bytes).expect("writes");
    let summary = case.import(&options()).expect("imports");
    assert!(
        summary.remarks[0].contains("cp1252"),
        "{:?}",
        summary.remarks
    );
    let run = RunView::open(&case.out()).expect("opens");
    let cell = run
        .all_predictions()
        .expect("lists")
        .next()
        .expect("one")
        .expect("reads");
    assert_eq!(
        cell.rows
            .iter()
            .find(|r| r.id == "V\u{e9}1")
            .and_then(|r| r.score),
        Some(0.875)
    );
}

#[test]
fn metadata_gives_subgroups_and_both_sides_without_a_partner_are_counted() {
    let case = Case::new(&[(VIT, ENCODER), (GEMMA, PROMPTED)]);
    let table = case.folder.path().join("meta.csv");
    fs::write(&table, "dataset,id,age,sex,patient,label_glaucoma\nrefuge,V0001,70,female,p1,1\nrefuge,V0002,50,male,p1,1\nrefuge,V0009,40,,,\nbrset,x,,,,\n").expect("writes");
    let with = ImportOptions {
        roster: Roster::Metadata(&table),
        ..options()
    };
    let summary = case.import(&with).expect("imports");
    assert_eq!(summary.unmatched_ids.count, 2);
    assert_eq!(summary.unmatched_images.examples, ["refuge `V0009`"]);
    assert!(
        summary.labels.contains("metadata")
            && summary
                .remarks
                .iter()
                .any(|r| r.starts_with("1 known images"))
    );
    let run = RunView::open(&case.out()).expect("opens");
    let records = run.records().expect("records");
    assert_eq!(
        (
            records.rows[1].age,
            records.rows[1].labels["glaucoma"],
            records.rows[1].published_labels["glaucoma"]
        ),
        (Some(50.0), true, false)
    );
    assert_eq!(records.rows[1].split.as_deref(), Some("test"));
    assert_eq!(records.rows[2].split, None, "no result file names it");
    let probe = CellKey::new(
        "refuge",
        "glaucoma",
        "linear_probing",
        "google/vit-large-patch16-224",
    );
    let row = &run.predictions(&probe).expect("cell").rows[1];
    assert_eq!(
        (
            row.id.as_str(),
            row.label,
            row.published_label,
            row.patient.as_deref()
        ),
        ("V0002", Some(true), Some(false), Some("p1"))
    );
    fs::write(&table, "dataset,id,sex\nrefuge,V0001,0\n").expect("writes");
    assert!(
        case.import(&with)
            .expect_err("coding")
            .to_string()
            .contains("opposite things")
    );
}

#[test]
fn records_of_a_data_folder_are_joined_by_path_name_and_split() {
    let record = |id: &str, path: &str, split: &str, label: bool| Record {
        dataset: "idrid".into(),
        id: id.into(),
        path: Some(path.into()),
        split: Some(split.into()),
        labels: BTreeMap::from([("binary_dr".into(), label)]),
        published_labels: BTreeMap::from([("binary_dr".into(), label)]),
        ..Record::default()
    };
    let records = [
        record("aa", "Training/IDRiD_001.jpg", "train", false),
        record("bb", "Testing/IDRiD_001.jpg", "test", true),
        record("cc", "Testing/IDRiD_002.jpg", "test", true),
        record("dd", "Testing/IDRiD_003.jpg", "test", true),
    ];
    let tasks = BTreeSet::from(["binary_dr".to_owned()]);
    let roster = Roster::Records {
        records: &records,
        tasks: &tasks,
        identities: &[],
    };
    let name = "idrid_binary_dr_zero_shot_FLAIR.csv";
    let text = "id,ground_truth,prediction,prob_1\n/lustre/x/Testing/IDRiD_001.jpg,1,1,0.5\nIDRiD_002,0,1,0.5\n/lustre/x/other.jpg,1,1,0.5\n";
    let case = Case::new(&[(name, text)]);
    let summary = case
        .import(&ImportOptions {
            roster,
            ..options()
        })
        .expect("imports");
    assert_eq!(
        (
            summary.unmatched_ids.count,
            summary.unmatched_images.count,
            summary.published_label_differs.count
        ),
        (1, 1, 1)
    );
    assert_eq!(summary.unknown_models, ["FLAIR"]);
    let run = RunView::open(&case.out()).expect("opens");
    let cell = run
        .all_predictions()
        .expect("lists")
        .next()
        .expect("one")
        .expect("reads");
    let rows: Vec<_> = cell
        .rows
        .iter()
        .map(|r| (r.id.as_str(), r.label, r.published_label))
        .collect();
    assert_eq!(
        rows,
        [
            ("bb", Some(true), Some(true)),
            ("cc", Some(true), Some(false)),
            ("other.jpg", Some(true), Some(true))
        ]
    );
    // One image under two ids.
    let twice = Case::new(&[(
        name,
        "id,ground_truth,prediction,prob_1\nIDRiD_002,1,1,0.5\nIDRiD_002.jpg,1,1,0.6\nIDRiD_003,1,1,0.5\n",
    )]);
    let with = ImportOptions {
        roster,
        ..options()
    };
    let error = twice.refused(&with).to_string();
    assert!(
        error.contains(
            "line 3: `id` must be there once, found `IDRiD_002.jpg`, the image of line 2"
        ),
        "{error}"
    );
    let left = twice
        .import(&ImportOptions {
            roster,
            ..dropping()
        })
        .expect("imports");
    assert_eq!((left.rows, left.dropped[build::DISPUTED]), (1, 2));
    // Two images under one id.
    let clash = [
        record("aa", "a/x.jpg", "test", true),
        record("bb", "b/x.jpg", "test", true),
    ];
    let roster = Roster::Records {
        records: &clash,
        tasks: &tasks,
        identities: &[],
    };
    let error = Case::new(&[(name, "id,ground_truth,prediction,prob_1\nx,1,1,0.5\n")]).refused(
        &ImportOptions {
            roster,
            ..options()
        },
    );
    assert!(
        error
            .to_string()
            .contains("`a/x.jpg` (test), `b/x.jpg` (test)"),
        "{error}"
    );
    // Row positions name nothing.
    let case = Case::new(&[(
        name,
        "id,ground_truth,prediction,prob_1\n0,1,1,0.5\n1,1,1,0.5\n",
    )]);
    let roster = Roster::Records {
        records: &records,
        tasks: &tasks,
        identities: &[],
    };
    let summary = case
        .import(&ImportOptions {
            roster,
            ..options()
        })
        .expect("imports");
    assert!(
        summary.remarks.iter().any(|r| r.contains("row positions")),
        "{:?}",
        summary.remarks
    );
}

#[test]
fn paths_without_a_roster_lose_their_folders_but_not_their_difference() {
    let name = "g1020_glaucoma_zero_shot_FLAIR.csv";
    let text = "id,ground_truth,prediction,prob_1\n/lustre/x/image_0.jpg,1,1,0.5\n/lustre/y/image_0.jpg,0,1,0.5\n";
    let error = Case::new(&[(name, text)]).refused(&options());
    assert!(
        error.to_string().contains("/lustre/x/image_0.jpg")
            && matches!(error, ExchangeError::AmbiguousId { line: 3, .. }),
        "{error}"
    );
    let case = Case::new(&[(name, &text.replace("y/image_0", "y/image_1"))]);
    case.import(&options()).expect("imports");
    let records = RunView::open(&case.out())
        .expect("opens")
        .records()
        .expect("reads");
    assert!(
        records
            .rows
            .iter()
            .all(|r| !r.id.contains('/') && r.path.is_none())
    );
}
