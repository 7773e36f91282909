//! The exported example against what it computes in Python (`scripts/export_example.py`), and folders that are refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use focus_plugin_sdk::{ErrorKind, Host, ImageBatch, ImageEncoder as _, Model as _, OpenOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use torchscript::card::{CARD, ID, PROGRAM};
use torchscript::encoder::Encoder;

const WIDTH: usize = 64;
const HEIGHT: usize = 48;

/// `FOCUS_TORCHSCRIPT_EXAMPLE`, a folder exported just now, or the committed one.
fn data() -> PathBuf {
    std::env::var_os("FOCUS_TORCHSCRIPT_EXAMPLE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"),
        PathBuf::from,
    )
}

fn options(folder: Option<&Path>) -> OpenOptions {
    OpenOptions {
        model: ID.into(),
        device: "cpu".into(),
        dtype: None,
        weights: folder.map(|path| path.to_str().unwrap().to_owned()),
        threads: 1,
        settings: BTreeMap::new(),
        ..OpenOptions::default()
    }
}

fn open(folder: &Path) -> Result<Encoder, focus_plugin_sdk::Error> {
    Encoder::open(&options(Some(folder)), &Host::detached())
}

/// Whole numbers only, as in `export_example.py`.
fn picture(number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            for c in 0..3 {
                let value = x * (3 + c) + y * (5 - c) + (x * y) / (4 + number) + 40 * number;
                bytes.push(u8::try_from(value % 256).unwrap());
            }
        }
    }
    bytes
}

#[test]
fn embeddings_agree_with_python() {
    let mut encoder = open(&data()).unwrap();
    let state = encoder.opened();
    assert_eq!((state.embedding_dim, state.batch_size), (32, 2));
    assert_eq!(state.preprocessing.width, 64);
    assert!(
        state.notes[0].contains("licence of the weights"),
        "{:?}",
        state.notes
    );
    let rgb = [picture(0), picture(1)].concat();
    let batch = ImageBatch::new(&rgb, WIDTH, HEIGHT, 2).unwrap();
    let found = encoder.encode(&batch, &Host::detached()).unwrap();
    let bytes = std::fs::read(data().join("expected.f32")).unwrap();
    let wanted = bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()));
    assert_eq!(found.values().len(), bytes.len() / 4);
    for (at, (found, wanted)) in found.values().iter().zip(wanted).enumerate() {
        assert!(
            (found - wanted).abs() <= 1e-5,
            "value {at}: expected {wanted}, found {found}"
        );
    }
}

#[test]
fn padding_is_left_out() {
    let mut encoder = open(&data()).unwrap();
    let rgb = [picture(1), vec![0; WIDTH * HEIGHT * 3]].concat();
    let batch = ImageBatch::new(&rgb, WIDTH, HEIGHT, 1).unwrap();
    let one = encoder.encode(&batch, &Host::detached()).unwrap();
    assert_eq!((one.rows(), one.dim()), (1, 32));
}

/// The example's folder with its card changed.
fn changed(from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data().join(PROGRAM), folder.path().join(PROGRAM)).unwrap();
    let card = std::fs::read_to_string(data().join(CARD)).unwrap();
    assert!(card.contains(from));
    std::fs::write(folder.path().join(CARD), card.replace(from, to)).unwrap();
    folder
}

#[test]
fn a_card_that_does_not_fit_is_refused_at_opening() {
    for (from, to, said) in [
        ("\"mean_tokens\"", "\"none\"", "wants 2 dimensions"),
        ("\"mean_tokens\"", "\"mean_places\"", "wants 4 dimensions"),
        ("pooling", "index = 0\npooling", "gives one tensor"),
        ("pooling", "key = \"x\"\npooling", "gives one tensor"),
        ("batch = 2", "batch = 0", "`batch`"),
        ("width = 64", "width = 4", "does not fit"),
    ] {
        let folder = changed(from, to);
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WEIGHTS, "{to}");
        assert!(error.to_string().contains(said), "{to}: {error}");
    }
}

#[test]
fn another_picture_size_is_the_card_s() {
    let folder = changed("width = 64", "width = 32");
    assert_eq!(
        open(folder.path()).unwrap().opened().preprocessing.width,
        32
    );
}

#[test]
fn folders_without_a_program_are_refused() {
    let folder = changed("batch = 2", "batch = 2");
    std::fs::write(folder.path().join(PROGRAM), b"no archive").unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("not a TorchScript program"),
        "{error}"
    );
    std::fs::remove_file(folder.path().join(CARD)).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("Cannot read `encoder.toml`"),
        "{error}"
    );
    let error = Encoder::open(&options(None), &Host::detached()).unwrap_err();
    assert!(error.hint().unwrap().contains("docs/torchscript.md"));
}

#[test]
fn senseless_requests_are_refused() {
    let mut gpu = options(Some(&data()));
    gpu.device = "cuda:0".into();
    let error = Encoder::open(&gpu, &Host::detached()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UNSUPPORTED);
    let mut random = options(None);
    random.settings.insert("weights".into(), "random:1".into());
    let error = Encoder::open(&random, &Host::detached()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST);
}
