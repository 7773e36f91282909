//! Model repositories of a Hugging Face hub, into the cache that `huggingface_hub` and `hf-hub` use: `blobs` by content,
//! `snapshots/COMMIT` of links to them, `refs/REVISION` with a commit. A reference is written last, so it names whole snapshots only.
//!
//! The crate `hf-hub` 1.0 is not used: it wants an asynchronous runtime and a second HTTP and TLS stack for what is a list and some
//! files.

mod choice;
mod place;

pub use choice::usual;

use crate::{
    Context, address,
    address::Origin,
    checksum::{Algorithm, Checksum},
    credential::{Login, Secret},
    error::{FetchError, Result},
    fetch_all,
    folder::{Folder, check_name},
    http::Ask,
    job::FileJob,
    retry::{Step, persist},
};
use place::Repository;
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
};
use url::Url;

const ENDPOINT: &str = "https://huggingface.co";
const BRANCH: &str = "main";

/// Where models come from, who asks, and where they are kept.
#[derive(Debug, Clone)]
pub struct Hub {
    endpoint: Url,
    login: Option<Login>,
    cache: PathBuf,
    offline: bool,
}

/// A repository's files in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The folder with the files.
    pub folder: PathBuf,
    /// The commit.
    pub commit: String,
    /// Files fetched now.
    pub fetched: usize,
    /// Files that were there already.
    pub present: usize,
    /// Bytes that came over the network.
    pub received: u64,
}

/// A file as the hub lists it.
struct Listed {
    name: String,
    blob: String,
    size: u64,
    sha256: Option<Checksum>,
}

impl Hub {
    /// `HF_ENDPOINT`, `HF_TOKEN` (else the file `HF_TOKEN_PATH`, else `token` below `HF_HOME`, else below `huggingface` in the user's
    /// cache folder) and `HF_HUB_OFFLINE`, as `huggingface_hub` reads them. `cache` is the folder of `models--ORG--NAME`.
    pub fn from_environment(cache: &Path) -> Result<Self> {
        Self::new(cache, |name| std::env::var_os(name))
    }

    /// From an environment of the caller's making.
    pub fn new(cache: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| {
            set(name)
                .map(|value| {
                    value.into_string().map_err(|_| FetchError::CredentialFile {
                        path: name.into(),
                        line: None,
                        rule: "the variable must be UTF-8",
                    })
                })
                .transpose()
        };
        let endpoint = text("HF_ENDPOINT")?;
        let endpoint = address::parse(endpoint.as_deref().unwrap_or(ENDPOINT))?;
        let home = set("HF_HOME").map(PathBuf::from).or_else(|| {
            let caches = set("XDG_CACHE_HOME").map(PathBuf::from);
            let caches = caches.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
            Some(caches?.join("huggingface"))
        });
        let file = set("HF_TOKEN_PATH")
            .map(PathBuf::from)
            .or_else(|| Some(home?.join("token")));
        let token = match (text("HF_TOKEN")?, file) {
            (Some(token), _) => Some(Secret::new(token.trim())),
            (None, Some(file)) => Secret::from_file(&file)?,
            (None, None) => None,
        };
        let login = token
            .map(|token| Login::bearer(Origin::of(&endpoint)?, token))
            .transpose()?;
        let offline = text("HF_HUB_OFFLINE")?.is_some_and(|value| {
            matches!(
                value.to_ascii_lowercase().as_str(),
                "1" | "true" | "yes" | "on"
            )
        });
        Ok(Self {
            endpoint,
            login,
            cache: cache.into(),
            offline,
        })
    }

    /// Get a repository's files at a revision (branch, tag or commit; `None`: the main branch). `wanted` are names of files; none: the
    /// [`usual`] ones.
    pub fn fetch(
        &self,
        context: &Context<'_>,
        repository: &str,
        revision: Option<&str>,
        wanted: &[String],
    ) -> Result<Snapshot> {
        let place = Repository::new(&self.cache, repository)?;
        let revision = revision.unwrap_or(BRANCH);
        check_name(revision)?;
        if self.offline {
            return self.known(&place, repository, revision, wanted);
        }
        let advice = format!(
            "Open {}/{repository}, accept its terms if it has some, make a token that may read it in the account's settings, and set HF_TOKEN",
            address::shown(&self.endpoint).trim_end_matches('/')
        );
        let (commit, files) = self.list(context, repository, revision, &advice)?;
        let files = choice::choose(repository, files, wanted)?;
        let mut jobs: Vec<FileJob> = Vec::new();
        let mut blobs = BTreeSet::new();
        for file in &files {
            // Two names may have the same content.
            if blobs.insert(file.blob.as_str()) {
                jobs.push(FileJob {
                    name: file.blob.clone(),
                    url: self.file(repository, &commit, &file.name)?,
                    size: Some(file.size),
                    checksums: file.sha256.iter().cloned().collect(),
                    login: self.login.clone(),
                    advice: Some(advice.clone()),
                });
            }
        }
        let summary = fetch_all(context, &Folder::open(&place.blobs())?, &jobs)?;
        let (fetched, present, received) =
            (summary.fetched(), summary.present(), summary.received());
        if let Some(failed) = summary.files.into_iter().find(|file| file.result.is_err()) {
            failed.result?;
        }
        for file in &files {
            place.link(&commit, &file.name, &file.blob)?;
        }
        if revision != commit {
            place.refer(revision, &commit)?;
        }
        Ok(Snapshot {
            folder: place.snapshot(&commit),
            commit,
            fetched,
            present,
            received,
        })
    }

