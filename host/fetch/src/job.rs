//! One file to fetch, and how it ended.

use crate::{
    address,
    checksum::Checksum,
    credential::Login,
    error::{FetchError, Result},
};
use url::Url;

/// A file to fetch.
#[derive(Debug, Clone)]
pub struct FileJob {
    /// Name below the target folder, parts separated by `/`.
    pub name: String,
    /// Where it is. http or https, without user name or password.
    pub url: Url,
    /// Its size in bytes, if the source tells.
    pub size: Option<u64>,
    /// All of them must fit.
    pub checksums: Vec<Checksum>,
    /// Sent to the login's own origin only.
    pub login: Option<Login>,
    /// What to do if the server refuses (sign, log in, ...); shown as the error's hint.
    pub advice: Option<String>,
}

impl FileJob {
    /// A file without login, size or checksum.
    pub fn new(name: impl Into<String>, url: &str) -> Result<Self> {
        Ok(Self {
            name: name.into(),
            url: address::parse(url)?,
            size: None,
            checksums: Vec::new(),
            login: None,
            advice: None,
        })
    }

    /// Rules that need no network: a plain-http file must have a checksum.
    pub(crate) fn check(&self) -> Result<()> {
        address::check(&self.url)?;
        if self.url.scheme() == "http"
            && self.checksums.is_empty()
            && !address::is_loopback(&self.url)
        {
            return Err(FetchError::Address {
                address: address::shown(&self.url),
                rule: "without TLS a file needs a checksum",
            });
        }
        Ok(())
    }
}

/// What speaks for a file being whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// A checksum of the source.
    Checksum,
    /// Only the size that the source's list tells.
    Size,
    /// Only that the server's own count of bytes arrived.
    Transfer,
    /// Nothing: it was there before, and the source tells neither size nor checksum.
    None,
}

/// How a file got into place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes that came over the network for it, failed attempts included. 0: it was there.
    pub received: u64,
    /// Attempts made. 0: it was there.
    pub attempts: u32,
    /// What speaks for it.
    pub proof: Proof,
}
