//! Zenodo: `api/records/NUMBER` lists the files with size and MD5.

use super::{Ways, linked, listing};
use crate::{
    address,
    checksum::Checksum,
    error::{Result, quoted},
    job::FileJob,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Record {
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    key: String,
    size: u64,
    checksum: String,
    links: Option<Links>,
}

#[derive(Deserialize)]
struct Links {
    #[serde(rename = "self")]
    content: Option<String>,
}

pub(super) fn list(ways: &Ways<'_>, record: u64) -> Result<Vec<FileJob>> {
    let url = address::join(&ways.base, ["api", "records", &record.to_string()])?;
    let found: Record = ways.json(&url)?;
    if found.files.is_empty() {
        return Err(listing(
            &url,
            None,
            "no file is named; access to the record may be restricted",
        ));
    }
    found
        .files
        .into_iter()
        .enumerate()
        .map(|(i, file)| {
            let checksum = Checksum::parse(&file.checksum).ok_or_else(|| {
                let what = format!("unknown checksum `{}`", quoted(&file.checksum));
                listing(&url, Some(i + 1), what)
            })??;
            let content = match file.links.and_then(|l| l.content) {
                Some(link) => linked(&url, &link)?,
                None => address::join(&url, ["files", &file.key, "content"])?,
            };
            Ok(FileJob {
                size: Some(file.size),
                checksums: vec![checksum],
                ..ways.job(file.key, content)
            })
        })
        .collect()
}
