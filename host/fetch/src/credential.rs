//! Secrets: where they come from, and that nobody sees them. They are read from the environment, netrc and `kaggle.json`, and go to one origin only.

use crate::{
    address::Origin,
    error::{FetchError, Result},
    netrc,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{
    ffi::OsString,
    fmt,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Largest file with credentials, in bytes.
const LARGEST: u64 = 1 << 20;

/// A text that `Debug` does not show and that has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hide a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A file's text without white space around it; `None` if there is no such file, or nothing in it.
    pub(crate) fn from_file(path: &Path) -> Result<Option<Self>> {
        let text = read_secret(path)?;
        Ok(text
            .map(|text| Self::new(text.reveal().trim()))
            .filter(|text| !text.reveal().is_empty()))
    }

    /// The text: to be sent, never to be shown.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// A service that files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// physionet.org.
    PhysioNet,
    /// zenodo.org.
    Zenodo,
    /// figshare.com.
    Figshare,
    /// kaggle.com.
    Kaggle,
    /// A Hugging Face hub; a token, never user name and password.
    HuggingFace,
    /// Any other address; credentials from netrc only.
    Web,
}

impl Service {
    /// Variables that hold user name and password, and the only host (within this computer aside) that may see them.
    fn variables(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::PhysioNet => Some(("PHYSIONET_USERNAME", "PHYSIONET_PASSWORD", "physionet.org")),
            Self::Kaggle => Some(("KAGGLE_USERNAME", "KAGGLE_KEY", "www.kaggle.com")),
            Self::Zenodo | Self::Figshare | Self::HuggingFace | Self::Web => None,
        }
    }

    /// How to give it credentials.
    pub(crate) fn how(self) -> &'static str {
        match self {
            Self::PhysioNet => {
                "Set PHYSIONET_USERNAME and PHYSIONET_PASSWORD, or add `machine physionet.org login NAME password WORD` to ~/.netrc (chmod 600)"
            }
            Self::Kaggle => {
                "Create an API token in your Kaggle account settings and save it as ~/.kaggle/kaggle.json (chmod 600), or set KAGGLE_USERNAME and KAGGLE_KEY"
            }
            Self::HuggingFace => "Make a token in your account's settings and set HF_TOKEN",
            Self::Zenodo | Self::Figshare | Self::Web => {
                "Add `machine HOST login NAME password WORD` to ~/.netrc (chmod 600)"
            }
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PhysioNet => "PhysioNet",
            Self::Zenodo => "Zenodo",
            Self::Figshare => "figshare",
            Self::Kaggle => "Kaggle",
            Self::HuggingFace => "the Hugging Face hub",
            Self::Web => "this address",
        })
    }
}

/// User name and password, or a token, for one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    origin: Origin,
    proof: Proof,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Proof {
    Password { user: Secret, password: Secret },
    Token(Secret),
}

impl Login {
    /// For `origin`, which must be reached over TLS or lie within this computer.
    pub fn new(service: Service, origin: Origin, user: Secret, password: Secret) -> Result<Self> {
        Self::with(service, origin, Proof::Password { user, password })
    }

    /// A hub's token, under the same rule. It must be plain text, as in an HTTP header.
    pub fn bearer(origin: Origin, token: Secret) -> Result<Self> {
        if !token.reveal().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(FetchError::CredentialFile {
                path: "HF_TOKEN".into(),
                line: None,
                rule: "a token must be letters, digits and signs of ASCII",
            });
        }
        Self::with(Service::HuggingFace, origin, Proof::Token(token))
    }

    fn with(service: Service, origin: Origin, proof: Proof) -> Result<Self> {
        if !origin.is_private() {
            return Err(FetchError::Unprotected {
                service,
                origin: origin.to_string(),
            });
        }
        Ok(Self { origin, proof })
    }

    /// The only place it may be sent to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Value of the `Authorization` header.
    pub(crate) fn header(&self) -> String {
        match &self.proof {
            Proof::Password { user, password } => {
                let pair = format!("{}:{}", user.reveal(), password.reveal());
                format!("Basic {}", STANDARD.encode(pair))
            }
            Proof::Token(token) => format!("Bearer {}", token.reveal()),
        }
    }
}

