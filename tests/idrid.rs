//! The main job on the real photographs, where they are.

use crate::support::{Place, arg, built, metric, report, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn photographs() -> Option<PathBuf> {
    let dir = root().join("../shared/data/idrid");
    if dir.is_dir() {
        return Some(dir.canonicalize().expect("it is there"));
    }
    eprintln!("skipped: the IDRiD photographs are not at ../shared/data/idrid");
    None
}

#[test]
fn all_516_photographs_are_distinct_though_103_names_occur_twice() {
    let Some(data) = photographs() else { return };
    let place = Place::new();
    let lines = place.path("records.jsonl");
    place.good(&[
        "dataset",
        "map",
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--records",
        arg(&lines),
    ]);
    let text = std::fs::read_to_string(lines).expect("written");
    let records: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(records.len(), 516);
    let mut paths = BTreeSet::new();
    let mut contents: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    let mut names: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for record in &records {
        let path = record["sample"]["path"].as_str().expect("a path");
        let bytes = std::fs::read(data.join(path)).expect("a photograph");
        let name = path.rsplit('/').next().expect("a name").to_owned();
        assert!(paths.insert(path.to_owned()), "{path} is named twice");
        contents
            .entry(bytes.clone())
            .or_default()
            .push(path.to_owned());
        names.entry(name).or_default().insert(bytes);
    }
    assert_eq!(paths.len(), 516);
    // Of each name that occurs twice the two files are two photographs.
    assert_eq!(names.len(), 413);
    assert_eq!(
        names
            .values()
            .filter(|photographs| photographs.len() == 2)
            .count(),
        103
    );
    // The source itself holds six photographs under two names each; one of them lies in both splits.
    assert_eq!(contents.len(), 510);
    let both = |paths: &&Vec<String>| {
        paths.iter().any(|p| p.contains("Training")) && paths.iter().any(|p| p.contains("Testing"))
    };
    assert_eq!(contents.values().filter(both).count(), 1);
}

#[test]
fn the_handcrafted_encoder_is_worth_having() {
    let Some(data) = photographs() else { return };
    let place = Place::new();
    let plugin = arg(&built().handcrafted);
    place.good(&[
        "eval",
        "--plugin",
        plugin,
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--tasks",
        "binary_dr,referable_dr",
        "--out",
        "run",
    ]);
    let report = report(&place.path("run"));
    assert_eq!(report["synthetic"], false);
    assert_eq!(report["splits"]["train"]["answered"], 413);
    assert_eq!(report["splits"]["test"]["answered"], 103);
    let cell = &report["cells"][0];
    assert_eq!(
        (
            cell["tracks"][0]["n_pos"].as_u64(),
            cell["tracks"][0]["n_neg"].as_u64()
        ),
        (Some(69), Some(34))
    );
    for cell in report["cells"].as_array().expect("cells") {
        assert_eq!(cell["fit"]["status"], "converged", "{cell:#}");
        assert!(cell["fit"]["gradient_norm"].as_f64().expect("a norm") < 1e-10);
    }
    assert!(metric(&report, "binary_dr", "linear_probing", "auroc") > 0.75);
    assert!(metric(&report, "referable_dr", "linear_probing", "auroc") > 0.8);
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("1 test image has the same bytes as a training image"),
        "{notes}"
    );
    assert!(notes.contains("idrid-train"), "{notes}");
    place.good(&["verify", "run"]);
}
