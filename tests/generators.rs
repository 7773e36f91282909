//! The three local families of generative models through the whole program: toys without weights, a tiny checkpoint with an adapter.

use crate::support::{Place, arg, built, report, root, text};
use std::path::Path;

fn prompted(place: &Place, plugin: &Path, data: &Path, out: &str, more: &[&str]) {
    let mut args = vec![
        "eval",
        "--plugin",
        arg(plugin),
        "--dataset",
        "synthetic",
        "--data",
        arg(data),
    ];
    args.extend(["--tasks", "binary_dr,glaucoma", "--out", out]);
    args.extend(more);
    // Toys answer nonsense: cells without a parsed answer are reported, not failed.
    let run = place.run(&args);
    let code = run.status.code();
    assert!(matches!(code, Some(0)), "{code:?}: {}", text(&run.stderr));
}

#[test]
fn toys_of_every_family_are_prompted_and_say_that_they_are_toys() {
    let place = Place::new();
    let data = place.dataset(8, 64);
    for plugin in [&built().medgemma, &built().qwen3_vl, &built().llava_next] {
        let name = plugin.file_stem().expect("a name").to_str().expect("UTF-8");
        let more = [
            "--weights",
            "random:1",
            "--size",
            "tiny",
            "--max-new-tokens",
            "8",
        ];
        prompted(&place, plugin, &data, name, &more);
        let found = report(&place.path(name));
        let control = found["control"].to_string();
        assert!(
            control.contains("RANDOM WEIGHTS (seed 1), SIZE `tiny`"),
            "{control}"
        );
        let test = &found["splits"]["test"];
        assert_eq!(
            (&test["asked"], &found["splits"]["train"]["asked"]),
            (&test["answered"], &0.into())
        );
        // Every test image is in each cell, scored or counted under the reason that it is not.
        for cell in found["cells"].as_array().expect("cells") {
            assert_eq!(cell["cell"]["method"], "prompting");
            let model = cell["cell"]["model"].as_str().expect("a model");
            assert!(model.ends_with("+random-1"), "{model}");
        }
        place.good(&["verify", name]);
    }
}

#[test]
fn base_and_adapter_share_one_loaded_model_and_pair_by_image() {
    let place = Place::new();
    let data = place.dataset(10, 64);
    let fixture = root().join("plugins/medgemma/tests/data");
    let adapter = format!("brset-binary_dr={}", arg(&fixture.join("lora")));
    let more = [
        "--model",
        "checkpoint",
        "--weights",
        arg(&fixture),
        "--adapter",
        &adapter,
        "--max-new-tokens",
        "4",
    ];
    prompted(&place, &built().medgemma, &data, "runs", &more);
    let adapted = report(&place.path("runs/lora-brset-binary_dr"));
    let facts = adapted["facts"]["adapter"].to_string();
    assert!(facts.contains("probe_change"), "{facts}");
    let base = report(&place.path("runs/base"));
    assert_ne!(base["cells"][0]["tracks"], adapted["cells"][0]["tracks"]);
    let said = place.good(&["compare", "runs/base", "runs/lora-brset-binary_dr"]);
    assert!(said.contains("binary_dr"), "{said}");
    place.good(&["verify", "runs/lora-brset-binary_dr"]);
}

#[test]
fn without_weights_the_way_to_them_is_told() {
    let place = Place::new();
    let data = place.dataset(4, 64);
    let out = place.run(&[
        "eval",
        "--plugin",
        arg(&built().medgemma),
        "--dataset",
        "synthetic",
        "--data",
        arg(&data),
    ]);
    assert!(!out.status.success());
    let said = text(&out.stderr);
    assert!(said.contains("weights fetch"), "{said}");
    assert!(said.contains("HF_TOKEN"), "{said}");
}

/// Every official test photograph, asked both questions by a toy; nothing is lost on the way.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn all_idrid_test_photographs_are_asked_both_questions() {
    let Ok(data) = root().join("../shared/data/idrid").canonicalize() else {
        eprintln!("skipped: the IDRiD photographs are not at ../shared/data/idrid");
        return;
    };
    let place = Place::new();
    place.good(&[
        "eval",
        "--plugin",
        arg(&built().medgemma),
        "--weights",
        "random:1",
        "--size",
        "tiny",
        "--dataset",
        "idrid",
        "--data",
        arg(&data),
        "--tasks",
        "binary_dr,referable_dr",
        "--max-new-tokens",
        "4",
        "--out",
        "run",
    ]);
    let found = report(&place.path("run"));
    assert_eq!(found["splits"]["test"]["answered"], 103);
    let cells = found["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2);
    for cell in cells {
        // A toy says no yes or no: its answers are counted, and wrong in the corrected track.
        let excluded = cell["excluded"].to_string();
        assert!(excluded.contains("unparseable"), "{cell:#}");
    }
    place.good(&["verify", "run"]);
}
