//! Published split files through the whole program: what the benchmark's own files and merges make of a dataset, beside what is right.

use crate::support::{Place, arg, built, report, root, text};
use focus_store::{CellKey, Fold, Limits, Predictions};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const TRAIN: usize = 40;
const TEST: usize = 12;
/// Names of the test split that training photographs bear too; every third has the other label there.
const TWICE: usize = 12;

fn grade(split: &str, n: usize) -> usize {
    let positive = n.is_multiple_of(2) != (split == "train" && n <= TWICE && n.is_multiple_of(3));
    if positive { 3 } else { 0 }
}

/// A folder in IDRiD's shape with drawn photographs, and a split file in which training rows point at test photographs of their name.
fn idrid_shaped(place: &Place) -> (PathBuf, PathBuf) {
    let drawn = place.dataset(TRAIN as u32, 64);
    let mut pictures: Vec<PathBuf> = walk(&drawn)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "png" || e == "jpg"))
        .collect();
    pictures.sort();
    let root = place.path("idrid");
    let truths = root.join("B. Disease Grading/2. Groundtruths");
    std::fs::create_dir_all(&truths).expect("a folder");
    let mut file = String::from(
        "dataset,image_id,split,image_path,Task_DR_Binary,Task_Referable,Task_Glaucoma\n",
    );
    let mut next = pictures.iter();
    for (split, set, labels, count) in [
        (
            "train",
            "a. Training Set",
            "a. IDRiD_Disease Grading_Training Labels.csv",
            TRAIN,
        ),
        (
            "test",
            "b. Testing Set",
            "b. IDRiD_Disease Grading_Testing Labels.csv",
            TEST,
        ),
    ] {
        let folder = root.join("B. Disease Grading/1. Original Images").join(set);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut table = String::from("Image name,Retinopathy grade,Risk of macular edema \n");
        for n in 1..=count {
            let name = format!("IDRiD_{n:03}");
            std::fs::copy(
                next.next().expect("enough pictures"),
                folder.join(format!("{name}.jpg")),
            )
            .expect("copies");
            writeln!(table, "{name},{},0", grade(split, n)).expect("text");
            let shown = if n <= TWICE { "b. Testing Set" } else { set };
            let label = u8::from(grade(split, n) > 0);
            writeln!(
                file,
                "IDRiD,{name},{split},/srv/x/B.%20Disease%20Grading/1. Original Images/{shown}/{name}.jpg,{label},{label},"
            )
            .expect("text");
        }
        std::fs::write(truths.join(labels), table).expect("writes");
    }
    let split = place.path("split.csv");
    std::fs::write(&split, file).expect("writes");
    (root, split)
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn rows_doubled_by_the_published_merges_are_reproduced_and_repaired() {
    let place = Place::new();
    let (data, split) = idrid_shaped(&place);
    place.good(&[
        "eval",
        "--plugin",
        arg(&built().handcrafted),
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--split",
        arg(&split),
        "--tasks",
        "binary_dr",
        "--methods",
        "linear_probing",
        "--out",
        "run",
    ]);
    let run = place.path("run");
    let cell = |method: &str| {
        let stem = report(&run)["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .find(|c| c["cell"]["method"] == method)
            .unwrap_or_else(|| panic!("no cell of {method}"))["cell"]
            .clone();
        let key: CellKey = serde_json::from_value(stem).expect("a cell");
        let file = run
            .join("predictions")
            .join(format!("{}.parquet", key.file_stem()));
        Predictions::read(&file, &Limits::default()).expect("reads")
    };
    let rows = |cell: &Predictions, fold| cell.fold(fold).count();
    let right = cell("linear_probing");
    assert_eq!(
        (rows(&right, Fold::Train), rows(&right, Fold::Test)),
        (TRAIN, TEST)
    );
    let published = cell("linear_probing+as_published");
    // Two rows of one path, merged: 2 x 2, once more with the labels: 8, of which the test half stays.
    assert_eq!(rows(&published, Fold::Train), TRAIN - TWICE + 2 * TWICE);
    assert_eq!(rows(&published, Fold::Test), 4 * TEST);
    // Every test row was trained on, and those with the other label carry both.
    let trained: Vec<u32> = published.fold(Fold::Train).map(|row| row.sample).collect();
    assert!(
        published
            .fold(Fold::Test)
            .all(|row| trained.contains(&row.sample))
    );
    let wrong = published
        .fold(Fold::Test)
        .filter(|row| row.published_label != row.label);
    assert_eq!(wrong.count(), 2 * (TWICE / 3));
    let notes = report(&run)["notes"].to_string();
    for part in [
        "`split.csv`: 40/0/12 rows (train/validation/test); the published code works on 52/0/24 after its merges and analyses 48",
        "corrected: 40/0/12 photographs",
        "12 paths in more than one split",
        "4 paths with both labels of task `binary_dr`",
    ] {
        assert!(notes.contains(part), "{part} is not in {notes}");
    }
    place.good(&["verify", "run"]);
    // Another run beside it: labels that the merges bring are no disagreement.
    place.good(&[
        "eval",
        "--plugin",
        arg(&built().hostile),
        "--model",
        "hostile-generator",
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--split",
        arg(&split),
        "--tasks",
        "binary_dr",
        "--out",
        "asked",
    ]);
    let asked = report(&place.path("asked"));
    let cells = asked["cells"].as_array().expect("cells");
    let tracks: Vec<(&str, u64)> = cells
        .iter()
        .map(|c| {
            let method = c["cell"]["method"].as_str().expect("a method");
            let n = &c["tracks"][0];
            let count = |of: &str| n[of].as_u64().expect("a count");
            (method, count("n_pos") + count("n_neg"))
        })
        .collect();
    assert_eq!(
        tracks,
        [
            ("prompting", TEST as u64),
            ("prompting+as_published", 4 * TEST as u64)
        ]
    );
    place.good(&["verify", "asked"]);
    place.good(&["report", "run", "asked"]);
    place.good(&["export", "run", "--out", "out", "--format", "csv"]);
}

#[test]
fn the_audit_reads_a_split_file_in_both_tracks() {
    let place = Place::new();
    let (data, split) = idrid_shaped(&place);
    let out = place.run(&[
        "dataset",
        "audit",
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--split",
        arg(&split),
    ]);
    assert_eq!(out.status.code(), Some(6), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("12 paths in more than one split"), "{said}");
    let out = place.run(&["dataset", "audit", "--dataset", "idrid", "--split", "owm"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("found `owm`, which is no file"),
        "{}",
        text(&out.stderr)
    );
}

/// A split file with the names and collisions of the published one, on the real photographs.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn the_audit_finds_the_103_collisions_of_idrid() {
    let data = root().join("../shared/data/idrid");
    let Ok(data) = data.canonicalize() else {
        eprintln!("skipped: the IDRiD photographs are not at ../shared/data/idrid");
        return;
    };
    let place = Place::new();
    let mut file = String::from(
        "dataset,image_id,split,image_path,Task_DR_Binary,Task_Referable,Task_Glaucoma\n",
    );
    for (split, set, labels, count) in [
        (
            "train",
            "a. Training Set",
            "a. IDRiD_Disease Grading_Training Labels.csv",
            413,
        ),
        (
            "test",
            "b. Testing Set",
            "b. IDRiD_Disease Grading_Testing Labels.csv",
            103,
        ),
    ] {
        let table = data.join("B. Disease Grading/2. Groundtruths").join(labels);
        let table = std::fs::read_to_string(table).expect("labels");
        let mut read = 0;
        for line in table
            .lines()
            .skip(1)
            .filter(|line| line.starts_with("IDRiD"))
        {
            read += 1;
            let mut fields = line.split(',').map(str::trim);
            let name = fields.next().expect("a name");
            let grade: u8 = fields.next().expect("a grade").parse().expect("a number");
            let edema: u8 = fields.next().expect("edema").parse().expect("a number");
            let number: usize = name.trim_start_matches("IDRiD_").parse().expect("a number");
            let shown = if number <= 103 { "b. Testing Set" } else { set };
            let (any, referable) = (u8::from(grade > 0), u8::from(grade > 1 || edema > 0));
            writeln!(
                file,
                "IDRiD,{name},{split},/srv/B.%20Disease%20Grading/1. Original Images/{shown}/{name}.jpg,{any},{referable},"
            )
            .expect("text");
        }
        assert_eq!(read, count);
    }
    let split = place.path("idrid.csv");
    std::fs::write(&split, file).expect("writes");
    let out = place.run(&[
        "dataset",
        "audit",
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--split",
        arg(&split),
    ]);
    assert_eq!(out.status.code(), Some(6), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    for part in [
        "103 paths in more than one split",
        "41 paths with both labels of task `referable_dr`",
    ] {
        assert!(said.contains(part), "{part} is not in the audit");
    }
}

/// Patients whose two eyes a published file puts on both sides, as PAPILA's does.
#[test]
fn the_audit_finds_patients_in_two_splits_of_a_file() {
    let place = Place::new();
    let data = place.dataset(10, 64);
    let lines = place.path("records.jsonl");
    place.good(&[
        "dataset",
        "map",
        "--dataset",
        "synthetic",
        "--data",
        arg(&data),
        "--records",
        arg(&lines),
    ]);
    let mut file = String::from("patient_id,image_id,split\n");
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for line in std::fs::read_to_string(lines).expect("written").lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let patient = record["patient"].as_str().expect("a patient").to_owned();
        let path = record["sample"]["path"].as_str().expect("a path");
        let name = path.rsplit('/').next().expect("a name");
        let eyes = seen.entry(patient.clone()).or_default();
        let split = ["train", "test"][*eyes % 2];
        *eyes += 1;
        writeln!(file, "{patient},{name},{split}").expect("text");
    }
    let both = seen.values().filter(|eyes| **eyes > 1).count();
    assert!(both > 0, "two eyes a patient");
    let split = place.path("split.csv");
    std::fs::write(&split, file).expect("writes");
    let out = place.run(&[
        "dataset",
        "audit",
        "--dataset",
        "synthetic",
        "--data",
        arg(&data),
        "--split",
        arg(&split),
    ]);
    assert_eq!(out.status.code(), Some(6), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    let wanted = format!("{both} patients of the file with photographs in more than one split");
    assert!(said.contains(&wanted), "{wanted} is not in {said}");
}
