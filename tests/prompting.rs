//! Prompting end to end with a worker process: kill -9 and resume, a group that crashes the model, adapters, another's prompts, refusals.

use crate::support::{Place, arg, built, contents, report, text};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn args<'a>(data: &'a Path, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "eval",
        "--plugin",
        arg(&built().hostile),
        "--model",
        "hostile-generator",
        "--dataset",
        "synthetic",
        "--data",
        arg(data),
        "--out",
        out,
    ];
    args.extend(more);
    args
}

/// A folder that the plugin takes for an adapter.
fn adapter(place: &Place, name: &str) -> PathBuf {
    let folder = place.path(name);
    std::fs::create_dir_all(&folder).expect("makes");
    std::fs::write(folder.join("adapter_config.json"), "{}").expect("writes");
    std::fs::write(folder.join("adapter_model.safetensors"), name).expect("writes");
    folder
}

#[test]
fn every_task_is_prompted_and_the_run_verifies() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let said = place.good(&args(&data, "run", &[]));
    assert!(
        said.contains("prompting") && said.contains("the paper's; greedy"),
        "{said}"
    );
    let found = report(&place.path("run"));
    let prompts = found["facts"]["prompting"]["prompts"]
        .as_array()
        .expect("prompts");
    assert!(prompts.len() >= 2);
    let splits = &found["splits"];
    assert_eq!(
        splits["train"]["asked"], 0,
        "training images are of no use to it"
    );
    assert_eq!(splits["test"]["asked"], splits["test"]["answered"]);
    // Its texts repeat the prompt, whose first answer word is yes; the scores depend on the variant alone.
    let cell = &found["cells"][0];
    assert_eq!(cell["cell"]["method"], "prompting");
    assert!(cell["excluded"].as_object().expect("counts").is_empty());
    assert!(text(&place.run(&["verify", "run"]).stdout).contains("same"));
    assert!(place.run(&["verify", "run"]).status.success());
    let exported = place.run(&[
        "export",
        "run",
        "--out",
        "out",
        "--format",
        "parquet",
        "--answers",
    ]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    assert!(place.path("out/answers/generations.parquet").is_file());
}

#[test]
fn killed_at_any_moment_a_prompted_run_ends_in_the_same_bytes() {
    let place = Place::new();
    let data = place.dataset(40, 96);
    let more = ["--no-cache", "--quiet"];
    let started = Instant::now();
    place.good(&args(&data, "whole", &more));
    let whole = started.elapsed();
    let expected = contents(&place.path("whole"));
    let mut interrupted = 0;
    for moment in 1..7u32 {
        let out = format!("killed-{moment}");
        let mut child = place
            .command(&args(&data, &out, &more))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        std::thread::sleep(whole * moment / 8);
        if child.try_wait().expect("asks").is_none() {
            interrupted += 1;
        }
        child.kill().expect("kills");
        child.wait().expect("ends");
        place.good(&args(&data, &out, &more));
        assert!(expected == contents(&place.path(&out)), "moment {moment}");
    }
    assert!(
        interrupted >= 3,
        "only {interrupted} kills met a running process"
    );
}

#[test]
fn finished_groups_are_not_asked_again() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let slow = [
        "--no-cache",
        "--set",
        "misdeed=slow",
        "--set",
        "amount=1",
        "--set",
        "batch=1",
    ];
    let mut child = place
        .command(&args(&data, "run", &slow))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let log = place.path("run/answers/generations.log");
    let deadline = Instant::now() + Duration::from_mins(1);
    let size = || std::fs::metadata(&log).map_or(0, |m| m.len());
    let wait = |more_than: u64| {
        while size() <= more_than && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        size()
    };
    let header = wait(0);
    assert!(wait(header) > header, "no group was answered in time");
    child.kill().expect("kills");
    child.wait().expect("ends");
    let out = place.run(&args(&data, "run", &slow));
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stderr);
    let line = said
        .lines()
        .find(|l| l.starts_with("Asking"))
        .expect("a summary");
    assert!(!line.contains(" 0 answered before"), "{line}");
}

