//! The committed pictures and what Pillow makes of them. Asserts nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use focus_images::{Geometry, PrepareSpec, ResizeFilter};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
pub struct Expected {
    pub decoded: Vec<DecodedRow>,
    pub prepared: Vec<PreparedRow>,
    #[serde(default)]
    pub masks: Vec<MaskRow>,
}

#[derive(Deserialize)]
pub struct MaskRow {
    pub file: String,
    pub coding: BTreeMap<u16, u8>,
    pub width: u32,
    pub height: u32,
    pub sha256: String,
    pub resized: Vec<ResizedRow>,
}

#[derive(Deserialize)]
pub struct ResizedRow {
    pub width: u32,
    pub height: u32,
    pub sha256: String,
}

#[derive(Deserialize)]
pub struct DecodedRow {
    pub file: String,
    pub error: Option<String>,
    #[serde(default)]
    pub width: u32,
    #[serde(default)]
    pub height: u32,
    #[serde(default)]
    pub sha256: String,
    pub orientation: Option<u8>,
    pub mode: Option<String>,
    pub bits: Option<u8>,
    #[serde(default)]
    pub alpha: bool,
    #[serde(default)]
    pub remarks: usize,
}

#[derive(Debug, Deserialize)]
pub struct PreparedRow {
    pub file: String,
    pub width: u32,
    pub height: u32,
    pub geometry: Geometry,
    pub filter: ResizeFilter,
    pub sha256: String,
}

impl PreparedRow {
    pub fn spec(&self) -> PrepareSpec {
        PrepareSpec::new(self.width, self.height, self.geometry, self.filter)
    }
}

/// Of both scripts: JPEG and PNG, and all other formats.
pub fn expected() -> Expected {
    let read = |name: &str| -> Expected {
        serde_json::from_slice(&data(name)).expect("the committed file is well formed")
    };
    let (mut all, more) = (read("expected.json"), read("formats/expected.json"));
    all.decoded.extend(more.decoded);
    all.prepared.extend(more.prepared);
    all.masks.extend(more.masks);
    all
}

pub fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).join(name)
}

pub fn data(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

pub fn squash(width: u32, height: u32) -> PrepareSpec {
    PrepareSpec::new(width, height, Geometry::Squash, ResizeFilter::Bilinear)
}