    /// What the cache has, without asking.
    fn known(
        &self,
        place: &Repository,
        repository: &str,
        revision: &str,
        wanted: &[String],
    ) -> Result<Snapshot> {
        let commit = place.commit(revision)?;
        let folder = place.snapshot(&commit);
        let missing = |what: String| FetchError::Offline {
            what: format!("{what} of `{repository}`"),
            cache: self.cache.clone(),
        };
        if !folder.is_dir() {
            return Err(missing(format!("Revision `{revision}`")));
        }
        if let Some(name) = wanted.iter().find(|name| !folder.join(name).is_file()) {
            return Err(missing(format!("File `{name}`")));
        }
        Ok(Snapshot {
            folder,
            commit,
            fetched: 0,
            present: wanted.len(),
            received: 0,
        })
    }

    fn file(&self, repository: &str, commit: &str, name: &str) -> Result<Url> {
        let parts = repository.split('/').chain(["resolve", commit]);
        address::join(&self.endpoint, parts.chain(name.split('/')))
    }

    /// The commit that a revision is now, and its files.
    fn list(
        &self,
        context: &Context<'_>,
        repository: &str,
        revision: &str,
        advice: &str,
    ) -> Result<(String, Vec<Listed>)> {
        let parts = ["api", "models"].into_iter().chain(repository.split('/'));
        let mut url = address::join(&self.endpoint, parts.chain(["revision", revision]))?;
        url.set_query(Some("blobs=true"));
        let host = url.host_str().unwrap_or_default();
        let (bytes, _) = persist(context, &address::shown(&url), host, || {
            let ask = Ask {
                url: &url,
                login: self.login.as_ref(),
                range: None,
                advice: Some(advice),
            };
            let answer = context.client.text(context.machine, &ask);
            (answer.map(Step::Done), false)
        })?;
        let malformed = |line: Option<usize>, what: String| FetchError::Listing {
            address: address::shown(&url),
            line,
            what,
        };
        let info: Info =
            serde_json::from_slice(&bytes).map_err(|error| malformed(None, error.to_string()))?;
        if !is_hex(&info.sha, 40) {
            return Err(malformed(None, "`sha` is no commit".into()));
        }
        let limit = context.client.limits().listed_files;
        if info.siblings.len() > limit {
            return Err(FetchError::TooLarge {
                address: address::shown(&url),
                what: "files in a list",
                limit: limit as u64,
                found: info.siblings.len() as u64,
            });
        }
        let mut files = Vec::new();
        for (at, file) in info.siblings.into_iter().enumerate() {
            check_name(&file.rfilename)?;
            files.push(
                file.listed()
                    .map_err(|what| malformed(Some(at + 1), what.into()))?,
            );
        }
        Ok((info.sha, files))
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[derive(Deserialize)]
struct Info {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
    size: u64,
}

impl Sibling {
    /// Large files are named by their SHA-256, small ones by git's name for them.
    fn listed(self) -> std::result::Result<Listed, &'static str> {
        if let Some(lfs) = self.lfs {
            let sha256 = Checksum::new(Algorithm::Sha256, &lfs.sha256)
                .map_err(|_| "`lfs.sha256` is no SHA-256")?;
            return Ok(Listed {
                name: self.rfilename,
                blob: sha256.hex().to_owned(),
                size: lfs.size,
                sha256: Some(sha256),
            });
        }
        let blob = self.blob_id.filter(|id| is_hex(id, 40));
        Ok(Listed {
            name: self.rfilename,
            blob: blob.ok_or("`blobId` is no name of git's")?,
            size: self.size.ok_or("`size` is missing")?,
            sha256: None,
        })
    }
}
