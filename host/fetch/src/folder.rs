//! The target folder: names that stay inside it. Every step goes through an open folder, and no step follows a link, so nothing that changes meanwhile leads out.

use crate::error::{FetchError, Result, quoted};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags},
    io::Errno,
};
use std::{
    fs::File,
    path::{Path, PathBuf},
};

/// Ending of a file that is not whole yet.
pub(crate) const PART: &str = ".part";
/// Ending of the note beside it.
pub(crate) const NOTE: &str = ".part.json";

const DEEPEST: usize = 32;
// Names may have 255 bytes; the longest ending of ours is `.part.json.tmp` after a dot.
const LONGEST: usize = 240;

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Open the target folder, made if need be. It may itself be reached through links: the user named it.
    pub fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(FetchError::io("create", path))?;
        let fd = rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|e| FetchError::io("open", path)(e.into()))?;
        Ok(Self {
            fd,
            path: path.into(),
        })
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder that holds `name`, made if need be, and the last part of the name.
    pub(crate) fn parent<'n>(&self, name: &'n str) -> Result<(Self, &'n str)> {
        check_name(name)?;
        let mut here = Self {
            fd: self
                .fd
                .try_clone()
                .map_err(FetchError::io("open", &self.path))?,
            path: self.path.clone(),
        };
        let mut parts = name.split('/').peekable();
        loop {
            let part = parts.next().expect("checked: a name has a part");
            if parts.peek().is_none() {
                return Ok((here, part));
            }
            here = here.enter(part)?;
        }
    }

    fn enter(&self, part: &str) -> Result<Self> {
        let path = self.at(part);
        match rustix::fs::mkdirat(&self.fd, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(FetchError::io("create", path)(e.into())),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, part, flags, Mode::empty()) {
            Ok(fd) => Ok(Self { fd, path }),
            // Linux says NOTDIR for a link when both flags are given.
            Err(Errno::NOTDIR | Errno::LOOP) => Err(self.in_the_way(part, "a folder")),
            Err(e) => Err(FetchError::io("open", path)(e.into())),
        }
    }

    /// Open a plain file for reading; `None` if there is none.
    pub(crate) fn read(&self, part: &str) -> Result<Option<File>> {
        // Not to hang on a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, part, flags, Mode::empty()) {
            Ok(fd) => self.plain(fd.into(), part).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NXIO) => Err(self.in_the_way(part, "a plain file")),
            Err(e) => Err(FetchError::io("open", self.at(part))(e.into())),
        }
    }

    /// Open a plain file for reading and writing, made if need be, never cut short.
    pub(crate) fn write(&self, part: &str) -> Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, part, flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => self.plain(fd.into(), part),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => {
                Err(self.in_the_way(part, "a plain file"))
            }
            Err(e) => Err(FetchError::io("create", self.at(part))(e.into())),
        }
    }

    fn plain(&self, file: File, part: &str) -> Result<File> {
        let meta = file
            .metadata()
            .map_err(FetchError::io("read", self.at(part)))?;
        if meta.is_file() {
            Ok(file)
        } else {
            Err(self.in_the_way(part, "a plain file"))
        }
    }

    fn in_the_way(&self, part: &str, expected: &'static str) -> FetchError {
        let kind = rustix::fs::statat(&self.fd, part, AtFlags::SYMLINK_NOFOLLOW)
            .map(|s| FileType::from_raw_mode(s.st_mode));
        FetchError::InTheWay {
            path: self.at(part),
            expected,
            found: match kind {
                Ok(FileType::Symlink) => "a symbolic link",
                Ok(FileType::Directory) => "a folder",
                Ok(FileType::RegularFile) => "a plain file",
                _ => "a special file",
            },
        }
    }

    /// Whether `file` is still the one under this name.
    pub(crate) fn is_at(&self, file: &File, part: &str) -> bool {
        let (Ok(open), Ok(named)) = (
            rustix::fs::fstat(file),
            rustix::fs::statat(&self.fd, part, AtFlags::SYMLINK_NOFOLLOW),
        ) else {
            return false;
        };
        (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino)
    }

    /// Rename within the folder; on disk when this returns. Fails if `to` exists.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        let failed = |e: Errno| FetchError::io("rename to", self.at(to))(e.into());
        match rustix::fs::renameat_with(
            &self.fd,
            from,
            &self.fd,
            to,
            rustix::fs::RenameFlags::NOREPLACE,
        ) {
            // File systems without NOREPLACE (NFS): the name was free a moment ago.
            Err(Errno::INVAL | Errno::NOSYS) => {
                if rustix::fs::statat(&self.fd, to, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    return Err(failed(Errno::EXIST));
                }
                rustix::fs::renameat(&self.fd, from, &self.fd, to).map_err(failed)?;
            }
            other => other.map_err(failed)?,
        }
        self.sync()
    }

    /// Replace a small file, whole or not at all.
    pub(crate) fn replace(&self, part: &str, bytes: &[u8]) -> Result<()> {
        use std::io::Write as _;
        let temporary = format!(".{}.tmp", part.trim_start_matches('.'));
        self.remove(&temporary)?;
        let mut file = self.write(&temporary)?;
        file.write_all(bytes)
            .map_err(FetchError::io("write", self.at(part)))?;
        rustix::fs::renameat(&self.fd, &temporary, &self.fd, part)
            .map_err(|e| FetchError::io("rename to", self.at(part))(e.into()))
    }

    /// Remove a file (a link itself, not what it names); none is as good.
    pub(crate) fn remove(&self, part: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, part, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(FetchError::io("remove", self.at(part))(e.into())),
        }
    }

    fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.fd).map_err(|e| FetchError::io("flush", &self.path)(e.into()))
    }
}

