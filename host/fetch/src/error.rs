//! Everything that can go wrong with a download. Advice is kept apart, in `hint`. No variant ever holds a secret: addresses come without query and user part.

use crate::{checksum::Algorithm, credential::Service};
use std::{io, path::PathBuf, time::Duration};

/// Result of a download.
pub type Result<T, E = FetchError> = std::result::Result<T, E>;

/// A download failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The operating system refused.
    #[error("Could not {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file system is too full.
    #[error("Not enough space for `{}`: expected at least {needed} bytes free, found {free}", path.display())]
    NoSpace {
        /// The file or folder to be written.
        path: PathBuf,
        /// Bytes still to come, and the reserve.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// A file's name could leave the target folder, or is no name.
    #[error("Unsafe file name `{name}`: {rule}")]
    UnsafeName {
        /// The name, shortened, control characters escaped.
        name: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Two files of one list would be written to one place.
    #[error("Two files of one list collide at `{name}`")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A link, or something else that is no plain file or folder, is in the way.
    #[error("`{}` is {found}: expected {expected}", path.display())]
    InTheWay {
        /// What was met.
        path: PathBuf,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// Another process is downloading this file.
    #[error("`{}` is being written by another process", path.display())]
    InUse {
        /// The partial file.
        path: PathBuf,
    },
    /// A file of that name exists and is another one.
    #[error("`{}` exists and differs from the source: expected {expected}, found {found}", path.display())]
    ExistingDiffers {
        /// The file.
        path: PathBuf,
        /// Checksum or size at the source.
        expected: String,
        /// Checksum or size on disk.
        found: String,
    },
    /// An address is not one to ask.
    #[error("Bad address `{address}`: {rule}")]
    Address {
        /// The address without its query.
        address: String,
        /// What it must be.
        rule: &'static str,
    },
    /// A redirect or a list leads from TLS to plain http.
    #[error("`{from}` leads to an address without TLS: `{to}`")]
    Downgrade {
        /// Where TLS was used.
        from: String,
        /// Where it would be lost.
        to: String,
    },
    /// Redirects do not end.
    #[error("Too many redirects from `{address}`: expected at most {limit}")]
    TooManyRedirects {
        /// The address first asked.
        address: String,
        /// `Limits::redirects`.
        limit: u32,
    },
    /// 401 or 403.
    #[error("`{address}` refused access: status {status}{}", if *with_login { " (with credentials)" } else { " (without credentials)" })]
    Refused {
        /// The address.
        address: String,
        /// 401 or 403.
        status: u16,
        /// Whether credentials were sent.
        with_login: bool,
        /// What the source wants of its users.
        advice: Option<String>,
    },
    /// 404 or 410.
    #[error("`{address}` is not there: status {status}")]
    NotFound {
        /// The address.
        address: String,
        /// 404 or 410.
        status: u16,
    },
    /// A status that a repetition does not change.
    #[error("`{address}` answered with status {status}")]
    Status {
        /// The address.
        address: String,
        /// The status.
        status: u16,
    },
    /// The server is busy or broken just now: 408, 425, 429, 5xx.
    #[error("`{address}` is busy: status {status}")]
    Busy {
        /// The address.
        address: String,
        /// The status.
        status: u16,
        /// `Retry-After`, from now.
        retry_after: Option<Duration>,
    },
    /// The server asks for more patience than allowed.
    #[error("`{address}` asks to wait {} s: expected at most {} s", asked.as_secs(), limit.as_secs())]
    WaitTooLong {
        /// The address.
        address: String,
        /// `Retry-After`.
        asked: Duration,
        /// `Limits::retry_after_cap`.
        limit: Duration,
    },
    /// No connection, or it broke.
    #[error("Connection to `{address}` failed: {reason}")]
    Connection {
        /// The address.
        address: String,
        /// Why.
        reason: String,
    },
    /// TLS failed: wrong certificate, no common version.
    #[error("Secure connection to `{address}` failed: {reason}")]
    Tls {
        /// The address.
        address: String,
        /// Why.
        reason: String,
    },
    /// The server is silent or far too slow.
    #[error("`{address}` is too slow: {what}")]
    Slow {
        /// The address.
        address: String,
        /// Which limit was met.
        what: String,
    },
    /// The body ended early.
    #[error("`{address}` broke off: expected {} bytes, found {received}", expected.map_or("more".into(), |n| n.to_string()))]
    BrokeOff {
        /// The address.
        address: String,
        /// Bytes of the file there are now.
        received: u64,
        /// Bytes of the whole file.
        expected: Option<u64>,
    },
    /// The answer makes no sense.
    #[error("`{address}` answered against the rules: {what}")]
    Protocol {
        /// The address.
        address: String,
        /// What is wrong.
        what: String,
    },
    /// A page to be read by people came in place of the file.
    #[error("`{address}` sent a web page in place of the file")]
    WebPage {
        /// The address, after redirects.
        address: String,
        /// What the source wants of its users.
        advice: Option<String>,
    },
    /// The size is not the announced one.
    #[error("`{name}` has another size: expected {expected} bytes, found {found}")]
    SizeDiffers {
        /// The file.
        name: String,
        /// As the source's list or the server tells.
        expected: u64,
        /// As it came, or as the server tells.
        found: u64,
    },
    /// The bytes are not the announced ones.
    #[error("`{name}` has another {algorithm} checksum: expected {expected}, found {found}")]
    ChecksumDiffers {
        /// The file.
        name: String,
        /// Of the checksum.
        algorithm: Algorithm,
        /// Hexadecimal.
        expected: String,
        /// Hexadecimal.
        found: String,
    },
    /// A limit of `Limits` was met.
    #[error("Too much {what} from `{address}`: expected at most {limit}, found {found}")]
    TooLarge {
        /// The address.
        address: String,
        /// What is counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The count, or the first number above the limit.
        found: u64,
    },
    /// Every attempt failed.
    #[error("Gave up after {attempts} attempts: {last}")]
    GaveUp {
        /// How many.
        attempts: u32,
        /// The last failure.
        last: Box<FetchError>,
    },
    /// A text that should be a checksum is none.
    #[error("Bad {algorithm} checksum: expected {digits} hexadecimal digits, found `{found}`")]
    BadChecksum {
        /// Of the checksum.
        algorithm: Algorithm,
        /// Digits it has.
        digits: usize,
        /// The text, shortened.
        found: String,
    },
    /// A file with credentials is malformed. Its text is never repeated.
    #[error("Could not read credentials from `{}`{}: {rule}", path.display(), line.map_or(String::new(), |n| format!(", line {n}")))]
    CredentialFile {
        /// The file.
        path: PathBuf,
        /// Line from 1.
        line: Option<usize>,
        /// What it must be.
        rule: &'static str,
    },
    /// The source needs credentials and there are none.
    #[error("No credentials for {service}")]
    NoCredentials {
        /// Which service.
        service: Service,
        /// What the source wants of its users.
        advice: Option<String>,
    },
    /// Credentials would travel unprotected.
    #[error("Credentials for {service} would go to `{origin}` without TLS")]
    Unprotected {
        /// Which service.
        service: Service,
        /// Where to.
        origin: String,
    },
    /// A list of files is malformed.
    #[error("List of files at `{address}` is malformed{}: {what}", line.map_or(String::new(), |n| format!(", entry {n}")))]
    Listing {
        /// The address.
        address: String,
        /// Line or entry, from 1.
        line: Option<usize>,
        /// What is wrong.
        what: String,
    },
    /// A model repository's name that is none.
    #[error("Bad repository name `{name}`: expected `ORG/NAME`")]
    RepositoryName {
        /// The name, shortened.
        name: String,
    },
    /// A repository without the file asked for.
    #[error("Repository `{repository}` has no file `{name}`")]
    NoSuchFile {
        /// The file.
        name: String,
        /// The repository.
        repository: String,
    },
    /// Not on this machine, and asking is forbidden.
    #[error("{what} is not in `{}`, and HF_HUB_OFFLINE forbids asking", cache.display())]
    Offline {
        /// What is missing.
        what: String,
        /// Where it was looked for.
        cache: PathBuf,
    },
    /// An archive is damaged, or holds what must not be unpacked.
    #[error("Could not unpack `{}`: {what}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A registry file is malformed.
    #[error("Registry `{}` is malformed: {what}", file.display())]
    Registry {
        /// The file, or `(built in)`.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// No dataset of that name.
    #[error("Unknown dataset `{id}`: expected one of {known}")]
    UnknownDataset {
        /// The name asked for.
        id: String,
        /// Names known, sorted.
        known: String,
    },
    /// This dataset cannot be fetched by a program.
    #[error("`{id}` has to be fetched by hand")]
    ByHand {
        /// The dataset.
        id: String,
        /// What to do, step by step.
        steps: String,
    },
    /// Stopped by the user. What has arrived is kept.
    #[error("Cancelled")]
    Cancelled,
}

impl FetchError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSpace { .. } => {
                Some("Free space or choose another folder with `--to`; what has arrived is kept".into())
            }
            Self::UnsafeName { .. } | Self::NameTwice { .. } => Some(
                "The source's list of files is not one to trust; fetch the files by hand".into(),
            ),
            Self::InTheWay { .. } => Some("Move it away, or choose another folder with `--to`".into()),
            Self::InUse { .. } => Some("Wait until the other download ends".into()),
            Self::ExistingDiffers { .. } => {
                Some("Move the file away if the source's version is wanted".into())
            }
            Self::Refused {
                advice, with_login, ..
            } => Some(advice.clone().unwrap_or_else(|| {
                if *with_login {
                    "Check user name and password, and that the account may use this dataset".into()
                } else {
                    "This address wants credentials".into()
                }
            })),
            Self::WebPage { advice, .. } => Some(advice.clone().unwrap_or_else(|| {
                "It may be a login page: open the address in a browser and see what it wants".into()
            })),
            Self::NotFound { .. } => Some(
                "The source may have a newer version: see its web page, and give the new identifier in a registry file of your own"
                    .into(),
            ),
            Self::Busy { .. } | Self::WaitTooLong { .. } | Self::Slow { .. } | Self::BrokeOff { .. } => {
                Some("Run the command again later; it continues where it stopped".into())
            }
            Self::Connection { .. } => Some(
                "Check the network; proxies are read from HTTPS_PROXY, HTTP_PROXY and NO_PROXY".into(),
            ),
            Self::Tls { .. } => Some(
                "Certificates are those of the operating system; SSL_CERT_FILE names others, such as a hospital proxy's"
                    .into(),
            ),
            Self::ChecksumDiffers { .. } | Self::SizeDiffers { .. } => Some(
                "The source's list and its file disagree; try later, and tell the source if it stays so"
                    .into(),
            ),
            Self::GaveUp { last, .. } => last.hint(),
            Self::CredentialFile { .. } => Some("See docs/downloads.md for the form of the file".into()),
            Self::NoCredentials { service, advice } => {
                let how = service.how();
                Some(match advice {
                    Some(a) => format!("{how}\n{a}"),
                    None => how.into(),
                })
            }
            Self::Unprotected { .. } => Some("Use an https address in the registry".into()),
            Self::Archive { .. } => Some(
                "Unpack it with another program, after a look at what is in it (`unzip -l`)".into(),
            ),
            Self::Offline { .. } => Some("Unset HF_HUB_OFFLINE to fetch it".into()),
            Self::ByHand { steps, .. } => Some(steps.clone()),
            Self::Cancelled => Some("Run the command again to continue".into()),
            _ => None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Connection { .. } | Self::Slow { .. } | Self::BrokeOff { .. }
        )
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Text of others in a message: short, and without control characters.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut short: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
