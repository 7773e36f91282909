//! Zip archives, unpacked beside themselves: every entry checked before the first is written, each file whole or not at all.

use crate::{
    Context,
    batch::check_names,
    error::{FetchError, Result, quoted},
    folder::{Folder, NOTE, PART},
    part::lock,
    progress::Event,
};
use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};
use zip::{ZipArchive, result::ZipError};

/// Archives smaller than this may hold anything that fits: a ratio means little there.
const RATIO_FROM: u64 = 64 << 20;

/// How an archive was unpacked.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unpacked {
    /// Files written now.
    pub written: usize,
    /// Files that were there already, of the same size and CRC-32.
    pub present: usize,
    /// Bytes written now.
    pub bytes: u64,
    /// Archives among the files, by name below the target folder, for whoever wants them unpacked too.
    pub nested: Vec<String>,
}

struct Entry {
    index: usize,
    name: String,
    size: u64,
    crc: u32,
}

/// Unpack the zip archive `name` of the folder into the part of the folder where it lies. A second run continues where the first one stopped.
pub fn unpack_zip(context: &Context<'_>, folder: &Folder, name: &str) -> Result<Unpacked> {
    let (parent, last) = folder.parent(name)?;
    let path = parent.at(last);
    let file = parent
        .read(last)?
        .ok_or_else(|| FetchError::io("open", &path)(io::ErrorKind::NotFound.into()))?;
    let packed = file
        .metadata()
        .map_err(FetchError::io("read", &path))?
        .len();
    let broken = |e| archive_error(&path, e);
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(broken)?;
    let beside = name.strip_suffix(last).expect("the last part of it");
    let entries = list(context, &mut archive, &path, packed, beside)?;
    let mut unpacked = Unpacked::default();
    let left: u64 = entries.iter().map(|e| e.size).sum();
    let mut first = true;
    for entry in &entries {
        context.cancel.check()?;
        let (parent, last) = folder.parent(&entry.name)?;
        if let Some(file) = parent.read(last)? {
            same(&parent, last, file, entry)?;
            unpacked.present += 1;
        } else {
            if first {
                space(context, folder, left)?;
                first = false;
            }
            write(context, &mut archive, &path, &parent, last, entry)?;
            unpacked.written += 1;
            unpacked.bytes += entry.size;
            context.progress.event(&Event::Unpacked {
                name: &entry.name,
                bytes: entry.size,
            });
        }
        if is_zip(last) {
            unpacked.nested.push(entry.name.clone());
        }
    }
    Ok(unpacked)
}

/// How deep archives within archives are unpacked.
const DEPTH: usize = 4;

/// Unpack every zip archive among the files, and those inside them, each into the part of the folder where it lies. Other files are left
/// alone. What was unpacked before is found and kept.
///
/// # Errors
/// As [`unpack_zip`]; archives nested deeper than four.
pub fn unpack_all<'a>(
    context: &Context<'_>,
    folder: &Folder,
    files: impl Iterator<Item = &'a str>,
) -> Result<Unpacked> {
    let mut waiting: Vec<(String, usize)> = files
        .filter(|name| is_zip(name))
        .map(|name| (name.to_owned(), 1))
        .collect();
    let mut all = Unpacked::default();
    while let Some((name, depth)) = waiting.pop() {
        if depth > DEPTH {
            let (parent, last) = folder.parent(&name)?;
            return Err(FetchError::Archive {
                path: parent.at(last),
                what: format!("it lies within more than {DEPTH} other archives"),
            });
        }
        let one = unpack_zip(context, folder, &name)?;
        all.written += one.written;
        all.present += one.present;
        all.bytes += one.bytes;
        waiting.extend(one.nested.iter().map(|inner| (inner.clone(), depth + 1)));
        all.nested.extend(one.nested);
    }
    Ok(all)
}

fn is_zip(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("zip"))
}

