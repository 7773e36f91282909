//! Dual encoders from the command line to the tables: probe and zero-shot from one image pass, several models in one command.

use crate::support::{Place, arg, built, eval_on, root, text};
use focus_store::{Fold, Limits, Predictions, RunView};
use serde_json::Value;
use std::path::Path;

const MODELS: [&str; 6] = [
    "google/medsiglip-448",
    "google/siglip2-base-patch16-224",
    "openai/clip-vit-base-patch32",
    "EyeCLIP",
    "RET-CLIP",
    "jusiro2/FLAIR",
];

/// Toy models with random weights, on three tasks in two ways.
fn grid<'a>(data: &'a Path, models: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut args = eval_on(
        &built().clip,
        data,
        &[
            "--weights",
            "random:1",
            "--set",
            "size=tiny",
            "--tasks",
            "binary_dr,referable_dr,glaucoma",
            "--methods",
            "linear_probing,zero_shot",
            "--json",
        ],
    );
    for model in models {
        args.extend(["--model", model]);
    }
    args.extend(more);
    args
}

fn runs(stdout: &str) -> Vec<Value> {
    let told: Value = serde_json::from_str(stdout).expect("JSON");
    told["runs"].as_array().expect("runs").clone()
}

fn count(run: &Value, name: &str) -> u64 {
    run["images"][name]
        .as_u64()
        .unwrap_or_else(|| panic!("no `{name}` in {run}"))
}

#[test]
fn six_models_three_tasks_two_methods_in_one_pass_an_image() {
    let place = Place::new();
    let data = place.dataset(16, 64);
    let first = runs(&place.good(&grid(&data, &MODELS, &["--out", "grid"])));
    assert_eq!(first.len(), MODELS.len());
    let mut images = 0;
    for (run, model) in first.iter().zip(MODELS) {
        assert_eq!(run["model"], model);
        assert!(run["error"].is_null(), "{run}");
        let folder = place.path(run["folder"].as_str().expect("a folder"));
        let view = RunView::open(&folder).expect("a run");
        let records = view.records().expect("records");
        let tested = records
            .rows
            .iter()
            .filter(|r| matches!(r.split.as_deref(), Some("train" | "test")))
            .count() as u64;
        // One forward pass an image, whatever the tasks and methods.
        assert_eq!(
            (count(run, "computed"), count(run, "failed")),
            (tested, 0),
            "{model}"
        );
        images += tested;
        let mut methods = std::collections::BTreeMap::new();
        for file in view.prediction_files().expect("predictions") {
            let cell = Predictions::read(&file, &Limits::default()).expect("reads");
            *methods.entry(cell.cell.method.clone()).or_insert(0) += 1;
            if cell.cell.method == "zero_shot" {
                assert_eq!(cell.fold(Fold::Train).count(), 0);
                assert!(cell.extra.iter().any(|(name, _)| name == "cosine_positive"));
                let pairwise = cell
                    .extra
                    .iter()
                    .any(|(name, _)| name == "sigmoid_positive");
                assert_eq!(pairwise, model.contains("siglip"), "{model}");
            }
        }
        assert_eq!(
            (methods["linear_probing"], methods["zero_shot"]),
            (3, 3),
            "{methods:?}"
        );
        let texts: Value =
            serde_json::from_slice(&std::fs::read(folder.join("texts.json")).expect("kept"))
                .expect("JSON");
        assert_eq!(texts["tasks"].as_object().expect("tasks").len(), 3);
        let run_file: Value =
            serde_json::from_slice(&std::fs::read(folder.join("run.json")).expect("kept"))
                .expect("JSON");
        let options = &run_file["identity"]["options"];
        assert_eq!(options["captions"].as_object().expect("hashes").len(), 3);
        let pixels = run_file["identity"]["models"][0]["preprocessing_key"]
            .as_str()
            .expect("a key");
        assert_eq!(
            pixels.contains("rgbf32"),
            model == "jusiro2/FLAIR",
            "{pixels}"
        );
        if model.contains("medsiglip") || model.contains("FLAIR") {
            place.good(&["verify", arg(&folder)]);
        }
    }
    assert!(images > 0);

    // Again: everything is answered. Elsewhere: everything is in the cache.
    for run in runs(&place.good(&grid(&data, &MODELS[2..4], &["--out", "grid"]))) {
        assert_eq!(count(&run, "computed"), 0, "{run}");
        assert!(count(&run, "resumed") > 0, "{run}");
    }
    for run in runs(&place.good(&grid(&data, &MODELS[2..4], &["--out", "twin"]))) {
        assert_eq!(
            (count(&run, "computed"), count(&run, "resumed")),
            (0, 0),
            "{run}"
        );
        assert!(count(&run, "cached") > 0, "{run}");
    }

    // The tables over all of them have both methods.
    let folders: Vec<String> = first
        .iter()
        .map(|run| run["folder"].as_str().expect("a folder").to_owned())
        .collect();
    let mut args = vec![
        "report",
        "--json",
        "--resamples",
        "50",
        "--family-resamples",
        "50",
    ];
    args.extend(["--permutations", "20"]);
    args.extend(folders.iter().map(String::as_str));
    let report: Value = serde_json::from_str(&place.good(&args)).expect("JSON");
    // (Means are over the benchmark's models; these are controls, whose cells are listed and covered.)
    for method in ["linear_probing", "zero_shot"] {
        let cells = report["cells"].as_array().expect("cells").iter();
        let of_method = cells.filter(|cell| cell["cell"]["method"] == method);
        assert_eq!(of_method.count(), 18, "{method}");
    }
    let coverage = &report["summary"]["coverage"][0];
    assert_eq!(coverage["counts"]["present"], 36, "{coverage}");
    assert_eq!(coverage["expected"], 36, "{coverage}");
}