#[test]
fn a_second_run_asks_nothing_and_another_prompt_everything() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let asked = |out: &str, more: &[&str]| {
        let ran = place.run(&args(&data, out, more));
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        let said = text(&ran.stderr);
        let line = said
            .lines()
            .find(|l| l.starts_with("Asking"))
            .expect("a summary");
        line.split(": ")
            .nth(1)
            .and_then(|l| l.split(' ').next())
            .and_then(|n| n.parse::<u32>().ok())
            .expect("a number")
    };
    let first = asked("first", &[]);
    assert!(first > 0);
    assert_eq!(asked("second", &[]), 0);
    assert_eq!(
        std::fs::read(place.path("first/report.json")).expect("reads"),
        std::fs::read(place.path("second/report.json")).expect("reads")
    );
    let prompts = place.path("prompts");
    std::fs::create_dir(&prompts).expect("makes");
    std::fs::write(
        prompts.join("binary_dr.txt"),
        "Is this eye ill? Say yes or no.\n",
    )
    .expect("writes");
    assert_eq!(asked("third", &["--prompts", arg(&prompts)]), first);
    let found = report(&place.path("third"));
    assert_eq!(found["facts"]["prompting"]["prompts"][0]["replaced"], true);
    assert!(
        std::fs::read_to_string(place.path("third/report.md"))
            .expect("reads")
            .contains("NOT the paper's")
    );
}

#[test]
fn a_group_that_crashes_the_model_is_an_outcome_and_the_run_goes_on() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    // Every picture's first pixel is black: all groups crash the worker, one after the other.
    let out = place.run(&args(
        &data,
        "run",
        &[
            "--set",
            "misdeed=abort",
            "--limit",
            "3",
            "--batch-timeout",
            "20",
        ],
    ));
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    let found = report(&place.path("run"));
    assert_eq!(found["failures"][0]["outcome"], "model_error");
    assert_eq!(found["failures"][0]["count"], 3);
    assert_eq!(found["cells"][0]["status"], "failed");
}

#[test]
fn adapters_run_beside_the_base_and_pair_with_it() {
    let place = Place::new();
    let data = place.dataset(30, 96);
    let (first, second) = (adapter(&place, "brset-binary_dr"), adapter(&place, "two"));
    let named = format!("mbrset-binary_dr={}", arg(&second));
    let more = [
        "--adapter",
        arg(&first),
        "--adapter",
        &named,
        "--tasks",
        "binary_dr",
    ];
    place.good(&args(&data, "runs", &more));
    for name in ["base", "lora-brset-binary_dr", "lora-mbrset-binary_dr"] {
        let found = report(&place.path("runs").join(name));
        assert_eq!(found["cells"].as_array().expect("cells").len(), 1, "{name}");
    }
    let tuned = report(&place.path("runs/lora-brset-binary_dr"));
    assert_eq!(
        tuned["cells"][0]["cell"]["model"],
        "hostile-generator+lora-brset-binary_dr"
    );
    assert!(
        tuned["facts"]["adapter"]["attached"]["probe_change"]
            .as_f64()
            .expect("a number")
            > 0.0
    );
    let compared = place.good(&[
        "compare",
        "runs/base",
        "runs/lora-brset-binary_dr",
        "--resamples",
        "50",
    ]);
    assert!(
        compared.contains("auroc") || compared.contains("AUROC"),
        "{compared}"
    );
    let table = place.good(&[
        "report",
        "runs/base",
        "runs/lora-brset-binary_dr",
        "runs/lora-mbrset-binary_dr",
        "--resamples",
        "50",
        "--family-resamples",
        "50",
        "--permutations",
        "20",
        "--format",
        "json",
    ]);
    let table: serde_json::Value = serde_json::from_str(&table).expect("JSON");
    let comparisons = &table["summary"]["fine_tuning"]["tables"][0]["comparisons"];
    assert_eq!(
        comparisons.as_array().map(Vec::len),
        Some(2),
        "{comparisons}"
    );
}

#[test]
fn what_does_not_fit_together_is_refused_with_advice() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let refused = |args: &[&str], code: i32| {
        let out = place.run(args);
        assert_eq!(out.status.code(), Some(code), "{}", text(&out.stderr));
        text(&out.stderr)
    };
    let folder = adapter(&place, "x");
    let said = refused(&args(&data, "run", &["--adapter", arg(&folder)]), 2);
    assert!(
        said.contains("Adapter name `x` is malformed") && said.contains("hint:"),
        "{said}"
    );
    let said = refused(&args(&data, "run", &["--field", "crop"]), 2);
    assert!(said.contains("resizes them itself"), "{said}");
    let said = refused(&args(&data, "run", &["--prompts", "nowhere"]), 3);
    assert!(said.contains("Cannot read prompts"), "{said}");
    let mut encoder = args(&data, "run", &["--adapter", "x"]);
    encoder[4] = "hostile";
    assert!(refused(&encoder, 2).contains("takes no adapters"));
    assert!(!place.path("run").exists());
}
