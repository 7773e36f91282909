//! The committed components: built from the sources at hand, free of imports, the same on every run.

use std::process::Command;

use crate::support::{Data, component, map, project};

#[test]
fn the_committed_components_are_current() {
    if std::env::var_os("FOCUS_MAPPERS_DIR").is_some() {
        eprintln!("skipped: `FOCUS_MAPPERS_DIR` names other components");
        return;
    }
    let output = Command::new(project().join("scripts/build-mappers"))
        .arg("--check")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn no_path_of_the_machine_that_built_them_is_in_them() {
    let embedded = focus_datasets::registry()
        .iter()
        .map(|m| format!("{}.wasm", m.id));
    for file in embedded.chain(["test/hostile.wasm".into(), "test/my_mapper.wasm".into()]) {
        let bytes = std::fs::read(component(&file)).unwrap();
        let root = project().display().to_string();
        for needle in [root.as_str(), "/root/", "/home/", "/usr/lib/rustlib"] {
            let found = bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes());
            assert!(!found, "`{needle}` in {file}");
        }
    }
}

#[test]
fn compiled_mappers_are_cached_and_give_the_same() {
    let data = Data::new();
    data.file("labels.csv", "image,label\na.png,0\nb.png,1\n")
        .file("images/a.png", "")
        .file("images/b.png", "");
    let cache = Data::new();
    let folder = cache.path().join("compiled");
    let mapper = crate::support::mapper("test/hostile.wasm");
    let limits = focus_datasets::Limits::default();
    let mut first = None;
    for _ in 0..2 {
        let mapped =
            focus_datasets::map_dataset(&mapper, data.path(), &limits, Some(&folder)).unwrap();
        assert!(std::fs::read_dir(&folder).unwrap().count() > 0);
        assert_eq!(*first.get_or_insert(mapped.clone()), mapped);
    }
    // A file where the folder should be costs the cache, not the run.
    cache.file("blocked", "");
    let blocked = cache.path().join("blocked");
    let mapped =
        focus_datasets::map_dataset(&mapper, data.path(), &limits, Some(&blocked)).unwrap();
    assert_eq!(
        mapped.records,
        map("test/hostile.wasm", data.path()).unwrap().records
    );
}