/// A folder of weights by model: the tiny reference model that the plugin's own tests have.
fn weights(place: &Place) -> std::path::PathBuf {
    let to = place.path("weights/checkpoint");
    std::fs::create_dir_all(&to).expect("a folder");
    let from = root().join("plugins/clip/tests/data/clip");
    for name in [
        "config.json",
        "preprocessor_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ] {
        std::fs::copy(from.join(name), to.join(name)).expect("copies");
    }
    place.path("weights")
}

#[test]
fn a_model_that_fails_leaves_the_others_theirs() {
    let place = Place::new();
    let data = place.dataset(12, 64);
    let weights = weights(&place);
    let more = ["--model", "EyeCLIP", "--model", "checkpoint", "--weights"];
    let mut args = eval_on(&built().clip, &data, &more);
    args.extend([arg(&weights), "--out", "grid", "--json"]);
    let out = place.run(&args);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    let ended = runs(&text(&out.stdout));
    let message = ended[0]["error"]["message"].as_str().expect("it failed");
    assert!(message.contains("EyeCLIP"), "{message}");
    assert!(ended[1]["error"].is_null(), "{ended:?}");
    assert!(ended[1]["cells"].as_u64() > Some(0) && place.path("grid/checkpoint").is_dir());
    // In words, with what to do next.
    let words: Vec<&str> = args
        .iter()
        .copied()
        .filter(|word| *word != "--json")
        .collect();
    let out = place.run(&words);
    assert!(
        text(&out.stdout).contains("1 of 2 models evaluated"),
        "{}",
        text(&out.stdout)
    );
    assert!(
        text(&out.stderr).contains("focus-host report grid/*"),
        "{}",
        text(&out.stderr)
    );

    let out = place.run(&eval_on(
        &built().clip,
        &data,
        &["--model", "nosuch", "--model", "EyeCLIP"],
    ));
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("`google/medsiglip-448`"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn another_batch_size_is_another_run_of_nearly_the_same_scores() {
    let place = Place::new();
    let data = place.dataset(20, 64);
    let folder = weights(&place).join("checkpoint");
    let scores = |size: &str| -> Vec<f64> {
        let mut args = eval_on(
            &built().clip,
            &data,
            &["--model", "checkpoint", "--weights"],
        );
        args.extend([arg(&folder), "--batch-size", size, "--out", size]);
        place.good(&args);
        let view = RunView::open(&place.path(size)).expect("a run");
        let mut all = Vec::new();
        for file in view.prediction_files().expect("predictions") {
            let cell = Predictions::read(&file, &Limits::default()).expect("reads");
            all.extend(cell.rows.iter().filter_map(|row| row.score));
        }
        all
    };
    let (one, eight, auto) = (scores("1"), scores("8"), scores("auto"));
    assert!(one.len() > 20 && one.len() == eight.len());
    let apart = one
        .iter()
        .zip(&eight)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(apart < 1e-3, "{apart}");
    // On the CPU the card's number is eight.
    assert_eq!(eight, auto);
    let run = |size: &str| {
        let file = place.path(size).join("run.json");
        let run: Value = serde_json::from_slice(&std::fs::read(file).expect("kept")).expect("JSON");
        run["identity"].clone()
    };
    assert_eq!(run("1")["options"]["batch_size"], 1);
    assert_eq!(run("1")["models"][0]["opened"]["batch_size"], 1);
    assert!(run("auto")["options"]["batch_size"].is_null());
    let mut args = eval_on(
        &built().clip,
        &data,
        &["--model", "checkpoint", "--weights"],
    );
    args.extend([arg(&folder), "--batch-size", "2", "--out", "1"]);
    let out = place.run(&args);
    assert_eq!(
        out.status.code(),
        Some(7),
        "another batch size is another run"
    );
    let out = place.run(&eval_on(&built().clip, &data, &["--batch-size", "0"]));
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn an_image_side_alone_is_probed_and_not_asked_about_texts() {
    let place = Place::new();
    let data = place.dataset(12, 64);
    let folder = weights(&place).join("checkpoint");
    let mut args = eval_on(
        &built().clip,
        &data,
        &["--model", "checkpoint", "--set", "text=none"],
    );
    args.extend(["--weights", arg(&folder), "--out", "run", "--json"]);
    let report = place.good(&args);
    assert!(
        report.contains("linear_probing") && !report.contains("zero_shot"),
        "{report}"
    );
    assert!(!place.path("run/texts.json").exists());
    args.extend(["--methods", "zero_shot"]);
    let out = place.run(&args);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("without its text side"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn zero_shot_alone_asks_about_test_images_alone() {
    let place = Place::new();
    let data = place.dataset(20, 64);
    let folder = weights(&place).join("checkpoint");
    let mut args = eval_on(
        &built().clip,
        &data,
        &["--model", "checkpoint", "--methods", "zero_shot"],
    );
    args.extend(["--weights", arg(&folder), "--out", "run"]);
    place.good(&args);
    let view = RunView::open(&place.path("run")).expect("a run");
    let tests = view.records().expect("records").rows;
    let tests = tests
        .iter()
        .filter(|r| r.split.as_deref() == Some("test"))
        .count();
    let answers = view.answer_file("embeddings").expect("answers");
    assert_eq!(answers.rows(), tests);
    place.good(&["verify", "run"]);
    // A stored score that was touched is found, and so are texts that were.
    let texts = place.path("run/texts.json");
    let whole = std::fs::read_to_string(&texts).expect("kept");
    std::fs::write(
        &texts,
        whole.replacen("\"truncated\": false", "\"truncated\": true", 1),
    )
    .expect("writes");
    let out = place.run(&["verify", "run"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
}
