//! The main job on the real photographs, where they are.

use crate::support::{Place, arg, built, metric, report, root};
use std::path::PathBuf;

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
    place.good(&["dataset", "map", "--dataset", "idrid", "--data", arg(&data), "--records", arg(&lines)]);
    let text = std::fs::read_to_string(lines).expect("written");
    let records: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(records.len(), 516);
    let mut hashes = std::collections::BTreeSet::new();
    let mut names = std::collections::BTreeMap::<String, usize>::new();
    for record in &records {
        let path = record["sample"]["path"].as_str().expect("a path");
        hashes.insert(std::fs::read(data.join(path)).expect("a photograph"));
        *names.entry(path.rsplit('/').next().expect("a name").to_owned()).or_default() += 1;
    }
    assert_eq!(hashes.len(), 516, "every record is another photograph");
    assert_eq!(names.values().filter(|count| **count == 2).count(), 103);
}

#[test]
fn the_handcrafted_encoder_is_worth_having() {
    let Some(data) = photographs() else { return };
    let place = Place::new();
    let plugin = arg(&built().handcrafted);
    place.good(&[
        "eval", "--plugin", plugin, "--dataset", "idrid", "--data", arg(&data), "--tasks", "binary_dr,referable_dr", "--out", "run",
    ]);
    let report = report(&place.path("run"));
    assert_eq!(report["synthetic"], false);
    assert_eq!(report["splits"]["train"]["answered"], 413);
    assert_eq!(report["splits"]["test"]["answered"], 103);
    let cell = &report["cells"][0];
    assert_eq!((cell["tracks"][0]["n_pos"].as_u64(), cell["tracks"][0]["n_neg"].as_u64()), (Some(69), Some(34)));
    for cell in report["cells"].as_array().expect("cells") {
        assert_eq!(cell["fit"]["status"], "converged", "{cell:#}");
        assert!(cell["fit"]["gradient_norm"].as_f64().expect("a norm") < 1e-10);
    }
    assert!(metric(&report, "binary_dr", "linear_probing", "auroc") > 0.75);
    assert!(metric(&report, "referable_dr", "linear_probing", "auroc") > 0.8);
    place.good(&["verify", "run"]);
}
