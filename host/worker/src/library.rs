//! From a path to a loaded library: digest, sealed copy, `dlopen`, contract version.
//!
//! Must not know what the plugin can do.
//!
//! # Between check and load
//! The file is read once: the bytes that are hashed are the bytes that go into a sealed memory file, and that is what `dlopen` gets
//! (as `/proc/self/fd/N`). Nobody can swap or truncate the file in between. Two cases are loaded by their path instead, and checked
//! for having been touched afterwards: libraries that look for others beside themselves (`$ORIGIN` in their run path: the copy has no
//! folder), and plugins loaded into the host's own process, where a debugger wants the file.

use crate::failure::{failure, load};
use focus_plugin_abi::contract::{CONTRACT_SYMBOL, ContractFn, SUPPORTED};
use focus_plugin_abi::v1;
use focus_wire::{FailureKind, WireError};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const CHUNK: usize = 1 << 20;

/// `sha256:hex` of a file's content.
pub fn digest_file(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    read_chunks(&mut File::open(path)?, |chunk| {
        hash.update(chunk);
        Ok(())
    })?;
    Ok(text(hash))
}

fn text(hash: Sha256) -> String {
    let mut out = String::from("sha256:");
    for byte in hash.finalize() {
        use std::fmt::Write as _;
        write!(out, "{byte:02x}").expect("a String takes everything");
    }
    out
}

fn read_chunks(file: &mut File, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => each(&buffer[..n])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// How the library is to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// From a sealed copy, unless it needs its folder.
    Copy,
    /// From the file itself.
    File,
}

/// A library whose content has the expected digest.
#[derive(Debug)]
pub(crate) struct Verified {
    path: PathBuf,
    digest: String,
    /// `None`: load by path.
    copy: Option<OwnedFd>,
    before: [i64; 6],
    /// For the run record.
    pub(crate) words: String,
}

/// Read the file, compare digests, keep a sealed copy.
pub(crate) fn verify(path: &Path, expected: &str, from: From) -> Result<Verified, WireError> {
    let shown = path.display();
    let unreadable = |error: &io::Error| {
        load(
            format!("Cannot read plugin `{shown}`: {error}"),
            "Check the path given with `--plugin`",
        )
    };
    let mut file = File::open(path).map_err(|e| unreadable(&e))?;
    let before = identity(&file).map_err(|e| unreadable(&e))?;
    let mut copy = if from == From::Copy {
        memory_file().ok()
    } else {
        None
    };
    let mut hash = Sha256::new();
    let mut origin = OriginSearch::default();
    read_chunks(&mut file, |chunk| {
        hash.update(chunk);
        origin.push(chunk);
        // No memory for a copy: the path will do.
        if copy
            .as_mut()
            .is_some_and(|copy| copy.write_all(chunk).is_err())
        {
            copy = None;
        }
        Ok(())
    })
    .map_err(|e| unreadable(&e))?;
    let digest = text(hash);
    if digest != expected {
        return Err(load(
            format!(
                "Digest of `{shown}` differs from its sidecar: expected `{expected}`, found `{digest}`"
            ),
            "The file was changed, cut, or rebuilt after it was sealed. If you trust it, seal it again: `focus-host plugin seal`",
        ));
    }
    let mut words = "library: loaded from a sealed copy of the checked bytes";
    if origin.found {
        copy = None;
        words = "library: loaded by path, since it looks for others in its own folder (`$ORIGIN`)";
    } else if copy.is_none() {
        words = "library: loaded by path";
    }
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let copy = copy
        .map(OwnedFd::from)
        .filter(|copy| fcntl_add_seals(copy, seals).is_ok());
    Ok(Verified {
        path: path.to_owned(),
        digest,
        copy,
        before,
        words: words.to_owned(),
    })
}

fn memory_file() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know EXEC; later ones may be set to refuse executable pages without it.
    let fd = memfd_create(c"focus-plugin", flags | MemfdFlags::EXEC)
        .or_else(|_| memfd_create(c"focus-plugin", flags))?;
    Ok(fd.into())
}

/// Device, inode, size, times: what changes when a file is touched.
fn identity(file: &File) -> io::Result<[i64; 6]> {
    let m = file.metadata()?;
    Ok([
        m.dev() as i64,
        m.ino() as i64,
        m.size() as i64,
        m.mtime(),
        m.mtime_nsec(),
        m.ctime_nsec(),
    ])
}

/// Looks for `$ORIGIN` in a stream. Anywhere in the file counts: a needless load by path is harmless.
#[derive(Default)]
struct OriginSearch {
    tail: Vec<u8>,
    found: bool,
}

impl OriginSearch {
    fn push(&mut self, chunk: &[u8]) {
        const WORDS: [&[u8]; 2] = [b"$ORIGIN", b"${ORIGIN}"];
        const LONGEST: usize = 9;
        if self.found {
            return;
        }
        self.tail
            .extend_from_slice(&chunk[..chunk.len().min(LONGEST - 1)]);
        let has = |bytes: &[u8]| {
            // `$` is rare: look for it first.
            bytes.iter().enumerate().any(|(at, &byte)| {
                byte == b'$' && WORDS.iter().any(|word| bytes[at..].starts_with(word))
            })
        };
        self.found = has(&self.tail) || has(chunk);
        let keep = chunk.len().min(LONGEST - 1);
        if chunk.len() >= LONGEST - 1 {
            self.tail.clear();
            self.tail.extend_from_slice(&chunk[chunk.len() - keep..]);
        }
    }
}

