//! Building dylibs and preparing batches.

use focus_plugin_abi::v1::message::{EncodeRequest, PixelType};
use focus_wire::LoadRequest;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Image side in pixels of all tests.
pub const EDGE: usize = 8;
/// Bytes of an image.
pub const IMAGE: usize = EDGE * EDGE * 3;
/// Rows of a batch.
pub const BATCH: usize = 4;

/// The worker program.
pub fn worker() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_focus-worker"))
}

/// Folder and name of the profile that these tests were built with.
fn profile() -> (PathBuf, String) {
    let folder = worker().parent().expect("in a profile's folder").to_owned();
    let name = folder
        .file_name()
        .expect("named")
        .to_string_lossy()
        .into_owned();
    (
        folder,
        if name == "debug" {
            "dev".to_owned()
        } else {
            name
        },
    )
}

/// Run `cargo build` with the target folder and profile of these tests; returns the folder of the results.
pub fn cargo_build(args: &[&str]) -> PathBuf {
    let (folder, profile) = profile();
    let target = folder.parent().expect("in a target folder");
    let out = Command::new(env!("CARGO"))
        .args(["build", "--profile", &profile, "--target-dir"])
        .arg(target)
        .args(args)
        .output()
        .expect("cargo runs");
    assert!(
        out.status.success(),
        "cargo build {args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    folder
}

fn lasting() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| tempfile::tempdir().expect("folder"))
        .path()
}

/// The hostile plugin, built and copied: cargo may write its own file again while tests run.
pub fn hostile() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = cargo_build(&[
            "-p",
            "hostile",
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"),
        ]);
        let copy = lasting().join("libhostile.so");
        std::fs::copy(folder.join("libhostile.so"), &copy).expect("copies");
        copy
    })
}

/// A library with only a contract symbol: `future` or `present`.
pub fn contract_only(which: &str) -> PathBuf {
    let path = lasting().join(format!("libcontract_{which}.so"));
    let out = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "--check-cfg",
            "cfg(contract, values(any()))",
            "--cfg",
        ])
        .arg(format!("contract=\"{which}\""))
        .arg("-o")
        .arg(&path)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/contract_only.rs"))
        .output()
        .expect("rustc runs");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    path
}

/// A request with the file's true digest.
pub fn load_request(library: &Path) -> LoadRequest {
    LoadRequest {
        library: library.to_str().expect("UTF-8").to_owned(),
        digest: focus_worker::digest_file(library).expect("reads"),
        sandbox: true,
        network: Vec::new(),
        threads: 1,
    }
}

/// Open options of the hostile model.
pub fn options(settings: &[(&str, &str)]) -> String {
    let mut all: serde_json::Map<String, serde_json::Value> = settings
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).into()))
        .collect();
    all.insert("edge".into(), EDGE.to_string().into());
    all.insert("batch".into(), BATCH.to_string().into());
    serde_json::json!({ "model": "hostile", "device": "cpu", "threads": 1, "settings": all })
        .to_string()
}

/// An image whose bytes depend on `seed`; its first pixel is never that of [`marked`].
pub fn image(seed: usize) -> Vec<u8> {
    (0..IMAGE)
        .map(|at| ((at * 31 + seed * 101 + at * at % 13) % 250) as u8)
        .collect()
}

/// The colour that sets a misdeed off, as setting and as image.
pub const MARKER: &str = "fffefd";

/// An image that sets the misdeed off.
pub fn marked() -> Vec<u8> {
    let mut image = image(77);
    image[..3].copy_from_slice(&[0xff, 0xfe, 0xfd]);
    image
}

/// Pixels of a batch, padded with black, and its header.
pub fn batch(images: &[Vec<u8>]) -> (Vec<u8>, String) {
    let mut pixels = images.concat();
    pixels.resize(BATCH * IMAGE, 0);
    let request = EncodeRequest {
        width: EDGE as u32,
        height: EDGE as u32,
        rows: BATCH as u32,
        used: images.len() as u32,
        pixels: PixelType::U8,
    };
    (pixels, serde_json::to_string(&request).expect("serialises"))
}

/// The true embeddings.
pub fn expected(images: &[Vec<u8>]) -> Vec<f32> {
    images
        .iter()
        .flat_map(|image| hostile::embedding(image))
        .collect()
}
