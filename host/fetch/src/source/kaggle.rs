//! Kaggle: `api/v1/datasets/download/OWNER/NAME` leads to one zip archive on another host. No size or checksum is told beforehand.

use super::Ways;
use crate::{address, error::Result, job::FileJob};

pub(super) fn list(ways: &Ways<'_>, dataset: &str) -> Result<Vec<FileJob>> {
    let (owner, name) = dataset
        .split_once('/')
        .expect("the registry checks `owner/name`");
    let parts = ["api", "v1", "datasets", "download", owner, name];
    let url = address::join(&ways.base, parts)?;
    Ok(vec![ways.job(format!("{name}.zip"), url)])
}
