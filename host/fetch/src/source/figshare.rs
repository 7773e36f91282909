//! figshare: `v2/articles/NUMBER/files` lists the files with size and MD5, in pages.

use super::{Ways, linked, listing};
use crate::{
    address,
    checksum::{Algorithm, Checksum},
    error::Result,
    job::FileJob,
};
use serde::Deserialize;

const PAGE: usize = 1000;
const PAGES: usize = 1000;

#[derive(Deserialize)]
struct File {
    name: String,
    size: u64,
    download_url: String,
    #[serde(default)]
    computed_md5: String,
    #[serde(default)]
    supplied_md5: String,
    #[serde(default)]
    is_link_only: bool,
}

pub(super) fn list(ways: &Ways<'_>, article: u64) -> Result<Vec<FileJob>> {
    let list = address::join(
        &ways.base,
        ["v2", "articles", &article.to_string(), "files"],
    )?;
    let mut jobs = Vec::new();
    for page in 1..=PAGES {
        let mut url = list.clone();
        url.set_query(Some(&format!("page_size={PAGE}&page={page}")));
        let files: Vec<File> = ways.json(&url)?;
        let last = files.len() < PAGE;
        for file in files {
            let entry = Some(jobs.len() + 1);
            if file.is_link_only {
                return Err(listing(&list, entry, "a link to another site, not a file"));
            }
            // The service's own sum, else the uploader's.
            let sum = [&file.computed_md5, &file.supplied_md5]
                .into_iter()
                .find(|s| !s.is_empty());
            let checksum = sum.map(|s| Checksum::new(Algorithm::Md5, s)).transpose()?;
            let content = linked(&list, &file.download_url)?;
            jobs.push(FileJob {
                size: Some(file.size),
                checksums: checksum.into_iter().collect(),
                ..ways.job(file.name, content)
            });
        }
        if last {
            break;
        }
    }
    if jobs.is_empty() {
        return Err(listing(&list, None, "no file is named"));
    }
    Ok(jobs)
}
