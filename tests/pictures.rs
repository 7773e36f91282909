//! Photographs of awkward kinds through a whole run, the field-of-view steps, fast decoding, and drawn datasets.

use crate::support::{Place, arg, built, eval_on, metric, report, text};
use std::path::Path;

#[test]
fn a_dataset_is_drawn_as_configured_and_evaluated() {
    let place = Place::new();
    let shown = place.good(&["synth", "--show-config", "--set", "patients=9"]);
    assert!(shown.contains("patients = 9"), "{shown}");
    std::fs::write(place.path("config.toml"), shown).expect("writes");
    let args = [
        "synth",
        "--config",
        "config.toml",
        "--set",
        "size=96",
        "--out",
        "drawn",
    ];
    assert!(place.good(&args).contains("18 photographs"), "drawn");
    place.good(&args);
    let map = place.good(&["dataset", "map", "--data", "drawn", "--json"]);
    assert!(map.contains("\"glaucoma\""), "{map}");
    for (more, code) in [
        (["--set", "patients=none"], 2),
        (["--set", "patient=3"], 2),
        (["--set", "gon=1.5"], 2),
    ] {
        let out = place.run(&[&["synth", "--out", "other"], &more[..]].concat());
        assert_eq!(
            out.status.code(),
            Some(code),
            "{more:?}: {}",
            text(&out.stderr)
        );
        assert!(!place.path("other").exists());
    }
}

fn notes(run: &Path) -> String {
    report(run)["notes"].to_string()
}

#[test]
fn steps_and_fast_decoding_are_recorded_and_odd_files_noted() {
    let place = Place::new();
    let data = place.dataset(24, 128);
    // A file whose name lies about its content.
    let eval = |out: &'static str, more: &[&'static str]| {
        let all = [&["--out", out, "--tasks", "binary_dr"], more].concat();
        place.good(&eval_on(&built().handcrafted, &data, &all));
        place.path(out)
    };
    let plain = eval("plain", &[]);
    let cropped = eval("cropped", &["--field", "crop,pad", "--decode", "fast"]);
    let key = |run: &Path| {
        report(run)["facts"]["preprocessing"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert!(
        !key(&plain).contains("crop") && key(&cropped).contains("crop,pad"),
        "{}",
        key(&cropped)
    );
    assert!(key(&cropped).contains("decode fast"), "{}", key(&cropped));
    assert!(
        notes(&cropped).contains("decoded fast"),
        "{}",
        notes(&cropped)
    );
    assert!(!notes(&plain).contains("decoded fast"));
    let auroc = |run: &Path| metric(&report(run), "binary_dr", "linear_probing", "auroc");
    assert!(auroc(&plain) > 0.5 && auroc(&cropped) > 0.5);
    place.good(&["verify", "cropped"]);
    let out = place.run(&eval_on(
        &built().handcrafted,
        &data,
        &["--field", "shrink"],
    ));
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
}

#[test]
fn odd_photographs_are_noted_the_same_with_and_without_a_cache() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let images = data.join("images");
    let first = std::fs::read_dir(&images)
        .expect("lists")
        .map(|e| e.expect("entry").path())
        .min()
        .expect("a picture");
    // The same pixels in another format under the old name.
    let decoded =
        focus_images::decode_file(&first, &focus_images::Limits::default()).expect("decodes");
    let header = format!("P6 {} {} 255\n", decoded.image.width, decoded.image.height);
    std::fs::write(&first, [header.as_bytes(), &decoded.image.pixels].concat()).expect("writes");
    let eval = |out: &'static str, more: &[&'static str]| {
        let all = [&["--out", out, "--tasks", "binary_dr"], more].concat();
        place.good(&eval_on(&built().handcrafted, &data, &all));
        std::fs::read(place.path(out).join("report.json")).expect("stored")
    };
    let fresh = eval("fresh", &[]);
    assert!(
        String::from_utf8_lossy(&fresh).contains("1 image: the name ends in"),
        "{}",
        notes(&place.path("fresh"))
    );
    assert_eq!(fresh, eval("cached", &[]));
    assert_eq!(fresh, eval("uncached", &["--no-cache"]));
    assert!(arg(&first).contains("images"));
}