/// A relative name whose every part is a plain one.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let rule = if name.is_empty() {
        Some("must not be empty")
    } else if name.starts_with('/') {
        Some("must be relative")
    } else if name.split('/').count() > DEEPEST {
        Some("must have at most 32 parts")
    } else {
        name.split('/').find_map(part_rule)
    };
    match rule {
        None => Ok(()),
        Some(rule) => Err(FetchError::UnsafeName {
            name: quoted(name),
            rule,
        }),
    }
}

fn part_rule(part: &str) -> Option<&'static str> {
    if part.is_empty() || part == "." || part == ".." {
        Some("must have no empty part, `.` or `..`")
    } else if part.contains('\\') || part.chars().any(char::is_control) {
        Some("must have no backslash and no control character")
    } else if part.len() > LONGEST {
        Some("must have parts of at most 240 bytes")
    } else if part.ends_with(PART) || part.ends_with(NOTE) {
        Some("must not end like an unfinished download")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_that_climb_or_confuse_are_refused() {
        for bad in [
            "",
            "/etc/passwd",
            "..",
            "a/../b",
            "a//b",
            "./a",
            "a/.",
            "a\\b",
            "a\0b",
            "a\nb",
            "x.part",
            "x.part.json",
            "a.part/b",
        ] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(check_name(&"a/".repeat(40)).is_err());
        assert!(check_name(&"a".repeat(241)).is_err());
        for good in [
            "a",
            "B. Disease Grading/1. Images/IDRiD_001.jpg",
            "uuid..JPG",
            "...",
            "é",
        ] {
            assert!(check_name(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn links_are_not_followed() {
        let outside = tempfile::tempdir().expect("folder");
        let inside = tempfile::tempdir().expect("folder");
        symlink(outside.path(), inside.path().join("sub")).expect("links");
        std::fs::write(outside.path().join("f"), b"secret").expect("writes");
        symlink(outside.path().join("f"), inside.path().join("f")).expect("links");
        let folder = Folder::open(inside.path()).expect("opens");
        let error = folder.parent("sub/x").expect_err("a link");
        assert!(error.to_string().contains("a symbolic link"), "{error}");
        assert!(matches!(folder.read("f"), Err(FetchError::InTheWay { .. })));
        assert!(matches!(
            folder.write("f"),
            Err(FetchError::InTheWay { .. })
        ));
        std::fs::create_dir(inside.path().join("d")).expect("makes");
        assert!(matches!(
            folder.read("d"),
            Err(FetchError::InTheWay {
                found: "a folder",
                ..
            })
        ));
    }

    #[test]
    fn a_rename_replaces_nothing() {
        let dir = tempfile::tempdir().expect("folder");
        std::fs::write(dir.path().join("a"), b"new").expect("writes");
        std::fs::write(dir.path().join("b"), b"old").expect("writes");
        let folder = Folder::open(dir.path()).expect("opens");
        assert!(folder.rename("a", "b").is_err());
        assert_eq!(std::fs::read(dir.path().join("b")).expect("reads"), b"old");
        folder.rename("a", "c").expect("renames");
    }

    proptest! {
        #[test]
        fn an_accepted_name_stays_inside(name in "[a./\\\\\u{0}]{0,12}") {
            if check_name(&name).is_ok() {
                let inside = Path::new(&name).components().all(|c| matches!(c, std::path::Component::Normal(_)));
                prop_assert!(inside, "{name:?}");
            }
        }
    }
}
