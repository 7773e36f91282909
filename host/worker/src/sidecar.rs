//! `libx.toml` beside `libx.so`: what a plugin file is and wants, read before any code of it runs.
//!
//! Must not load anything. The author writes a [`Manifest`]; sealing adds the contract and the digest of the built file.

use crate::library::digest_file;
use focus_plugin_abi::contract::{CONTRACT_VERSION, SUPPORTED};
use focus_plugin_abi::v1::message::PluginDescriptor;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Longest sidecar or manifest read, bytes.
pub const MAX_BYTES: u64 = 64 << 10;

/// The sidecar file. Unknown fields are errors: a misspelt permission must not pass unseen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// Contract version that the file was built for.
    pub contract: u32,
    /// `sha256:hex` of the dylib.
    pub digest: String,
    /// The plugin's name, as in its descriptor.
    pub name: String,
    /// The plugin's version, SemVer.
    pub version: String,
    /// Kinds of device this build can use: `cpu`, `cuda`.
    #[serde(default = "cpu")]
    pub devices: Vec<String>,
    /// Folders with libraries the dylib needs (libtorch, CUDA); relative ones start at the sidecar's folder.
    #[serde(default)]
    pub library_paths: Vec<String>,
    /// What it wants; the user must grant it too.
    #[serde(default)]
    pub permissions: Permissions,
}

/// What a plugin asks for beyond computing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// Network hosts it wants to reach.
    #[serde(default)]
    pub network: Vec<String>,
    /// Names of environment variables it wants to read, such as a service's key. Given only to a plugin that gets the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
}

/// What the author of a plugin writes: the sidecar without what only the built file can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The plugin's name, as in its descriptor.
    pub name: String,
    /// The plugin's version, SemVer.
    pub version: String,
    /// Kinds of device this build can use: `cpu`, `cuda`.
    #[serde(default = "cpu")]
    pub devices: Vec<String>,
    /// Folders with libraries the dylib needs.
    #[serde(default)]
    pub library_paths: Vec<String>,
    /// What it wants.
    #[serde(default)]
    pub permissions: Permissions,
}

fn cpu() -> Vec<String> {
    vec!["cpu".to_owned()]
}

/// A sidecar could not be read, written or believed.
#[derive(Debug, thiserror::Error)]
pub enum SidecarError {
    /// There is none.
    #[error("Plugin `{library}` has no sidecar: expected `{sidecar}`")]
    Missing {
        /// The dylib.
        library: PathBuf,
        /// Where the sidecar should be.
        sidecar: PathBuf,
    },
    /// A file could not be read or written.
    #[error("Cannot access `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The text is not a sidecar or manifest.
    #[error("Cannot understand `{path}`: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The plugin is for another contract.
    #[error("Plugin `{library}` was built for contract {found}: expected {expected}")]
    Contract {
        /// The dylib.
        library: PathBuf,
        /// What the host supports.
        expected: String,
        /// What the sidecar says.
        found: u32,
    },
    /// The dylib is not the one that was sealed.
    #[error(
        "Digest of `{library}` differs from its sidecar: expected `{expected}`, found `{found}`"
    )]
    Digest {
        /// The dylib.
        library: PathBuf,
        /// What the sidecar says.
        expected: String,
        /// What the file has.
        found: String,
    },
}

impl SidecarError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { library, .. } => Some(format!("If you trust it, write one with `focus-host plugin seal {}`", library.display())),
            Self::Digest { .. } => {
                Some("The file was changed, cut, or rebuilt after it was sealed. If you trust it, seal it again: `focus-host plugin seal`".to_owned())
            }
            Self::Contract { .. } => Some("Rebuild the plugin with the focus-plugin-sdk of this host".to_owned()),
            Self::Io { .. } | Self::Malformed { .. } => None,
        }
    }
}

impl Sidecar {
    /// Where the sidecar of a dylib lies: `libx.so` -> `libx.toml`.
    pub fn path_for(library: &Path) -> PathBuf {
        library.with_extension("toml")
    }

