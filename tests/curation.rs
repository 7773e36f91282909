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

#[test]
fn photographs_are_prepared_once_and_a_run_finds_them() {
    let place = Place::new();
    let data = place.dataset(8, 96);
    let plugin = arg(&built().handcrafted);
    let prepare = |more: &[&str]| {
        let all = [
            &[
                "dataset",
                "prepare",
                "--data",
                arg(&data),
                "--plugin",
                plugin,
                "--json",
            ],
            more,
        ]
        .concat();
        let out = place.run(&all);
        let told: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
        (out.status.code(), told)
    };
    let (code, told) = prepare(&[]);
    assert_eq!(
        (code, &told["made"], &told["present"]),
        (Some(0), &16.into(), &0.into())
    );
    let (_, told) = prepare(&[]);
    assert_eq!((&told["made"], &told["present"]), (&0.into(), &16.into()));
    let (_, told) = prepare(&["--field", "crop"]);
    assert_eq!(told["made"], 16, "other pixels are other entries");
    let first = std::fs::read_dir(data.join("images"))
        .expect("lists")
        .map(|e| e.expect("entry").path())
        .min()
        .expect("a picture");
    std::fs::write(&first, b"no picture").expect("writes");
    let (code, told) = prepare(&[]);
    assert_eq!(code, Some(5), "{told}");
    assert_eq!(told["failed"][0]["kind"], "unknown_format");
}

/// G1020 in its layout: masks in which 1 is the disc and 2 the cup, every other one with a large cup.
fn g1020(place: &Place, images: usize) -> std::path::PathBuf {
    let root = place.path("g1020");
    for folder in ["Images", "Masks"] {
        std::fs::create_dir_all(root.join("G1020").join(folder)).expect("creates");
    }
    let mut table = String::from("imageID,binaryLabels\n");
    for i in 0..images {
        table.push_str(&format!("image_{i}.jpg,{}\n", i % 2));
        let pixels: Vec<u8> = (0..32 * 32 * 3)
            .map(|at| (at * (i + 3) % 251) as u8)
            .collect();
        let photograph = [b"P6 32 32 255\n".as_slice(), &pixels].concat();
        std::fs::write(root.join(format!("G1020/Images/image_{i}.jpg")), photograph)
            .expect("writes");
        let cup = if i % 2 == 1 { 5..15 } else { 8..12 };
        let rows: Vec<u8> = (0..32 * 32)
            .map(|at| match at / 32 {
                row if cup.contains(&row) => 2,
                2..18 => 1,
                _ => 0,
            })
            .collect();
        let mask = [b"P5 32 32 255\n".as_slice(), &rows].concat();
        std::fs::write(root.join(format!("G1020/Masks/image_{i}.png")), mask).expect("writes");
    }
    std::fs::write(root.join("G1020/G1020.csv"), table).expect("writes");
    root
}

#[test]
fn a_set_with_masks_and_no_split_is_measured_split_and_evaluated() {
    let place = Place::new();
    let data = g1020(&place, 40);
    let map = place.good(&[
        "dataset",
        "map",
        "--dataset",
        "g1020",
        "--data",
        arg(&data),
        "--json",
    ]);
    let map: serde_json::Value = serde_json::from_str(&map).expect("JSON");
    // 10 of 16 rows of the disc are cup, or 4.
    let counts = &map["labels"]["glaucoma_vcdr"]["none"];
    assert_eq!(
        (&counts["positive"], &counts["negative"]),
        (&20.into(), &20.into()),
        "{map:#}"
    );
    let run = [
        "eval",
        "--plugin",
        arg(&built().hostile),
        "--dataset",
        "g1020",
        "--data",
        arg(&data),
    ];
    place.good(&[&run[..], &["--out", "run"]].concat());
    let report = report(&place.path("run"));
    let tasks: Vec<_> = report["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .map(|c| c["cell"]["task"].as_str().expect("a task").to_owned())
        .collect();
    assert!(
        tasks.contains(&"glaucoma".into()) && tasks.contains(&"glaucoma_vcdr".into()),
        "{tasks:?}"
    );
    assert!(
        report["notes"]
            .to_string()
            .contains("Split: Drawn with seed 13")
    );
    assert_eq!(
        report["splits"]["test"]["images"], 16,
        "{}",
        report["splits"]
    );
    let out = place.run(&[&run[..], &["--out", "none", "--split", "source"]].concat());
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    // A mask of another coding is said, and its image stays out of that task alone.
    std::fs::write(
        data.join("G1020/Masks/image_0.png"),
        b"P5 1 2 255\n\x07\x07",
    )
    .expect("writes");
    let map = place.good(&["dataset", "map", "--dataset", "g1020", "--data", arg(&data)]);
    assert!(
        map.contains("unusable") && map.contains("image_0.png"),
        "{map}"
    );
}
