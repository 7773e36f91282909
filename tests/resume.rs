//! kill -9 at any moment, then the same command: nothing is repeated that was finished, and the folder ends the same, byte for byte.

use crate::support::{Place, arg, built, contents, eval_on, text};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Seeds of the moments; a failure names its moment.
const MOMENTS: u64 = 10;

fn args<'a>(data: &'a str, out: &'a str) -> Vec<&'a str> {
    vec![
        "eval",
        "--plugin",
        arg(&built().handcrafted),
        "--dataset",
        "synthetic",
        "--data",
        data,
        "--tasks",
        "binary_dr,referable_dr",
        "--out",
        out,
        "--no-cache",
        "--quiet",
    ]
}

#[test]
fn killed_at_ten_moments_a_run_ends_in_the_same_bytes() {
    let place = Place::new();
    let data = place.dataset(40, 96);
    let data = arg(&data);
    let started = Instant::now();
    place.good(&args(data, "whole"));
    let whole = started.elapsed();
    let expected = contents(&place.path("whole"));

    // Moments over the whole run, from a small generator of our own so that a failure can be repeated.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut interrupted = 0;
    for moment in 0..MOMENTS {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let share = (state >> 33) as f64 / f64::from(1u32 << 31);
        let wait = whole.mul_f64((moment as f64 + share) / MOMENTS as f64);
        let out = format!("killed-{moment}");
        let mut child = place
            .command(&args(data, &out))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        std::thread::sleep(wait);
        if child.try_wait().expect("asks").is_none() {
            interrupted += 1;
        }
        // SIGKILL: the process cannot tidy up.
        child.kill().expect("kills");
        child.wait().expect("ends");
        place.good(&args(data, &out));
        let found = contents(&place.path(&out));
        let names = |files: &[(String, Vec<u8>)]| {
            files
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&expected),
            names(&found),
            "moment {moment}, killed after {wait:?}"
        );
        for ((name, a), (_, b)) in expected.iter().zip(&found) {
            assert!(
                a == b,
                "moment {moment}, killed after {wait:?}: {name} differs"
            );
        }
    }
    assert!(
        interrupted >= MOMENTS / 2,
        "only {interrupted} of {MOMENTS} kills met a running process"
    );
}

#[test]
fn finished_batches_are_not_repeated() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    // Each of the six batches takes a second, so that the kill falls between batches.
    let args = |quiet: bool| {
        let mut args = eval_on(
            &built().hostile,
            &data,
            &[
                "--tasks",
                "binary_dr",
                "--out",
                "run",
                "--no-cache",
                "--set",
                "misdeed=slow",
                "--set",
                "amount=1",
            ],
        );
        if quiet {
            args.push("--quiet");
        }
        args
    };
    let mut child = place
        .command(&args(true))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let log = place.path("run/answers/embeddings.log");
    let deadline = Instant::now() + Duration::from_mins(1);
    let size = || std::fs::metadata(&log).map_or(0, |m| m.len());
    let wait = |more_than: u64| {
        while size() <= more_than && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        size()
    };
    // The header first, then the first batch.
    let header = wait(0);
    assert!(wait(header) > header, "no batch was answered in time");
    child.kill().expect("kills");
    child.wait().expect("ends");
    let out = place.run(&args(false));
    assert!(out.status.success(), "{}", text(&out.stderr));
    let line = text(&out.stderr)
        .lines()
        .find(|l| l.starts_with("Embedding"))
        .expect("a summary")
        .to_owned();
    let number = |word: &str| -> usize {
        let before = line.split(word).next().expect("the word").trim_end();
        before
            .rsplit([' ', ','])
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("{word} in {line}"))
    };
    assert!(number("answered before") > 0, "{line}");
    assert_eq!(number("answered before") + number("computed"), 24, "{line}");
}

#[test]
fn a_worker_ends_with_its_host() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let mut child = place
        .command(&eval_on(
            &built().hostile,
            &data,
            &[
                "--tasks",
                "binary_dr",
                "--set",
                "misdeed=hang",
                "--out",
                "run",
                "--quiet",
            ],
        ))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let workers = || {
        let out = Command::new("pgrep")
            .args(["-P", &child_id(child.id())])
            .output();
        out.map(|o| {
            text(&o.stdout)
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .unwrap_or_default()
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut seen = workers();
    while seen.is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        seen = workers();
    }
    assert!(!seen.is_empty(), "no worker was started");
    child.kill().expect("kills");
    child.wait().expect("ends");
    let alive = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    while seen.iter().any(alive) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!seen.iter().any(alive), "a worker outlived its host");
}

fn child_id(id: u32) -> String {
    id.to_string()
}

#[test]
fn a_run_is_about_the_photographs_it_asked_about() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let args = eval_on(
        &built().hostile,
        &data,
        &["--tasks", "binary_dr", "--no-cache"],
    );
    let run = |out: &str| place.run(&[&args[..], &["--out", out]].concat());
    assert!(run("run").status.success());
    let before = contents(&place.path("run"));
    let table = std::fs::read_to_string(data.join("labels.csv")).expect("a table");
    let names: Vec<_> = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    let (first, second) = (data.join(names[0]), data.join(names[1]));
    let kept = std::fs::read(&first).expect("reads");

    // Another photograph in its place.
    std::fs::copy(&second, &first).expect("copies");
    let out = run("run");
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("has changed since"),
        "{}",
        text(&out.stderr)
    );

    // Gone: every later record has another number.
    std::fs::remove_file(&first).expect("removes");
    let out = run("run");
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("options.records"),
        "{}",
        text(&out.stderr)
    );
    assert!(run("other").status.success(), "a folder of its own is fine");

    std::fs::write(&first, kept).expect("writes");
    assert!(run("run").status.success());
    assert_eq!(before, contents(&place.path("run")));
}