    /// Read the sidecar of a dylib and check that this host can talk to it. Does not read the dylib; see [`Self::verify`].
    pub fn read_for(library: &Path) -> Result<Self, SidecarError> {
        let path = Self::path_for(library);
        let text = match read_capped(&path) {
            Err(SidecarError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(SidecarError::Missing {
                    library: library.to_owned(),
                    sidecar: path,
                });
            }
            other => other?,
        };
        let sidecar: Self =
            toml::from_str(&text).map_err(|error| malformed(&path, &error.to_string()))?;
        if !is_digest(&sidecar.digest) {
            return Err(malformed(
                &path,
                &format!(
                    "`digest` must be `sha256:` and 64 lower-case hex digits, found `{}`",
                    sidecar.digest
                ),
            ));
        }
        if sidecar.name.is_empty() || sidecar.devices.is_empty() {
            return Err(malformed(&path, "`name` and `devices` must not be empty"));
        }
        sidecar.permissions.check(&path)?;
        if !SUPPORTED.contains(&sidecar.contract) {
            let expected: Vec<_> = SUPPORTED.iter().map(u32::to_string).collect();
            return Err(SidecarError::Contract {
                library: library.to_owned(),
                expected: expected.join(" or "),
                found: sidecar.contract,
            });
        }
        Ok(sidecar)
    }

    /// Whether the dylib is the one that was sealed. (The worker checks again what it loads.)
    pub fn verify(&self, library: &Path) -> Result<(), SidecarError> {
        let found = digest_file(library).map_err(|source| SidecarError::Io {
            path: library.to_owned(),
            source,
        })?;
        if found == self.digest {
            return Ok(());
        }
        Err(SidecarError::Digest {
            library: library.to_owned(),
            expected: self.digest.clone(),
            found,
        })
    }

    /// Seal a dylib: write its sidecar from the author's manifest. Replaces an older one in one step.
    pub fn write_for(library: &Path, manifest: &Manifest) -> Result<Self, SidecarError> {
        let digest = digest_file(library).map_err(|source| SidecarError::Io {
            path: library.to_owned(),
            source,
        })?;
        let Manifest {
            name,
            version,
            devices,
            library_paths,
            permissions,
        } = manifest.clone();
        let sidecar = Self {
            contract: CONTRACT_VERSION,
            digest,
            name,
            version,
            devices,
            library_paths,
            permissions,
        };
        let path = Self::path_for(library);
        let text =
            toml::to_string(&sidecar).map_err(|error| malformed(&path, &error.to_string()))?;
        write_whole(&path, &text).map_err(|source| SidecarError::Io { path, source })?;
        Ok(sidecar)
    }

    /// The library folders as paths, for `LD_LIBRARY_PATH` of the worker.
    pub fn library_folders(&self, library: &Path) -> Vec<PathBuf> {
        let base = library.parent().unwrap_or(Path::new("."));
        self.library_paths
            .iter()
            .map(|folder| base.join(folder))
            .collect()
    }

    /// Network hosts that both the plugin wants and the user grants; empty: no network at all.
    pub fn granted_network(&self, allowed: &[String]) -> Vec<String> {
        self.permissions
            .network
            .iter()
            .filter(|host| allowed.contains(host))
            .cloned()
            .collect()
    }

    /// Names of the environment variables that the plugin gets: those it wants, if any of the network is granted to it; none otherwise.
    pub fn granted_environment(&self, allowed: &[String]) -> Vec<String> {
        if self.granted_network(allowed).is_empty() {
            return Vec::new();
        }
        self.permissions.environment.clone()
    }
}

impl Manifest {
    /// What a plugin says of itself, for sealing without a manifest of the author's: no library paths, no permissions.
    /// (To hear it the library must be loaded: only for one whose code the user trusts.)
    pub fn from_descriptor(descriptor: &PluginDescriptor) -> Self {
        let devices: BTreeSet<_> = descriptor
            .models
            .iter()
            .flat_map(|model| &model.devices)
            .cloned()
            .collect();
        Self {
            name: descriptor.name.clone(),
            version: descriptor.version.clone(),
            devices: devices.into_iter().collect(),
            library_paths: Vec::new(),
            permissions: Permissions::default(),
        }
    }

    /// Read an author's manifest.
    pub fn read(path: &Path) -> Result<Self, SidecarError> {
        let manifest: Self = toml::from_str(&read_capped(path)?)
            .map_err(|error| malformed(path, &error.to_string()))?;
        manifest.permissions.check(path)?;
        Ok(manifest)
    }
}

impl Permissions {
    /// Names of variables must be plain, and none that steers the dynamic linker.
    fn check(&self, path: &Path) -> Result<(), SidecarError> {
        let plain = |name: &&String| {
            !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.starts_with("LD_")
        };
        match self.environment.iter().find(|name| !plain(name)) {
            None => Ok(()),
            Some(name) => Err(malformed(
                path,
                &format!(
                    "`permissions.environment` must name variables of letters, digits and `_` that do not start with `LD_`, found `{name}`"
                ),
            )),
        }
    }
}