/// Every file of the archive, all of them checked.
fn list(
    context: &Context<'_>,
    archive: &mut ZipArchive<io::BufReader<File>>,
    path: &Path,
    packed: u64,
    beside: &str,
) -> Result<Vec<Entry>> {
    let limits = context.client.limits();
    let too_much = |what, limit, found| FetchError::TooLarge {
        address: path.display().to_string(),
        what,
        limit,
        found,
    };
    let refused = |name: &str, what: &str| FetchError::Archive {
        path: path.into(),
        what: format!("entry `{}` {what}", quoted(name)),
    };
    if archive.len() > limits.listed_files {
        return Err(too_much(
            "entries",
            limits.listed_files as u64,
            archive.len() as u64,
        ));
    }
    // The library would show the last of two entries of one name, other programs the first.
    if archive.has_duplicate_names() {
        return Err(FetchError::Archive {
            path: path.into(),
            what: "two entries have one name".into(),
        });
    }
    let mut entries = Vec::new();
    let mut total: u64 = 0;
    for index in 0..archive.len() {
        let file = archive
            .by_index_raw(index)
            .map_err(|e| archive_error(path, e))?;
        let entry = file.entry();
        let inner = entry.name().map_err(|e| archive_error(path, e))?;
        if entry.encrypted() {
            return Err(refused(&inner, "is encrypted"));
        }
        if entry.is_symlink() {
            return Err(refused(&inner, "is a symbolic link"));
        }
        let name = format!("{beside}{}", inner.trim_end_matches('/'));
        if entry.is_dir() {
            crate::folder::check_name(&name)?;
            continue;
        }
        total = total.saturating_add(entry.size());
        entries.push(Entry {
            index,
            name,
            size: entry.size(),
            crc: entry.crc32(),
        });
    }
    if total > limits.archive_bytes {
        return Err(too_much("unpacked bytes", limits.archive_bytes, total));
    }
    let most = packed.saturating_mul(limits.archive_ratio).max(RATIO_FROM);
    if total > most {
        return Err(too_much("unpacked bytes for its size", most, total));
    }
    check_names(entries.iter().map(|e| e.name.as_str()))?;
    Ok(entries)
}

fn write(
    context: &Context<'_>,
    archive: &mut ZipArchive<io::BufReader<File>>,
    path: &Path,
    parent: &Folder,
    last: &str,
    entry: &Entry,
) -> Result<()> {
    let part = format!("{last}{PART}");
    let failed = || FetchError::io("write", parent.at(&part));
    let mut to = lock(parent, last)?;
    to.set_len(0).map_err(failed())?;
    parent.remove(&format!("{last}{NOTE}"))?;
    let mut from = archive
        .by_index(entry.index)
        .map_err(|e| archive_error(path, e))?;
    let mut buffer = vec![0; 1 << 18];
    let mut written = 0;
    loop {
        context.cancel.check()?;
        // The library checks the CRC-32 when it comes to the end.
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(archive_error(path, ZipError::Io(e))),
        };
        written += n as u64;
        if written > entry.size {
            break;
        }
        to.write_all(&buffer[..n]).map_err(failed())?;
    }
    if written != entry.size {
        to.set_len(0).map_err(failed())?;
        return Err(FetchError::SizeDiffers {
            name: entry.name.clone(),
            expected: entry.size,
            found: written,
        });
    }
    to.sync_all().map_err(failed())?;
    parent.rename(&part, last)
}

/// A file of an entry's name is there: is it the entry's?
fn same(parent: &Folder, last: &str, mut file: File, entry: &Entry) -> Result<()> {
    let path = || parent.at(last);
    let size = file
        .metadata()
        .map_err(FetchError::io("read", path()))?
        .len();
    let differs = |expected, found| FetchError::ExistingDiffers {
        path: path(),
        expected,
        found,
    };
    if size != entry.size {
        return Err(differs(
            format!("{} bytes", entry.size),
            format!("{size} bytes"),
        ));
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => hasher.update(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(FetchError::io("read", path())(e)),
        }
    }
    let found = hasher.finalize();
    if found == entry.crc {
        return Ok(());
    }
    let text = |crc: u32| format!("crc32:{crc:08x}");
    Err(differs(text(entry.crc), text(found)))
}

fn space(context: &Context<'_>, folder: &Folder, left: u64) -> Result<()> {
    let free = context
        .machine
        .free_bytes(folder.fd())
        .map_err(FetchError::io("measure the free space of", folder.path()))?;
    let needed = left.saturating_add(context.client.limits().reserve_bytes);
    if free < needed {
        return Err(FetchError::NoSpace {
            path: folder.path().into(),
            needed,
            free,
        });
    }
    Ok(())
}

fn archive_error(path: &Path, error: ZipError) -> FetchError {
    FetchError::Archive {
        path: path.into(),
        what: quoted(&error.to_string()),
    }
}