type Variables = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// Finds credentials. Looks only when asked.
pub struct Keyring {
    variable: Box<Variables>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

impl Keyring {
    /// Reads the process's environment.
    pub fn from_environment() -> Self {
        Self::new(|name| std::env::var_os(name))
    }

    /// Reads an environment of the caller's making.
    pub fn new(variable: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        Self {
            variable: Box::new(variable),
        }
    }

    /// Credentials of a service for an origin: from its variables, then `kaggle.json`, then netrc. `None`: there are none.
    pub fn login(&self, service: Service, origin: &Origin) -> Result<Option<Login>> {
        let pair = match self.in_variables(service, origin)? {
            None if service == Service::Kaggle && is_home(service, origin) => {
                self.in_kaggle_json()?
            }
            found => found,
        };
        let pair = match pair {
            None => self.in_netrc(origin)?,
            found => found,
        };
        pair.map(|(user, password)| Login::new(service, origin.clone(), user, password))
            .transpose()
    }

    fn in_variables(&self, service: Service, origin: &Origin) -> Result<Option<(Secret, Secret)>> {
        let Some((user, password, _)) = service.variables() else {
            return Ok(None);
        };
        match (self.text(user)?, self.text(password)?) {
            // A registry file of someone else's could name another host: variables name none, so they stay at home.
            (Some(_), Some(_)) if !is_home(service, origin) => {
                tracing::warn!(%service, %origin, "not the service's own host: its variables are not used");
                Ok(None)
            }
            (Some(user), Some(password)) => Ok(Some((user, password))),
            (None, None) => Ok(None),
            (found, _) => Err(FetchError::CredentialFile {
                path: if found.is_some() { password } else { user }.into(),
                line: None,
                rule: "user name and password must both be set, or neither",
            }),
        }
    }

    fn text(&self, name: &str) -> Result<Option<Secret>> {
        let Some(value) = (self.variable)(name).filter(|v| !v.is_empty()) else {
            return Ok(None);
        };
        value
            .into_string()
            .map(|v| Some(Secret::new(v)))
            .map_err(|_| FetchError::CredentialFile {
                path: name.into(),
                line: None,
                rule: "the variable must be UTF-8",
            })
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name)
            .filter(|v| !v.is_empty())
            .map(Into::into)
    }

    fn in_kaggle_json(&self) -> Result<Option<(Secret, Secret)>> {
        #[derive(serde::Deserialize)]
        struct Token {
            username: String,
            key: String,
        }
        let home = self.path("HOME");
        let folders = [
            self.path("KAGGLE_CONFIG_DIR"),
            home.as_ref().map(|h| h.join(".kaggle")),
            home.as_ref().map(|h| h.join(".config/kaggle")),
        ];
        for path in folders.into_iter().flatten().map(|f| f.join("kaggle.json")) {
            let Some(text) = read_secret(&path)? else {
                continue;
            };
            // serde's own message could repeat the text.
            let token: Token =
                serde_json::from_str(text.reveal()).map_err(|e| FetchError::CredentialFile {
                    path: path.clone(),
                    line: Some(e.line()),
                    rule: "must be JSON with the texts `username` and `key`",
                })?;
            return Ok(Some((Secret::new(token.username), Secret::new(token.key))));
        }
        Ok(None)
    }

    fn in_netrc(&self, origin: &Origin) -> Result<Option<(Secret, Secret)>> {
        let named = self.path("NETRC");
        let Some(path) = named.or_else(|| Some(self.path("HOME")?.join(".netrc"))) else {
            return Ok(None);
        };
        let Some(text) = read_secret(&path)? else {
            return Ok(None);
        };
        netrc::find(text.reveal(), origin.host()).map_err(|(line, rule)| {
            FetchError::CredentialFile {
                path,
                line: Some(line),
                rule,
            }
        })
    }
}

fn is_home(service: Service, origin: &Origin) -> bool {
    // Within this computer only the user's own programs listen; tests rely on it.
    service
        .variables()
        .is_some_and(|(.., home)| origin.host() == home || origin.is_loopback())
}