fn malformed(path: &Path, reason: &str) -> SidecarError {
    SidecarError::Malformed {
        path: path.to_owned(),
        reason: reason.trim_end().to_owned(),
    }
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn read_capped(path: &Path) -> Result<String, SidecarError> {
    let io = |source| SidecarError::Io {
        path: path.to_owned(),
        source,
    };
    // Asked before opening: opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(malformed(path, "expected a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .map_err(io)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(malformed(
            path,
            &format!("too long: expected at most {MAX_BYTES} bytes"),
        ));
    }
    String::from_utf8(bytes).map_err(|_| malformed(path, "not UTF-8"))
}

fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn manifest() -> Manifest {
        Manifest::read(&written("name = \"x\"\nversion = \"1.0.0\"\nlibrary_paths = [\"torch\", \"/abs\"]\npermissions.network = [\"a.org\"]").1).expect("good")
    }

    fn written(text: &str) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("libx.toml");
        std::fs::write(&path, text).expect("writes");
        (folder, path)
    }

    fn library() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("libx.so");
        std::fs::write(&path, "not really").expect("writes");
        (folder, path)
    }

    fn read_text(text: &str) -> Result<Sidecar, SidecarError> {
        let (_folder, path) = written(text);
        Sidecar::read_for(&path.with_extension("so"))
    }

    #[test]
    fn what_is_sealed_reads_back_and_verifies() {
        let (_folder, library) = library();
        let sealed = Sidecar::write_for(&library, &manifest()).expect("seals");
        let read = Sidecar::read_for(&library).expect("reads");
        assert_eq!(read, sealed);
        assert_eq!(read.devices, ["cpu"]);
        read.verify(&library).expect("unchanged");
        assert_eq!(
            read.library_folders(&library),
            [library.with_file_name("torch"), PathBuf::from("/abs")]
        );
        assert_eq!(
            read.granted_network(&["b.org".into(), "a.org".into()]),
            ["a.org"]
        );
        std::fs::write(&library, "changed").expect("writes");
        let error = read.verify(&library).expect_err("changed");
        assert!(
            matches!(&error, SidecarError::Digest { .. }) && error.hint().is_some(),
            "{error}"
        );
    }

    #[test]
    fn variables_come_with_the_network_or_not_at_all() {
        let (_folder, library) = library();
        let text = "name = \"x\"\nversion = \"1\"\n[permissions]\nnetwork = [\"a.org\"]\nenvironment = [\"X_KEY\"]";
        let manifest = Manifest::read(&written(text).1).expect("good");
        let sealed = Sidecar::write_for(&library, &manifest).expect("seals");
        assert_eq!(sealed, Sidecar::read_for(&library).expect("reads"));
        assert_eq!(sealed.granted_environment(&["a.org".into()]), ["X_KEY"]);
        assert!(sealed.granted_environment(&["b.org".into()]).is_empty());
        assert!(sealed.granted_environment(&[]).is_empty());
        let bad = text.replace("X_KEY", "9X");
        assert!(Manifest::read(&written(&bad).1).is_err());
    }

    #[test]
    fn a_missing_sidecar_comes_with_advice() {
        let error = Sidecar::read_for(&library().1).expect_err("none");
        assert!(matches!(error, SidecarError::Missing { .. }));
        assert!(error.hint().expect("there").contains("plugin seal"));
    }

    #[test]
    fn senseless_sidecars_are_refused() {
        let digest = format!("digest = \"sha256:{}\"", "0".repeat(64));
        let good = format!("contract = 1\n{digest}\nname = \"x\"\nversion = \"1\"");
        let cases = [
            (format!("{good}\npermision = 1"), "unknown field"),
            (
                format!("{good}\n[permissions]\nnetwrk = []"),
                "unknown field",
            ),
            (good.replace("sha256:0", "sha256:Z"), "64 lower-case"),
            (good.replace("sha256:", "md5:"), "64 lower-case"),
            (
                format!("{good}\n[permissions]\nenvironment = [\"LD_PRELOAD\"]"),
                "found `LD_PRELOAD`",
            ),
            (
                format!("{good}\n[permissions]\nenvironment = [\"A=B\"]"),
                "found `A=B`",
            ),
            (
                good.replace("name = \"x\"", "name = \"\""),
                "must not be empty",
            ),
            (
                good.replace("contract = 1", "contract = 2"),
                "contract 2: expected 1",
            ),
            ("\u{0}".to_owned(), "Cannot understand"),
            (
                format!("{good}\n#{}", "x".repeat(MAX_BYTES as usize)),
                "too long",
            ),
        ];
        read_text(&good).expect("good");
        for (text, word) in cases {
            let error = read_text(&text).expect_err(word).to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}
