//! Pictures drawn as the reference draws them, fixtures, and the published weights where there are some.

use efficientnet::card::{FILE, ID, preprocessing};
use efficientnet::config::Lite;
use efficientnet::network::Network;
use focus_nn::pixels::Normalisation;
use focus_nn::{Checkpoint, DType, Device, Layout, Tensor};
use focus_plugin_sdk::OpenOptions;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// The toy of `tests/data/tiny.pth`.
pub fn tiny() -> Lite {
    Lite::of_widths(4, [6, 8, 10, 12, 16, 20, 24], 32)
}

/// Side of the toy's pictures: odd after two halvings.
pub const TINY_SIDE: usize = 52;

pub fn tiny_checkpoint() -> Checkpoint {
    Checkpoint::open_file(&data("tiny.pth"), &Layout::default()).unwrap()
}

/// Whole numbers only, as in `make_reference.py`.
pub fn picture(number: usize, side: usize) -> Vec<u8> {
    let side = side as i64;
    let half = side / 2;
    let mut bytes = Vec::new();
    for y in 0..side {
        for x in 0..side {
            for c in 0..3_i64 {
                let value = if number == 0 {
                    (x * (3 + c) + y * (5 - c) + (x * y) / 16) % 256
                } else {
                    let distance = (x - half).pow(2) + (y - half).pow(2);
                    let inside =
                        230 - 60 * c - distance * 120 / (half * half) + (x * 7 + y * 13) % 32;
                    if distance < half * half {
                        inside.clamp(0, 255)
                    } else {
                        0
                    }
                };
                bytes.push(value as u8);
            }
        }
    }
    bytes
}

pub fn planes(rgb: &[u8], side: usize) -> Tensor {
    let card = preprocessing();
    Normalisation {
        mean: card.mean,
        std: card.std,
    }
    .planes(rgb, side, side, &Device::Cpu, DType::F32)
    .unwrap()
}

pub fn features(network: &Network, side: usize) -> Vec<f32> {
    let rgb: Vec<u8> = (0..2).flat_map(|number| picture(number, side)).collect();
    let out = network.forward(&planes(&rgb, side)).unwrap();
    out.flatten_all().unwrap().to_vec1().unwrap()
}

pub fn expected(name: &str) -> Vec<f32> {
    let bytes = std::fs::read(data(name)).unwrap();
    let values = bytes.chunks_exact(4);
    values
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
        .collect()
}

pub fn assert_close(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!(
            (found - wanted).abs() <= 2e-5 + 1e-4 * wanted.abs(),
            "value {at}: expected {wanted}, found {found}"
        );
    }
}

pub fn options(weights: Option<&Path>, settings: &[(&str, &str)]) -> OpenOptions {
    OpenOptions {
        model: ID.into(),
        device: "cpu".into(),
        dtype: None,
        weights: weights.map(|path| path.to_str().unwrap().to_owned()),
        threads: 2,
        settings: settings
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..OpenOptions::default()
    }
}

/// The folder with the published weights: `FOCUS_EFFICIENTNET_WEIGHTS`.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub fn published() -> Option<PathBuf> {
    let folder = std::env::var_os("FOCUS_EFFICIENTNET_WEIGHTS").map(PathBuf::from);
    let found = folder.filter(|folder| folder.join(FILE).is_file());
    if found.is_none() {
        eprintln!(
            "skipped: FOCUS_EFFICIENTNET_WEIGHTS names no folder with `{FILE}` (`focus-host weights fetch {ID}` makes one)"
        );
    }
    found
}