/// A whole small file; `None` if there is none. Warns if others can read it.
fn read_secret(path: &Path) -> Result<Option<Secret>> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(FetchError::io("open", path)(e)),
    };
    let mode = file
        .metadata()
        .map_err(FetchError::io("read", path))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        tracing::warn!(
            path = %path.display(),
            mode = format_args!("{:03o}", mode & 0o777),
            "others may read these credentials: `chmod 600` the file"
        );
    }
    let broken = |rule| FetchError::CredentialFile {
        path: path.into(),
        line: None,
        rule,
    };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(FetchError::io("read", path))?;
    if bytes.len() as u64 > LARGEST {
        return Err(broken("must be at most 1 MiB"));
    }
    String::from_utf8(bytes)
        .map(|text| Some(Secret::new(text)))
        .map_err(|_| broken("must be UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address;

    fn keyring(pairs: &[(&'static str, &str)]) -> Keyring {
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (*k, OsString::from(v))).collect();
        Keyring::new(move |name| {
            pairs
                .iter()
                .find(|(k, _)| *k == name)
                .map(|(_, v)| v.clone())
        })
    }

    fn origin(text: &str) -> Origin {
        Origin::of(&address::parse(text).expect("address")).expect("origin")
    }

    const SET: &[(&str, &str)] = &[
        ("PHYSIONET_USERNAME", "ann"),
        ("PHYSIONET_PASSWORD", "hunter2"),
    ];

    #[test]
    fn debug_shows_no_secret() {
        let login = keyring(SET)
            .login(Service::PhysioNet, &origin("https://physionet.org/x"))
            .expect("reads")
            .expect("found");
        let shown = format!("{login:?} {:?}", keyring(SET));
        assert!(
            !shown.contains("hunter2") && !shown.contains("ann"),
            "{shown}"
        );
        // RFC 7617's scheme: base64 of `ann:hunter2`.
        assert_eq!(login.header(), "Basic YW5uOmh1bnRlcjI=");
    }

    #[test]
    fn variables_go_to_their_own_host_only() {
        for other in ["https://evil.net/", "https://physionet.org.evil.net/"] {
            let found = keyring(SET)
                .login(Service::PhysioNet, &origin(other))
                .expect("reads");
            assert_eq!(found, None, "{other}");
        }
        let error = keyring(SET)
            .login(Service::PhysioNet, &origin("http://physionet.org/"))
            .expect_err("no TLS");
        assert!(matches!(error, FetchError::Unprotected { .. }), "{error}");
        assert!(
            keyring(&SET[..1])
                .login(Service::PhysioNet, &origin("https://physionet.org/"))
                .is_err(),
            "half a login"
        );
    }

    #[test]
    fn files_are_read_and_their_text_is_never_repeated() {
        let home = tempfile::tempdir().expect("folder");
        let folder = home.path().join(".kaggle");
        std::fs::create_dir(&folder).expect("makes");
        let file = folder.join("kaggle.json");
        std::fs::write(&file, r#"{"username":"ann","key":"k3y"}"#).expect("writes");
        let text = home.path().to_str().expect("UTF-8").to_owned();
        let ring = keyring(&[("HOME", &text)]);
        let kaggle = origin("https://www.kaggle.com/");
        let login = ring
            .login(Service::Kaggle, &kaggle)
            .expect("reads")
            .expect("found");
        let pair = (Secret::new("ann"), Secret::new("k3y"));
        let wanted = Login::new(Service::Kaggle, kaggle.clone(), pair.0, pair.1);
        assert_eq!(login, wanted.expect("private"));
        std::fs::write(&file, r#"{"username":"ann","key":hunter2}"#).expect("writes");
        let error = ring.login(Service::Kaggle, &kaggle).expect_err("malformed");
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );

        std::fs::write(
            home.path().join(".netrc"),
            "machine physionet.org login ann password pw\n",
        )
        .expect("writes");
        let physionet = origin("https://physionet.org/");
        assert!(
            ring.login(Service::PhysioNet, &physionet)
                .expect("reads")
                .is_some()
        );
        assert!(
            ring.login(Service::Web, &origin("https://other.org/"))
                .expect("reads")
                .is_none()
        );
    }
}
