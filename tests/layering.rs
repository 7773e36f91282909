//! ARCHITECTURE.md's invariants, as far as a reading of the sources can hold them.

use crate::support::root;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default()
            .to_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            files.push((path, text));
        }
    }
    files
}

fn all() -> Vec<(PathBuf, String)> {
    [
        "plugin-api",
        "host",
        "plugins",
        "datasets-wasm",
        "examples",
        "tests",
    ]
    .iter()
    .flat_map(|f| sources(&root().join(f)))
    .collect()
}

fn below(path: &Path, folder: &str) -> bool {
    path.starts_with(root().join(folder))
}

#[test]
fn every_file_says_what_it_owns() {
    let silent: Vec<_> = all()
        .into_iter()
        .filter(|(_, text)| !text.trim_start().starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(
        silent.is_empty(),
        "files without a `//!` opening: {silent:?}"
    );
}

#[test]
fn only_the_contract_names_abi_stable() {
    for (path, text) in all() {
        let named = text
            .lines()
            .any(|line| line.contains("abi_stable::") && !line.trim_start().starts_with("//"));
        let allowed = below(&path, "plugin-api/abi") || path.ends_with("tests/layering.rs");
        assert!(!named || allowed, "{} names abi_stable", path.display());
    }
}

#[test]
fn only_the_worker_calls_dlopen() {
    for (path, text) in all() {
        let named = text.contains("libloading::");
        let allowed = below(&path, "host/worker")
            || below(&path, "plugin-api/abi")
            || path.ends_with("tests/layering.rs");
        let tests = path.components().any(|part| part.as_os_str() == "tests");
        assert!(
            !named || allowed || tests,
            "{} names libloading",
            path.display()
        );
    }
}

#[test]
fn only_the_command_line_prints_and_nothing_imports_it() {
    for (path, text) in all()
        .into_iter()
        .filter(|(path, _)| below(path, "host/src"))
    {
        if below(&path, "host/src/cli") {
            continue;
        }
        let allowed = path.ends_with("host/src/main.rs") || path.ends_with("host/src/lib.rs");
        assert!(
            allowed || !text.contains("cli::"),
            "{} imports cli",
            path.display()
        );
        for word in ["println!", "eprintln!", "print!(", "dbg!"] {
            assert!(!text.contains(word), "{} prints", path.display());
        }
    }
}

#[test]
fn unsafe_code_lives_where_the_map_says() {
    let allowed = [
        "plugin-api/abi",
        "plugin-api/sdk",
        "plugin-api/resize",
        "host/worker",
        "host/os",
        "plugins/hostile",
        // The memory map of weight files.
        "plugins/nn/src/checkpoint",
        "datasets-wasm",
    ];
    for (path, text) in all() {
        let uses = text.lines().any(|line| {
            let line = line.trim_start();
            !line.starts_with("//")
                && (line.contains("unsafe {")
                    || line.contains("unsafe fn")
                    || line.contains("unsafe impl"))
        });
        let tests = path.components().any(|part| part.as_os_str() == "tests");
        let here = allowed.iter().any(|folder| below(&path, folder)) || tests;
        assert!(!uses || here, "{} uses unsafe code", path.display());
    }
}
