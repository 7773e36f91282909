//! Runs taken together: reports over many cells, comparison, import and export, simulated readers. Through the command line.

use crate::support::{Place, arg, built, contents, eval_on, text};
use serde_json::Value;
use std::path::Path;

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.good(args)).expect("JSON")
}

/// Fewer draws than the defaults, for speed.
const FEW: [&str; 6] = [
    "--resamples",
    "200",
    "--family-resamples",
    "200",
    "--permutations",
    "50",
];

fn grid(place: &Place) -> Value {
    place.good(&[
        "synth",
        "predictions",
        "--preset",
        "small",
        "--out",
        "grid",
        "--no-report",
    ]);
    json(place, &[&["report", "grid", "--json"], &FEW[..]].concat())
}

#[test]
fn a_grid_of_simulated_readers_fills_every_table() {
    let place = Place::new();
    let report = grid(&place);
    assert_eq!(report["schema"], "focus-grid-report/1");
    assert_eq!(report["synthetic"], true);
    let summary = &report["summary"];
    for table in ["means", "encoders", "types", "trade_offs", "coverage"] {
        let tables = summary[table].as_array().expect("a list");
        assert!(tables.len() >= 2, "{table}: one for each track");
    }
    let boards = summary["leaderboards"]["boards"]
        .as_array()
        .expect("boards");
    assert!(
        boards
            .iter()
            .any(|b| b["dataset"].is_null() && b["entries"][0]["rank"] == 1.0)
    );
    let tuning = &summary["fine_tuning"]["tables"][0];
    assert!(!tuning["comparisons"].as_array().expect("pairs").is_empty());
    assert!(!tuning["families"].as_array().expect("families").is_empty());
    let shown = place.good(&[&["report", "grid"], &FEW[..]].concat());
    for title in [
        "Coverage",
        "Table 3",
        "Table 4",
        "Table 9",
        "Fig. 3",
        "Leaderboard",
        "Fine-tuning",
    ] {
        assert!(shown.contains(title), "{title} in\n{shown}");
    }
    assert!(shown.contains("SYNTHETIC"), "{shown}");
    place.good(
        &[
            &["report", "grid", "--format", "markdown", "--out", "grid.md"],
            &FEW[..],
        ]
        .concat(),
    );
    let markdown = std::fs::read_to_string(place.path("grid.md")).expect("written");
    assert!(markdown.contains("## Subgroup gaps") && markdown.contains("## Cells"));
    assert!(!markdown.contains("NaN") && !report.to_string().contains("NaN"));
}

