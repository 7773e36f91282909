//! What an import and a simulation write, and what an export makes of it, through other people's tools: pyarrow, pandas,
//! polars and DuckDB.

use focus_exchange::{
    Aliases, ExportFormat, ExportOptions, ImportOptions, Preset, SimModel, export,
    import_focus_csv, simulate,
};
use focus_store::RunView;
use std::{io::Write, path::Path, process::Command};

fn fill(folder: &Path) {
    let model = |id: &str, method: &str, adapters: &[&str]| SimModel {
        id: id.into(),
        methods: vec![method.into()],
        adapters: adapters.iter().map(|a| (*a).to_owned()).collect(),
    };
    let models = [
        model("google/vit-large-patch16-224", "linear_probing", &[]),
        model("google/medgemma-4b-it", "prompting", &["brset"]),
    ];
    let drawn = folder.join("simulated");
    simulate(&Preset::Small.plan(&models, 21), &drawn, "0.1.0").expect("simulates");
    let run = RunView::open(&drawn).expect("opens");
    for (name, format) in [
        ("published", ExportFormat::FocusCsv),
        ("csv", ExportFormat::Csv),
        ("parquet", ExportFormat::Parquet),
    ] {
        export(&run, &folder.join(name), &ExportOptions::new(format)).expect("exports");
    }
    let options = ImportOptions {
        tool_version: "0.1.0".into(),
        aliases: Aliases::of_ids(models.iter().map(|m| m.id.as_str())),
        synthetic: true,
        ..ImportOptions::default()
    };
    import_focus_csv(
        &folder.join("published"),
        &folder.join("imported"),
        &options,
    )
    .expect("imports");
}

#[test]
fn python_reads_what_is_imported_simulated_and_exported() {
    let python = std::env::var("FOCUS_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python)
        .args(["-c", "import pyarrow"])
        .output();
    if !has.is_ok_and(|o| o.status.success()) {
        writeln!(
            std::io::stderr(),
            "skipped: `{python}` has no pyarrow; FOCUS_PYTHON names another"
        )
        .expect("stderr");
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    fill(folder.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/read_runs.py");
    let output = Command::new(&python)
        .arg(&script)
        .arg(folder.path())
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    writeln!(std::io::stderr(), "{}", text.trim()).expect("stderr");
    assert!(text.contains("read by: csv, pyarrow"), "{text}");
}
