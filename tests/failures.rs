//! What goes wrong costs what is at fault and nothing else: a plugin's misdeeds, unreadable images, impossible requests.

use crate::support::{Place, arg, built, eval_on, report, root, text};
use std::path::Path;

/// Paint the first pixel of one picture of a drawn dataset, so that the hostile plugin knows it.
fn mark(data: &Path, nth: usize) -> String {
    let table = std::fs::read_to_string(data.join("labels.csv")).expect("a table");
    let name = table
        .lines()
        .nth(1 + nth)
        .and_then(|line| line.split(',').next())
        .expect("a row")
        .to_owned();
    let file = data.join(&name);
    // A flat picture of the marker's colour: after any resize its first pixel is still that.
    let pixels = [0x12u8, 0x34, 0x56].repeat(96 * 96);
    std::fs::write(
        &file,
        focus_synth::encode_png(96, 96, &pixels).expect("encodes"),
    )
    .expect("writes");
    name
}

fn misdeed(deed: &str, reason: &str) {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let name = mark(&data, 7);
    let setting = format!("misdeed={deed}");
    let out = place.run(&eval_on(
        &built().hostile,
        &data,
        &[
            "--tasks",
            "binary_dr",
            "--set",
            &setting,
            "--set",
            "marker=123456",
            "--out",
            "run",
            "--error-budget",
            "0.2",
            "--batch-timeout",
            "3",
            "--no-cache",
        ],
    ));
    assert!(out.status.success(), "{deed}: {}", text(&out.stderr));
    let report = report(&place.path("run"));
    let failures = report["failures"].as_array().expect("a list");
    assert_eq!(failures.len(), 1, "{deed}: {failures:?}");
    assert_eq!(failures[0]["count"], 1, "{deed}: image k alone");
    assert_eq!(failures[0]["outcome"], "model_error");
    assert_eq!(failures[0]["reason"], reason, "{deed}");
    assert_eq!(failures[0]["examples"][0], name.as_str());
    let answered: u64 = ["train", "test"]
        .iter()
        .map(|s| report["splits"][s]["answered"].as_u64().expect("a count"))
        .sum();
    assert_eq!(answered, 23, "{deed}: every other image is answered");
}

#[test]
fn a_panic_costs_one_image() {
    misdeed("panic", "panic");
}

#[test]
fn a_segfault_costs_one_image() {
    misdeed("segfault", "crash");
}

#[test]
fn a_hang_costs_one_image() {
    misdeed("hang", "hang");
}

#[test]
fn too_few_rows_cost_one_image() {
    misdeed("short_rows", "bad_reply");
}

#[test]
fn a_value_that_is_no_number_costs_one_image() {
    misdeed("nan", "bad_reply");
}

#[test]
fn over_the_error_budget_the_cell_fails_and_the_exit_code_tells() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let table = std::fs::read_to_string(data.join("labels.csv")).expect("a table");
    let nth = table
        .lines()
        .skip(1)
        .position(|line| line.split(',').nth(1) == Some("test"))
        .expect("test rows");
    mark(&data, nth);
    let out = place.run(&eval_on(
        &built().hostile,
        &data,
        &[
            "--tasks",
            "binary_dr",
            "--set",
            "misdeed=error",
            "--set",
            "marker=123456",
            "--out",
            "run",
            "--error-budget",
            "0",
        ],
    ));
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("CELL FAILED"),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn unreadable_images_are_counted_by_kind_and_the_run_goes_on() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let table = std::fs::read_to_string(data.join("labels.csv")).expect("a table");
    let names: Vec<_> = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    let spoil = |nth: usize, what: &dyn Fn(&Path)| what(&data.join(names[nth]));
    spoil(0, &|file| {
        let bytes = std::fs::read(file).expect("reads");
        std::fs::write(file, &bytes[..bytes.len() / 2]).expect("writes");
    });
    spoil(1, &|file| std::fs::write(file, b"").expect("writes"));
    spoil(2, &|file| {
        std::fs::write(file, b"<html>not found</html>").expect("writes");
    });
    let out = place.run(&eval_on(
        &built().hostile,
        &data,
        &[
            "--tasks",
            "binary_dr",
            "--out",
            "run",
            "--error-budget",
            "0.5",
        ],
    ));
    assert!(out.status.success(), "{}", text(&out.stderr));
    let report = report(&place.path("run"));
    let found: Vec<_> = report["failures"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|f| {
            (
                f["outcome"].as_str().expect("text"),
                f["reason"].as_str().expect("text"),
                f["count"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("image_error", "empty", Some(1)),
            ("image_error", "truncated", Some(1)),
            ("image_error", "unknown_format", Some(1))
        ]
    );
}

#[test]
fn a_changed_plugin_is_not_loaded() {
    let place = Place::new();
    let copy = place.path("libhostile.so");
    let mut bytes = std::fs::read(&built().hostile).expect("reads");
    bytes.push(0);
    std::fs::write(&copy, bytes).expect("writes");
    std::fs::copy(
        built().hostile.with_extension("toml"),
        copy.with_extension("toml"),
    )
    .expect("copies");
    let out = place.run(&["eval", "--plugin", arg(&copy)]);
    assert_eq!(out.status.code(), Some(4));
    assert!(text(&out.stderr).contains("igest"), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("hint:"), "{}", text(&out.stderr));
}

#[test]
fn a_mapper_of_ones_own_is_used_by_path() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let mapper = root().join("datasets-wasm/dist/synthetic.wasm");
    place.good(&[
        "eval",
        "--plugin",
        arg(&built().hostile),
        "--dataset",
        arg(&mapper),
        "--data",
        arg(&data),
        "--tasks",
        "glaucoma",
        "--out",
        "run",
    ]);
    assert_eq!(
        report(&place.path("run"))["facts"]["dataset"]["id"],
        "synthetic"
    );
}

#[test]
fn a_run_folder_in_use_or_of_another_run_is_refused() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let args = |task: &'static str| {
        vec![
            "eval".to_owned(),
            "--plugin".into(),
            arg(&built().hostile).into(),
            "--dataset".into(),
            "synthetic".into(),
            "--data".into(),
            arg(&data).into(),
            "--tasks".into(),
            task.into(),
            "--out".into(),
            "run".into(),
        ]
    };
    let run = |task| place.run(&args(task).iter().map(String::as_str).collect::<Vec<_>>());
    assert!(run("binary_dr").status.success());
    let other = run("glaucoma");
    assert_eq!(other.status.code(), Some(7));
    assert!(
        text(&other.stderr).contains("tasks[0]"),
        "{}",
        text(&other.stderr)
    );
    let held = focus_store::RunFolder::create_or_resume(
        &place.path("run"),
        focus_store::RunView::open(&place.path("run"))
            .expect("a run")
            .manifest(),
    )
    .expect("locks");
    let locked = run("binary_dr");
    assert_eq!(locked.status.code(), Some(7));
    assert!(
        text(&locked.stderr).contains("in use by process"),
        "{}",
        text(&locked.stderr)
    );
    drop(held);
    assert!(run("binary_dr").status.success());
}
