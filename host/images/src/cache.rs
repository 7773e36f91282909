//! Prepared pixels on disk, named by what they were made from. Must not decide what is prepared; what goes when there is too much, `room` decides.
//!
//! An entry is one file: a checked header, the decode notes, the pixels. It is written beside its place and renamed into it, so that a reader sees
//! all of it or nothing, whichever process was killed. An entry that does not check is thrown away and made again.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod room;

use room::Room;

use crate::{ContentHash, DecodeNotes, ImageError, PrepareSpec, PreparedImage};

/// First bytes of an entry; the last two are its version.
const MAGIC: [u8; 8] = *b"FOCUSP01";
/// Magic, width, height, length of the notes, content hash, spec key, check.
const HEADER: usize = 8 + 4 + 4 + 4 + 32 + 32 + 32;
/// The check covers everything but itself.
const CHECKED: usize = HEADER - 32;
/// Notes are a few hundred bytes; more means a damaged length.
const MAX_NOTES: usize = 1 << 20;

/// A folder of prepared pixels. Cheap to clone; many threads and processes may share the folder.
#[derive(Debug, Clone)]
pub struct PixelCache {
    folder: PathBuf,
    /// How much there may be; shared by all clones. `None` is any amount.
    room: Option<Arc<Room>>,
}

impl PixelCache {
    /// Opens, or makes, the cache under `folder`. Entries live in a folder of their own within it that only its owner may enter: they are patients'
    /// pictures.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, ImageError> {
        let folder = folder.as_ref().join("pixels");
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        // An older folder may have been made wider; this one is the cache's own, so it may be narrowed.
        let made = made.and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(0o700)));
        made.map_err(|error| ImageError::Cache {
            path: folder.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self { folder, room: None })
    }

    /// The same, holding at most about `bytes`: when more is added, the entries that were not used for longest are removed, whichever process made them.
    /// Every process counts what it adds and looks at the folder each time that is a sixteenth of the limit, so several together may pass it by that much
    /// each for a moment. An entry larger than the limit is not kept, and nothing is removed for it.
    pub fn open_limited(folder: impl AsRef<Path>, bytes: u64) -> Result<Self, ImageError> {
        let mut cache = Self::open(folder)?;
        cache.room = Some(Arc::new(Room::new(&cache.folder, bytes)));
        Ok(cache)
    }

    /// Where the entry for a file's content and a spec lies, whether or not it is there.
    pub fn path_of(&self, content: &ContentHash, spec: &PrepareSpec) -> PathBuf {
        let content = content.to_string();
        self.folder
            .join(&content[..2])
            .join(format!("{content}-{}", &spec.key()[..32]))
    }

    /// The entry, if it is there and whole. A damaged one is removed, with a warning.
    pub fn get(
        &self,
        content: &ContentHash,
        spec: &PrepareSpec,
    ) -> Option<(PreparedImage, DecodeNotes)> {
        let path = self.path_of(content, spec);
        let found = match read_entry(&path, content, spec) {
            Ok(found) => return Some(found),
            Err(fault) => fault,
        };
        match found {
            Fault::Absent => {}
            Fault::Unreadable(error) => {
                tracing::warn!(path = %path.display(), %error, "Cannot read a pixel cache entry; the image is prepared again");
            }
            Fault::Damaged(what) => {
                tracing::warn!(path = %path.display(), what, "Discarding a damaged pixel cache entry; the image is prepared again");
                let _ = fs::remove_file(&path);
            }
        }
        None
    }

    /// Keeps an entry. A failure (a full disk) costs only the next run's time.
    pub fn put(
        &self,
        content: &ContentHash,
        spec: &PrepareSpec,
        image: &PreparedImage,
        notes: &DecodeNotes,
    ) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = self.path_of(content, spec);
        let folder = path.parent().expect("an entry lies in a folder");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let notes = serde_json::to_vec(notes)?;
        let bytes = (HEADER + notes.len() + image.pixels.len()) as u64;
        if self.room.as_ref().is_some_and(|room| !room.takes(bytes)) {
            tracing::debug!("The pixel cache is smaller than an image; it is not kept");
            return Ok(());
        }
        let mut header = Vec::with_capacity(HEADER + notes.len());
        header.extend_from_slice(&MAGIC);
        for number in [image.width, image.height, notes.len() as u32] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&content.0);
        header.extend_from_slice(&spec_digest(spec));
        let check = checksum(&header, &notes, &image.pixels);
        header.extend_from_slice(&check);
        header.extend_from_slice(&notes);

        let name = format!(
            "{}{}-{}",
            room::PART,
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let part = folder.join(name);
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&part)?;
            file.write_all(&header)?;
            file.write_all(&image.pixels)?;
            // To a nanosecond, where the system's own clock for files may stand still for milliseconds.
            room::touch(&file);
            drop(file);
            fs::rename(&part, &path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written?;
        if let Some(room) = &self.room {
            let removed = room.added(&self.folder, bytes)?;
            if removed > 0 {
                tracing::debug!(removed, "Entries of the pixel cache made room for others");
            }
        }
        Ok(())
    }
}

enum Fault {
    Absent,
    Unreadable(io::Error),
    Damaged(&'static str),
}

fn read_entry(
    path: &Path,
    content: &ContentHash,
    spec: &PrepareSpec,
) -> Result<(PreparedImage, DecodeNotes), Fault> {
    let mut file = File::open(path).map_err(|error| {
        if error.kind() == ErrorKind::NotFound {
            Fault::Absent
        } else {
            Fault::Unreadable(error)
        }
    })?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).map_err(short)?;
    let number = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (width, height, notes_length) = (number(8), number(12), number(16) as usize);
    if header[..8] != MAGIC {
        return Err(Fault::Damaged("unknown magic"));
    }
    if header[20..52] != content.0 || header[52..84] != spec_digest(spec) {
        return Err(Fault::Damaged("made from something else"));
    }
    // The sizes decide what is allocated, so they are checked before anything else is read.
    if (width, height) != (spec.width, spec.height) || notes_length > MAX_NOTES {
        return Err(Fault::Damaged("sizes do not fit"));
    }
    let pixel_bytes = width as usize * height as usize * spec.pixels.pixel_bytes();
    let length = file.metadata().map_err(Fault::Unreadable)?.len();
    if length != (HEADER + notes_length + pixel_bytes) as u64 {
        return Err(Fault::Damaged("wrong length"));
    }
    let mut notes = vec![0; notes_length];
    file.read_exact(&mut notes).map_err(short)?;
    let mut pixels = vec![0; pixel_bytes];
    file.read_exact(&mut pixels).map_err(short)?;
    if checksum(&header[..CHECKED], &notes, &pixels) != header[CHECKED..] {
        return Err(Fault::Damaged("checksum does not match"));
    }
    room::touch(&file);
    let notes =
        serde_json::from_slice(&notes).map_err(|_| Fault::Damaged("notes cannot be parsed"))?;
    Ok((
        PreparedImage {
            width,
            height,
            kind: spec.pixels,
            pixels,
        },
        notes,
    ))
}

fn short(error: io::Error) -> Fault {
    if error.kind() == ErrorKind::UnexpectedEof {
        Fault::Damaged("too short")
    } else {
        Fault::Unreadable(error)
    }
}

fn spec_digest(spec: &PrepareSpec) -> [u8; 32] {
    *blake3::hash(spec.canonical().as_bytes()).as_bytes()
}

fn checksum(header: &[u8], notes: &[u8], pixels: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header).update(notes).update(pixels);
    *hasher.finalize().as_bytes()
}