#[test]
fn truth_lies_in_most_intervals_of_the_report() {
    let place = Place::new();
    let report = grid(&place);
    let truth: Value =
        serde_json::from_slice(&std::fs::read(place.path("grid/truth.json")).expect("written"))
            .expect("JSON");
    let (mut all, mut inside) = (0, 0);
    for cell in report["cells"].as_array().expect("cells") {
        let known = truth["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .find(|c| c["cell"] == cell["cell"])
            .expect("every cell has a truth");
        let value = known["overall"]["auroc"].as_f64().expect("two classes");
        let metrics = cell["tracks"][0]["metrics"].as_array().expect("metrics");
        let auroc = metrics.iter().find(|m| m["id"] == "auroc").expect("there");
        let end = |i: usize| auroc["interval"][i].as_f64().expect("an interval");
        all += 1;
        inside += usize::from((end(0)..=end(1)).contains(&value));
    }
    assert!(inside * 100 > all * 85, "{inside} of {all}");
}

#[test]
fn imported_results_are_the_exported_ones() {
    let place = Place::new();
    place.good(&[
        "synth",
        "predictions",
        "--preset",
        "small",
        "--out",
        "grid",
        "--no-report",
    ]);
    place.good(&[
        "export",
        "grid",
        "--format",
        "focus-csv",
        "--out",
        "published",
    ]);
    let summary = json(
        &place,
        &[
            "import",
            "focus-csv",
            "published",
            "--out",
            "back",
            "--synthetic",
            "--json",
        ],
    );
    assert_eq!(summary["cells"], 120);
    assert_eq!(summary["unknown_models"], serde_json::json!([]));
    let scores = |run: &str| {
        let cells = json(&place, &[&["report", run, "--json"], &FEW[..]].concat());
        cells["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .map(|c| {
                let values: Vec<_> = c["tracks"][1]["metrics"]
                    .as_array()
                    .expect("metrics")
                    .iter()
                    .map(|m| m["value"].clone())
                    .collect();
                (c["cell"].clone(), values)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        scores("grid"),
        scores("back"),
        "as published, nothing is lost"
    );
    place.good(&["verify", "back"]);

    // The same import again changes nothing; another into the same folder is refused.
    let before = contents(&place.path("back"));
    place.good(&[
        "import",
        "focus-csv",
        "published",
        "--out",
        "back",
        "--synthetic",
    ]);
    assert_eq!(before, contents(&place.path("back")));
    let other = place.run(&["import", "focus-csv", "published", "--out", "back"]);
    assert!(!other.status.success(), "{}", text(&other.stdout));

    for format in ["csv", "parquet"] {
        place.good(&["export", "back", "--format", format, "--out", format]);
        assert!(
            place
                .path(format)
                .join(format!("metrics.{format}"))
                .exists()
        );
    }
    let again = place.run(&["export", "back", "--out", "csv"]);
    assert!(
        text(&again.stderr).contains("csv"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(again.status.code(), Some(3));
}

#[test]
fn a_bad_row_is_named_and_nothing_is_written() {
    let place = Place::new();
    let folder = place.path("results");
    std::fs::create_dir(&folder).expect("creates");
    let file = folder.join("idrid_binary_dr_linear_probing_dinov2-large.csv");
    std::fs::write(
        &file,
        "id,ground_truth,prediction,prob_1\na,1,1,0.8\nb,0,0,1.5\nc,2,0,0.1\n",
    )
    .expect("writes");
    let out = place.run(&["import", "focus-csv", "results", "--out", "run"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let said = text(&out.stderr);
    assert!(
        said.contains("idrid_binary_dr") && said.contains("line 3") && said.contains("line 4"),
        "{said}"
    );
    assert!(said.contains("hint"), "{said}");
    assert!(!place.path("run").exists());
}

#[test]
fn verify_finds_a_changed_score_in_a_folder_of_predictions() {
    let place = Place::new();
    place.good(&["synth", "predictions", "--preset", "small", "--out", "grid"]);
    place.good(&["verify", "grid"]);
    let report = place.path("grid/report.md");
    let mut text = std::fs::read_to_string(&report).expect("stored");
    text = text.replacen("0.7", "0.9", 1);
    std::fs::write(&report, text).expect("writes");
    assert_eq!(place.run(&["verify", "grid"]).status.code(), Some(6));
}

fn runs(place: &Place) -> [&'static str; 2] {
    let data = place.dataset(24, 96);
    for (plugin, out) in [(&built().handcrafted, "one"), (&built().hostile, "two")] {
        place.good(&eval_on(
            plugin,
            &data,
            &["--out", out, "--tasks", "binary_dr"],
        ));
    }
    ["one", "two"]
}

#[test]
fn two_runs_are_compared_image_by_image() {
    let place = Place::new();
    let [one, two] = runs(&place);
    let found = json(
        &place,
        &[&["compare", one, one, "--json"], &FEW[..2]].concat(),
    );
    for delta in found["tasks"][0]["deltas"].as_array().expect("deltas") {
        assert_eq!(delta["delta"], 0.0, "{delta}");
        assert_eq!(delta["interval"], serde_json::json!([0.0, 0.0]));
        assert_eq!(delta["p"], 1.0);
    }
    let args = [
        "compare",
        one,
        two,
        "--base-method",
        "linear_probing",
        "--other-method",
        "linear_probing",
        "--resamples",
        "200",
    ];
    let there = json(&place, &[&args[..], &["--json"]].concat());
    let back = json(
        &place,
        &[
            "compare",
            two,
            one,
            "--base-method",
            "linear_probing",
            "--other-method",
            "linear_probing",
            "--resamples",
            "200",
            "--json",
        ],
    );
    let deltas = |found: &Value| -> Vec<f64> {
        let all = found["tasks"][0]["deltas"].as_array().expect("deltas");
        all.iter().filter_map(|d| d["delta"].as_f64()).collect()
    };
    assert!(!deltas(&there).is_empty());
    for (a, b) in deltas(&there).iter().zip(deltas(&back)) {
        assert_eq!(*a, -b);
    }
    assert!(place.good(&args).contains("difference"));
    // Together they are a grid of two models.
    let report = json(
        &place,
        &[&["report", one, two, "--json"], &FEW[..]].concat(),
    );
    assert!(report["cells"].as_array().expect("cells").len() >= 4);
    assert_eq!(report["runs"], serde_json::json!([one, two]));
}

#[test]
fn runs_that_disagree_about_a_label_are_refused() {
    let place = Place::new();
    let write = |folder: &str, model: &str, label: u8| {
        let dir = place.path(folder);
        std::fs::create_dir(&dir).expect("creates");
        let rows: String = (0..30)
            .map(|i| {
                format!(
                    "i{i},{},{},0.{:02}\n",
                    if i == 7 { label } else { i % 2 },
                    i % 2,
                    i + 10
                )
            })
            .collect();
        let name = format!("idrid_binary_dr_linear_probing_{model}.csv");
        std::fs::write(
            dir.join(name),
            format!("id,ground_truth,prediction,prob_1\n{rows}"),
        )
        .expect("writes");
        place.good(&[
            "import",
            "focus-csv",
            folder,
            "--out",
            &format!("{folder}-run"),
        ]);
    };
    write("a", "dinov2-large", 1);
    write("b", "vit-large-patch16-224", 0);
    let out = place.run(&["report", "a-run", "b-run"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stdout));
    let said = text(&out.stderr);
    assert!(
        said.contains("a-run") && said.contains("b-run") && said.contains("i7"),
        "{said}"
    );
    assert_eq!(
        place.run(&["compare", "a-run", "b-run"]).status.code(),
        Some(3)
    );
}

#[test]
fn damaged_tables_are_named() {
    let place = Place::new();
    place.good(&[
        "synth",
        "predictions",
        "--preset",
        "small",
        "--out",
        "grid",
        "--no-report",
    ]);
    let folder = place.path("grid/predictions");
    let file = std::fs::read_dir(&folder)
        .expect("lists")
        .map(|e| e.expect("entry").path())
        .find(|p| p.extension().is_some_and(|e| e == "parquet"))
        .expect("a table");
    let whole = std::fs::read(&file).expect("reads");
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("writes");
    let out = place.run(&["report", "grid"]);
    assert_eq!(out.status.code(), Some(3));
    let name = Path::new(&file).file_name().expect("a name");
    assert!(
        text(&out.stderr).contains(arg(Path::new(name))),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn a_model_with_random_weights_is_a_control_of_its_own() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let eval = |more: &[&str]| {
        let all = [
            &[
                "--model",
                "facebook/dinov2-large",
                "--set",
                "size=tiny",
                "--tasks",
                "binary_dr",
            ],
            more,
        ]
        .concat();
        place.run(&eval_on(&built().vit, &data, &all))
    };
    let out = eval(&["--weights", "random:3", "--out", "control"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("random weights, seed 3"),
        "{}",
        text(&out.stdout)
    );
    let report: Value =
        serde_json::from_slice(&std::fs::read(place.path("control/report.json")).expect("stored"))
            .expect("JSON");
    let model = &report["cells"][0]["cell"]["model"];
    assert_eq!(model, "facebook/dinov2-large+tiny+random-3");
    // Nor does the benchmark's grid count it, or any other model that is not in it.
    let grid = json(
        &place,
        &[&["report", "control", "control", "--json"], &FEW[..]].concat(),
    );
    let benchmark = grid["summary"]["coverage"]
        .as_array()
        .expect("coverage")
        .iter()
        .find(|c| c["track"] == "corrected" && c["against"] == "benchmark")
        .expect("there")
        .clone();
    assert_eq!(
        (&benchmark["expected"], &benchmark["counts"]["present"]),
        (&476.into(), &Value::Null)
    );
    place.good(&["verify", "control"]);
    assert_eq!(eval(&["--weights", "random:x"]).status.code(), Some(2));
    assert_eq!(
        eval(&["--weights", "random:3", "--set", "weights=random:4"])
            .status
            .code(),
        Some(2)
    );
    let missing = eval(&[]);
    assert!(
        text(&missing.stderr).contains("model.safetensors"),
        "{}",
        text(&missing.stderr)
    );
}
