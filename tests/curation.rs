//! Datasets before any model: downloads from a server of our own, the audit, drawn splits.

use crate::support::{Place, arg, built, eval_on, report, root, text};
use std::io::{Read, Write};
use std::net::TcpListener;

/// Serves one file to every request, forever.
fn serve(body: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body);
        }
    });
    format!("http://{address}")
}

#[test]
fn a_dataset_is_fetched_checked_and_not_fetched_again() {
    let place = Place::new();
    let server = serve(b"image,grade\n");
    let registry = |sum: &str| {
        format!(
            "[[dataset]]\nid = \"ours\"\nname = \"Ours\"\nlicence = \"internal\"\naccess = \"open\"\n\
             [dataset.source]\nkind = \"web\"\nfiles = [{{ name = \"labels.csv\", url = \"{server}/labels.csv\", checksums = [\"sha256:{sum}\"] }}]\n"
        )
    };
    let right = "2d1ef4e2b9f4f6b2a4f1d0b0a1b1d8b1e6c8f6a4a4cf2d3b5a2c8e9d7f6b5a49";
    std::fs::write(place.path("wrong.toml"), registry(right)).expect("writes");
    let fetch = |file: &str| {
        place.run(&[
            "dataset",
            "fetch",
            "ours",
            "--registry",
            file,
            "--to",
            "data",
            "--json",
        ])
    };
    let out = fetch("wrong.toml");
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    assert!(!place.path("data/labels.csv").exists());

    // The sum that the failure names is the file's own.
    let found = regex::Regex::new("[0-9a-f]{64}").expect("a pattern");
    let said = text(&out.stdout) + &text(&out.stderr);
    let sum = found
        .find_iter(&said)
        .map(|m| m.as_str())
        .find(|sum| *sum != right)
        .expect("the error names the sum found");
    std::fs::write(place.path("right.toml"), registry(sum)).expect("writes");
    let out = fetch("right.toml");
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(
        std::fs::read(place.path("data/labels.csv")).expect("fetched"),
        b"image,grade\n"
    );
    let told: serde_json::Value =
        serde_json::from_slice(&fetch("right.toml").stdout).expect("JSON");
    assert_eq!((&told["fetched"], &told["present"]), (&0.into(), &1.into()));

    let steps = place.good(&["dataset", "fetch", "refuge", "--to", "here"]);
    assert!(
        steps.contains("1. ") && steps.contains("here/train"),
        "{steps}"
    );
    assert!(place.good(&["dataset", "fetch"]).contains("messidor_2"));
    let out = place.run(&["dataset", "fetch", "nowhere"]);
    assert!(text(&out.stderr).contains("brset"), "{}", text(&out.stderr));
}

#[test]
fn the_audit_finds_what_is_wrong_with_idrid() {
    let data = root().join("../shared/data/idrid");
    if !data.exists() {
        // Said where test output is read; the photographs are not part of the project.
        #[expect(clippy::print_stderr, reason = "a skipped test says why")]
        {
            eprintln!("skipped: no ../shared/data/idrid");
        }
        return;
    }
    let place = Place::new();
    let out = place.run(&[
        "dataset",
        "audit",
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--json",
    ]);
    assert_eq!(out.status.code(), Some(6), "{}", text(&out.stderr));
    let found: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let kinds: Vec<_> = found["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|f| f["kind"].as_str().expect("a word"))
        .collect();
    for kind in ["same_file_across_splits", "same_file", "no_patient_key"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
}

#[test]
fn a_drawn_split_keeps_patients_whole_and_is_part_of_the_run() {
    let place = Place::new();
    let data = place.dataset(30, 96);
    let run = |out: &'static str, more: &[&'static str]| {
        let all = [&["--tasks", "binary_dr", "--out", out], more].concat();
        place.good(&eval_on(&built().handcrafted, &data, &all));
        report(&place.path(out))
    };
    let source = run("source", &[]);
    let own = run("own", &["--split", "own", "--split-seed", "5"]);
    assert!(!source["notes"].to_string().contains("Split:"));
    let notes = own["notes"].to_string();
    assert!(notes.contains("Split: Drawn with seed 5"), "{notes}");
    assert!(!notes.contains("Patients with images in both"), "{notes}");
    assert_eq!(own["splits"]["train"]["images"], 36, "{}", own["splits"]);
    place.good(&["verify", "own"]);
    // Another seed is another run.
    let all = [
        "--tasks",
        "binary_dr",
        "--out",
        "own",
        "--split",
        "own",
        "--split-seed",
        "6",
    ];
    let out = place.run(&eval_on(&built().handcrafted, &data, &all));
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    let audit = place.good(&[
        "dataset",
        "audit",
        "--data",
        arg(&data),
        "--format",
        "markdown",
    ]);
    assert!(audit.starts_with("# Audit of synthetic"), "{audit}");
}
