//! What a person or a script sees: results, errors with hints, exit codes. Snapshots lie in `tests/snapshots`.

use crate::support::{Place, arg, built, eval_on, root, text};
use insta::{assert_snapshot, with_settings};

/// Run and write down everything, with what differs between machines filtered out.
fn told(place: &Place, args: &[&str]) -> String {
    let out = place.run(args);
    let shown = format!(
        "$ focus-host {}\nexit: {}\n----- stdout -----\n{}----- stderr -----\n{}",
        args.join(" "),
        out.status
            .code()
            .map_or("signal".into(), |code| code.to_string()),
        text(&out.stdout),
        text(&out.stderr)
    );
    let plugins = built().hostile.parent().expect("a folder").to_owned();
    // The build folder may lie within the project, so it goes first.
    let shown = shown
        .replace(arg(place.dir.path()), "[PLACE]")
        .replace(arg(&plugins), "[PLUGINS]")
        .replace(arg(built().host.parent().expect("a folder")), "[BIN]")
        .replace(arg(&root()), "[ROOT]");
    let digests = regex::Regex::new("[0-9a-f]{64}").expect("a pattern");
    let sizes = regex::Regex::new(r"\(\d+ bytes\)").expect("a pattern");
    let shown = sizes.replace_all(&shown, "([N] bytes)");
    let short = regex::Regex::new("sha256:[0-9a-f]{12}").expect("a pattern");
    // Which plugins lie beside the executable depends on what was built and sealed there.
    let installed = regex::Regex::new("`none`: found .*").expect("a pattern");
    let shown = installed.replace_all(&shown, "`none`: found [PLUGINS]");
    let shown = digests.replace_all(&shown, "[DIGEST]");
    short.replace_all(&shown, "sha256:[SHORT]").into_owned()
}

fn snapshot(name: &str, shown: String) {
    with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, { assert_snapshot!(name, shown) });
}

#[test]
fn help_names_every_command_and_exit_code() {
    let place = Place::new();
    snapshot("help", told(&place, &["--help"]));
    snapshot("help_eval", told(&place, &["eval", "--help"]));
}

#[test]
fn errors_say_what_was_expected_found_and_to_do() {
    let place = Place::new();
    let hostile = arg(&built().hostile);
    let eval = |more: &[&str]| told(&place, &[&["eval", "--plugin", hostile], more].concat());
    snapshot(
        "error_no_plugin",
        told(&place, &["eval", "--plugin", "./libnone.so"]),
    );
    snapshot(
        "error_no_plugin_name",
        told(&place, &["eval", "--plugin", "none"]),
    );
    snapshot("error_no_data", eval(&["--dataset", "idrid"]));
    snapshot("error_empty_data", {
        std::fs::create_dir(place.path("empty")).expect("creates");
        eval(&["--dataset", "idrid", "--data", "empty"])
    });
    snapshot(
        "error_no_dataset",
        eval(&["--dataset", "nowhere", "--data", "empty"]),
    );
    let data = place.dataset(6, 96);
    let on =
        |more: &[&str]| eval(&[&["--dataset", "synthetic", "--data", arg(&data)], more].concat());
    snapshot("error_no_task", on(&["--tasks", "binary"]));
    snapshot("error_no_method", on(&["--methods", "knn"]));
    snapshot("error_no_model", on(&["--model", "other"]));
    snapshot("error_device", on(&["--device", "cuda:0"]));
    snapshot("error_share", on(&["--error-budget", "2"]));
    snapshot("error_not_a_run", told(&place, &["report", "empty"]));
    snapshot(
        "error_as_json",
        told(&place, &["report", "empty", "--json"]),
    );
}

#[test]
fn a_plugin_that_fails_as_a_whole_ends_the_run_with_its_words() {
    let place = Place::new();
    let data = place.dataset(6, 96);
    let eval = |deed: &str| {
        let misdeed = format!("misdeed={deed}");
        told(
            &place,
            &eval_on(
                &built().hostile,
                &data,
                &["--set", &misdeed, "--out", deed, "--tasks", "binary_dr"],
            ),
        )
    };
    snapshot("plugin_panics_in_open", eval("panic_in_open"));
    snapshot("plugin_gives_wrong_width", eval("wrong_dim"));
}

#[test]
fn a_file_that_is_no_plugin_gets_no_seal() {
    let place = Place::new();
    let file = place.path("libtext.so");
    std::fs::write(&file, "not a library").expect("writes");
    let out = place.run(&["plugin", "seal", arg(&file)]);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    assert!(!place.path("libtext.toml").exists());
    let out = place.run(&["eval", "--plugin", arg(&file)]);
    assert_eq!(out.status.code(), Some(4));
    assert!(
        text(&out.stderr).contains("has no sidecar"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn lists_are_for_people_and_for_scripts() {
    let place = Place::new();
    snapshot(
        "plugin_list",
        told(
            &place,
            &["plugin", "list", "--plugin", arg(&built().handcrafted)],
        ),
    );
    let json = place.good(&[
        "plugin",
        "list",
        "--plugin",
        arg(&built().hostile),
        "--json",
    ]);
    let list: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(list[0]["descriptor"]["models"][0]["id"], "hostile");
    let json = place.good(&["dataset", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let ids: Vec<_> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|d| d["id"].as_str().expect("an id"))
        .collect();
    assert_eq!(
        ids,
        [
            "brset",
            "g1020",
            "idrid",
            "jsiec1000",
            "mbrset",
            "messidor_2",
            "papila",
            "refuge",
            "rfmid",
            "rfmid_2",
            "synthetic"
        ]
    );
    let found: serde_json::Value =
        serde_json::from_slice(&place.run(&["doctor", "--json"]).stdout).expect("JSON");
    assert!(
        // A plugin beside the executable may have been rebuilt since it was sealed: that is doctor's to say, not ours.
        found
            .as_array()
            .expect("findings")
            .iter()
            .all(|f| f["verdict"] != "bad" || f["what"] == "plugins"),
        "{found:#}"
    );
    assert!(place.good(&["completions", "bash"]).contains("focus-host"));
}

#[test]
fn the_report_is_the_same_from_every_side() {
    let place = Place::new();
    let data = place.dataset(12, 96);
    let args = eval_on(
        &built().hostile,
        &data,
        &["--tasks", "binary_dr", "--out", "run"],
    );
    snapshot("eval_text", told(&place, &args));
    let json = place.good(&[&args[..], &["--json"]].concat());
    assert_eq!(json, place.good(&["report", "run", "--format", "json"]));
    assert_eq!(
        json.as_bytes(),
        std::fs::read(place.path("run/report.json")).expect("stored")
    );
    let markdown = place.good(&["report", "run", "--format", "markdown"]);
    assert_eq!(
        markdown.as_bytes(),
        std::fs::read(place.path("run/report.md")).expect("stored")
    );
    snapshot("verify", told(&place, &["verify", "run"]));
    snapshot(
        "map",
        told(&place, &["dataset", "map", "--data", arg(&data)]),
    );
}