/// A loaded plugin of some contract version. One adapter per version.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plugin {
    V1(v1::Plugin),
}

impl Plugin {
    pub(crate) fn contract(self) -> u32 {
        match self {
            Self::V1(_) => 1,
        }
    }
}

/// What was loaded from where, for the life of the process.
static LOADED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

impl Verified {
    /// Run the library's initialisers, read its contract version, take its root module.
    pub(crate) fn load(self) -> Result<Plugin, WireError> {
        let shown = self.path.display().to_string();
        let by_path = self.copy.is_none();
        let from = match self.copy {
            // Never closed: backtraces read symbols through it, and glibc knows the library by this name for good.
            Some(copy) => PathBuf::from(format!("/proc/self/fd/{}", copy.into_raw_fd())),
            None => self.path.clone(),
        };
        if by_path {
            let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
            match loaded.iter().find(|(path, _)| *path == from) {
                Some((_, digest)) if *digest != self.digest => {
                    return Err(load(
                        format!(
                            "Plugin `{shown}` was loaded before with another content: expected `{digest}`, found `{}`",
                            self.digest
                        ),
                        "Start a fresh process: a library cannot be unloaded",
                    ));
                }
                Some(_) => {}
                None => loaded.push((from.clone(), self.digest.clone())),
            }
        }
        // SAFETY: the user asked for this native code to run; its digest is the one that was sealed. Its initialisers run here.
        let library = unsafe { Library::open(Some(&from), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            load(
                format!("Cannot load plugin `{shown}`: {}", cause(&error)),
                "Is it built for this machine, and are the libraries it needs on the sidecar's `library_paths`?",
            )
        })?;
        if by_path {
            let after = File::open(&self.path).and_then(|file| identity(&file));
            if !matches!(after, Ok(after) if after == self.before) {
                return Err(load(
                    format!("Plugin `{shown}` was changed while it was being loaded"),
                    "Do not rebuild a plugin during a run",
                ));
            }
        }
        let contract = contract(&library, &shown)?;
        // Never unloaded: statics, threads and vtables of it may be referred to from anywhere.
        std::mem::forget(library);
        let module = match contract {
            // SAFETY: the library said that it speaks version 1; running its code was granted above.
            1 => unsafe { v1::Plugin::load(&from) }.map(Plugin::V1),
            other => {
                let supported: Vec<_> = SUPPORTED.iter().map(u32::to_string).collect();
                return Err(load(
                    format!(
                        "Plugin `{shown}` speaks contract {other}: expected {}",
                        supported.join(" or ")
                    ),
                    "Rebuild the plugin with the focus-plugin-sdk of this host, or take the host it was built for",
                ));
            }
        };
        module.map_err(|error| WireError {
            hint: error.hint(),
            ..failure(FailureKind::Load, format!("Plugin `{shown}`: {error}"))
        })
    }
}

/// libloading's own message leaves the loader's reason to its source.
fn cause(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn contract(library: &Library, shown: &str) -> Result<u32, WireError> {
    // SAFETY: the symbol's type is fixed by the contract for all versions, and a symbol of that name means nothing else.
    let symbol = unsafe { library.get::<ContractFn>(CONTRACT_SYMBOL) }.map_err(|_| {
        load(
            format!("Not a focus plugin: `{shown}` has no symbol `{CONTRACT_SYMBOL}`"),
            "A plugin exports it with focus-plugin-sdk's `export_plugin!`, from a crate of type `cdylib`",
        )
    })?;
    // SAFETY: by contract it takes nothing and touches nothing.
    Ok(unsafe { symbol() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_sha256() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "abc").expect("writes");
        let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest_file(&path).expect("reads"), known);
        let verified = verify(&path, known, From::Copy).expect("right");
        assert!(verified.copy.is_some() && verified.words.contains("sealed copy"));
        let error = verify(&path, "sha256:00", From::Copy).expect_err("wrong");
        assert_eq!(error.kind, FailureKind::Load);
        assert!(
            error
                .message
                .contains("expected `sha256:00`, found `sha256:ba78"),
            "{error}"
        );
    }

    #[test]
    fn the_copy_cannot_be_written() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "abc").expect("writes");
        let verified =
            verify(&path, &digest_file(&path).expect("reads"), From::Copy).expect("right");
        std::fs::write(&path, "xyz").expect("writes");
        let mut copy = File::from(verified.copy.expect("there"));
        assert!(copy.write_all(b"no").is_err());
        let mut text = String::new();
        io::Seek::rewind(&mut copy).expect("seeks");
        copy.read_to_string(&mut text).expect("reads");
        assert_eq!(text, "abc");
    }

    #[test]
    fn origin_is_found_across_any_cut() {
        for word in ["$ORIGIN", "${ORIGIN}"] {
            let bytes = format!("some$text{word}/lib");
            for size in 1..bytes.len() {
                let mut search = OriginSearch::default();
                bytes
                    .as_bytes()
                    .chunks(size)
                    .for_each(|chunk| search.push(chunk));
                assert!(search.found, "{word} in chunks of {size}");
            }
        }
        let mut search = OriginSearch::default();
        search.push(b"$ORIGI");
        search.push(b"$O{RIGIN}");
        assert!(!search.found);
    }

    #[test]
    fn a_file_that_is_not_there_says_so() {
        let error =
            verify(Path::new("/nowhere/libx.so"), "sha256:", From::Copy).expect_err("absent");
        assert!(error.message.contains("/nowhere/libx.so") && error.hint.is_some());
    }
}
