//! Downloads of datasets and weights: resumable, checked, polite. It must not know what the files mean.
//!
//! | room | owns |
//! | --- | --- |
//! | `registry` | what is known of each dataset: route, licence, what to sign; a TOML file that a user can extend |
//! | `source` | the list of files of a dataset, as PhysioNet, Zenodo, figshare or Kaggle tells it |
//! | `hub` | model repositories of a Hugging Face hub, into its cache |
//! | `batch` | many files: parallel, polite per host, summed up |
//! | `file` | one file: resume, retry, verify, rename |
//! | `http` | one request: redirects, time limits, who may see credentials |
//! | `archive` | zip archives, unpacked with care |
//! | `credential` | secrets from the environment, netrc and `kaggle.json` |
//! | `folder` | names that stay inside the target folder, and no link that leads out of it |
//! | `machine` | clock, sleep, chance and free space, so that tests can replace them |
//!
//! For users: `docs/downloads.md`.
#![forbid(unsafe_code)]

mod address;
mod archive;
mod batch;
mod cancel;
mod checksum;
mod credential;
mod error;
mod file;
mod folder;
mod http;
mod hub;
mod job;
mod limits;
mod machine;
mod netrc;
mod part;
mod progress;
mod registry;
mod retry;
mod source;

pub use address::Origin;
pub use archive::{Unpacked, unpack_all, unpack_zip};
pub use batch::{FileReport, Summary, fetch_all};
pub use cancel::Cancel;
pub use checksum::{Algorithm, Checksum};
pub use credential::{Keyring, Login, Secret, Service};
pub use error::{FetchError, Result};
pub use file::fetch_file;
pub use folder::Folder;
pub use http::{Client, Proxies};
pub use hub::{Hub, Snapshot, usual};
pub use job::{FileJob, Outcome, Proof};
pub use limits::Limits;
pub use machine::{Machine, System};
pub use progress::{Event, Progress};
pub use registry::{Access, Bases, Dataset, Expected, Registry, Source, WebFile};
pub use source::{Plan, fetch_dataset, list_files};

/// What every download needs: how to ask, how far to go, where time comes from, and whether to stop.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Sends requests; shared by all threads.
    pub client: &'a Client,
    /// Clock, sleep, chance, free space.
    pub machine: &'a dyn Machine,
    /// Hears what happens.
    pub progress: &'a dyn Progress,
    /// Stops everything when set.
    pub cancel: &'a Cancel,
}
