//! The main job on the embedded default and on small synthetic sets.

use crate::support::{Place, arg, built, contents, eval_on, metric, report};

#[test]
fn the_default_needs_nothing_but_the_plugin() {
    let place = Place::new();
    let out = place.good(&[
        "eval",
        "--plugin",
        arg(&built().handcrafted),
        "--out",
        "run",
    ]);
    assert!(out.contains("SYNTHETIC"), "{out}");
    let run = place.path("run");
    let report = report(&run);
    assert_eq!(report["synthetic"], true);
    for task in ["binary_dr", "referable_dr", "glaucoma"] {
        for method in ["linear_probing", "linear_probing_unweighted"] {
            assert!(
                metric(&report, task, method, "auroc") > 0.7,
                "{task} {method}: {report:#}"
            );
        }
    }
    let markdown = std::fs::read_to_string(run.join("report.md")).expect("stored");
    assert!(markdown.contains("Synthetic images"), "{markdown}");

    // Nothing of this machine or moment is in the reports.
    for form in ["report.json", "report.md"] {
        let text = std::fs::read_to_string(run.join(form)).expect("stored");
        assert!(
            !text.contains(arg(place.dir.path())),
            "{form} holds a path of this machine"
        );
    }

    // The same command again computes nothing and changes nothing.
    let before = contents(&run);
    place.good(&[
        "eval",
        "--plugin",
        arg(&built().handcrafted),
        "--out",
        "run",
    ]);
    assert_eq!(before, contents(&run));
    place.good(&["verify", "run"]);
}

#[test]
fn a_second_run_takes_its_embeddings_from_the_cache_and_agrees_with_the_first() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let eval = |out: &str, more: &[&str]| {
        let mut args = eval_on(&built().handcrafted, &data, &["--out", out]);
        args.extend(more);
        let done = place.run(&args);
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let first = eval("one", &["--tasks", "binary_dr"]);
    assert!(first.contains("24 computed, 0 from the cache"), "{first}");
    let second = eval("two", &["--tasks", "binary_dr,glaucoma"]);
    assert!(second.contains("0 computed, 24 from the cache"), "{second}");
    let without = eval("three", &["--tasks", "binary_dr", "--no-cache"]);
    assert!(
        without.contains("24 computed, 0 from the cache"),
        "{without}"
    );
    let in_process = eval(
        "four",
        &["--tasks", "binary_dr", "--no-cache", "--in-process"],
    );
    assert!(in_process.contains("24 computed"), "{in_process}");

    let file = "answers/embeddings.parquet";
    let bytes = |run: &str| std::fs::read(place.path(run).join(file)).expect("answers");
    for other in ["two", "three", "four"] {
        assert!(bytes("one") == bytes(other), "answers of {other} differ");
    }
    assert_eq!(
        std::fs::read(place.path("one/report.json")).expect("report"),
        std::fs::read(place.path("three/report.json")).expect("report")
    );
}

#[test]
fn verify_finds_a_changed_score_a_changed_report_and_a_changed_label() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let args = eval_on(
        &built().hostile,
        &data,
        &["--out", "run", "--tasks", "binary_dr"],
    );
    place.good(&args);
    assert!(
        place
            .good(&["verify", "run"])
            .lines()
            .all(|line| line.starts_with("same"))
    );

    let run = place.path("run");
    let markdown = run.join("report.md");
    let good = std::fs::read(&markdown).expect("stored");
    std::fs::write(&markdown, [good.as_slice(), b" "].concat()).expect("writes");
    let out = place.run(&["verify", "run"]);
    assert_eq!(out.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&out.stdout).contains("DIFFERS  report.md"));
    std::fs::write(&markdown, good).expect("writes");

    let view = focus_store::RunView::open(&run).expect("a run");
    let file = view.prediction_files().expect("lists").remove(0);
    let mut cell =
        focus_store::Predictions::read(&file, &focus_store::Limits::default()).expect("reads");
    let row = cell
        .rows
        .iter_mut()
        .find(|row| row.fold == focus_store::Fold::Test)
        .expect("test rows");
    row.score = row.score.map(|score| {
        if score > 0.5 {
            score - 1e-6
        } else {
            score + 1e-6
        }
    });
    cell.write(&file).expect("writes");
    let out = place.run(&["verify", "run", "--json"]);
    assert_eq!(out.status.code(), Some(6));
    let found: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(found["agrees"], false);
}
