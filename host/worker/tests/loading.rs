//! What is refused before, and what while, a library is loaded.

use crate::host::Host;
use crate::support::{contract_only, hostile, load_request};
use focus_wire::{FailureKind, FromWorker, LoadRequest, ToWorker, WireError};
use std::path::{Path, PathBuf};

fn refused(request: LoadRequest) -> WireError {
    let mut host = Host::start();
    let error = host.fails(&ToWorker::Load(request));
    assert_eq!(error.kind, FailureKind::Load, "{error}");
    // The process lives, and says that there is nothing to ask.
    let later = host.fails(&ToWorker::Describe);
    assert!(later.message.contains("No plugin is loaded"), "{later}");
    error
}

#[test]
fn a_changed_library_is_refused_with_both_digests() {
    let request = LoadRequest {
        digest: format!("sha256:{}", "ab".repeat(32)),
        ..load_request(hostile())
    };
    let (expected, found) = (request.digest.clone(), load_request(hostile()).digest);
    let error = refused(request);
    assert!(
        error
            .message
            .contains(&format!("expected `{expected}`, found `{found}`")),
        "{error}"
    );
    assert!(error.hint.expect("advice").contains("plugin seal"));
}

#[test]
fn a_truncated_library_is_refused_before_anything_maps_it() {
    let folder = tempfile::tempdir().expect("folder");
    let cut = folder.path().join("libcut.so");
    let bytes = std::fs::read(hostile()).expect("reads");
    std::fs::write(&cut, &bytes[..bytes.len() / 3]).expect("writes");
    let request = LoadRequest {
        digest: load_request(hostile()).digest,
        ..load_request(&cut)
    };
    assert!(refused(request).message.contains("Digest"));
}

#[test]
fn what_is_no_library_or_no_plugin_is_told_apart() {
    let folder = tempfile::tempdir().expect("folder");
    let text = folder.path().join("libtext.so");
    std::fs::write(&text, "not a library").expect("writes");
    let error = refused(load_request(&text));
    assert!(
        error.message.contains("Cannot load plugin") && error.message.contains("libtext.so"),
        "{error}"
    );
    let system = [
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/lib64/libm.so.6",
        "/usr/lib/libm.so.6",
    ]
    .map(PathBuf::from);
    if let Some(library) = system.into_iter().find(|path| path.exists()) {
        let error = refused(load_request(&library));
        assert!(
            error.message.starts_with("Not a focus plugin") && error.hint.is_some(),
            "{error}"
        );
    }
    let absent = LoadRequest {
        library: "/nowhere/libx.so".into(),
        ..load_request(&text)
    };
    assert!(refused(absent).message.contains("/nowhere/libx.so"));
}

#[test]
fn another_contract_is_named() {
    let error = refused(load_request(&contract_only("future")));
    assert!(
        error.message.contains("speaks contract 999: expected 1"),
        "{error}"
    );
    assert!(error.hint.expect("advice").contains("Rebuild"));
}

#[test]
fn a_contract_number_without_a_root_module_is_not_enough() {
    let error = refused(load_request(&contract_only("present")));
    assert!(
        error.message.contains("No root module of contract 1"),
        "{error}"
    );
    assert!(error.hint.expect("advice").contains("export_plugin!"));
}

#[test]
fn what_was_checked_is_what_runs() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("libhostile.so");
    std::fs::copy(hostile(), &path).expect("copies");
    let mut host = Host::loaded(&load_request(&path));
    // Emptied in place under a running worker: a plain mapping of the file would now fault.
    std::fs::write(&path, "").expect("empties");
    host.attach();
    host.open(&[]).expect("opens");
    host.encode(&[crate::support::image(1)]).expect("encodes");
}

#[test]
fn a_library_that_wants_its_folder_is_loaded_by_path() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("libhostile.so");
    // Bytes after the end are no part of an ELF file, but the search for the word goes by bytes.
    let mut bytes = std::fs::read(hostile()).expect("reads");
    bytes.extend_from_slice(b"$ORIGIN/../lib");
    std::fs::write(&path, bytes).expect("writes");
    let mut host = Host::start();
    let FromWorker::Loaded { sandbox, .. } = host.ask(&ToWorker::Load(load_request(&path))) else {
        panic!("loads")
    };
    assert!(
        sandbox
            .iter()
            .any(|line| line.contains("by path") && line.contains("$ORIGIN")),
        "{sandbox:?}"
    );
    host.lives();
}

#[test]
fn the_sealed_library_passes_the_sidecar() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("libhostile.so");
    std::fs::copy(hostile(), &path).expect("copies");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/hostile/plugin.toml");
    let manifest = focus_worker::sidecar::Manifest::read(&manifest).expect("reads");
    let sealed = focus_worker::Sidecar::write_for(&path, &manifest).expect("seals");
    let read = focus_worker::Sidecar::read_for(&path).expect("reads");
    read.verify(&path).expect("unchanged");
    Host::loaded(&LoadRequest {
        digest: sealed.digest,
        ..load_request(&path)
    })
    .lives();
}
