//! Pictures from paths: one read of each file, capped, hashed, then decoded or found in the cache. Knows no datasets.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::{
    ContentHash, DecodeNotes, ImageError, Limits, PixelCache, PrepareSpec, RgbImage, workspace,
};

/// A file's picture, upright, at full size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Upright RGB.
    pub image: RgbImage,
    /// Name of the file's content.
    pub content_hash: ContentHash,
    /// What was done to it.
    pub notes: DecodeNotes,
}

/// A file's picture as a card asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// RGB, rows top to bottom: `spec.width * spec.height` times the bytes of `spec.pixels`.
    pub pixels: Vec<u8>,
    /// Name of the file's content.
    pub content_hash: ContentHash,
    /// What was done to it when it was decoded.
    pub notes: DecodeNotes,
    /// Whether the pixels came from the cache.
    pub from_cache: bool,
}

/// Decodes a file to upright RGB at full size: for cards marked `self`.
pub fn decode_file(path: impl AsRef<Path>, limits: &Limits) -> Result<Decoded, ImageError> {
    let path = path.as_ref();
    let bytes = read_file(path, limits)?;
    let (image, mut notes) = workspace::decode(&bytes, limits)?;
    notes.remarks.extend(notes.format.remark_on_name(path));
    Ok(Decoded {
        image,
        content_hash: ContentHash::of(&bytes),
        notes,
    })
}

/// Prepares a file's picture as `spec` says, from the cache where it holds it. The file is read once.
pub fn prepare_file(
    path: impl AsRef<Path>,
    spec: &PrepareSpec,
    limits: &Limits,
    cache: Option<&PixelCache>,
) -> Result<Prepared, ImageError> {
    let path = path.as_ref();
    let bytes = read_file(path, limits)?;
    let mut prepared = prepare_bytes(&bytes, ContentHash::of(&bytes), spec, limits, cache)?;
    // After the cache, which knows contents and no names.
    let remark = prepared.notes.format.remark_on_name(path);
    prepared.notes.remarks.extend(remark);
    Ok(prepared)
}

/// The same for a file that is in memory already; `content_hash` must be that of `bytes`.
pub fn prepare_bytes(
    bytes: &[u8],
    content_hash: ContentHash,
    spec: &PrepareSpec,
    limits: &Limits,
    cache: Option<&PixelCache>,
) -> Result<Prepared, ImageError> {
    if let Some((image, notes)) = cache.and_then(|cache| cache.get(&content_hash, spec)) {
        // The entry may have been made under wider limits.
        let (width, height) = (
            u64::from(notes.stored_width),
            u64::from(notes.stored_height),
        );
        if width * height > limits.max_pixels {
            return Err(ImageError::TooLarge {
                width,
                height,
                limit: limits.max_pixels,
            });
        }
        return Ok(Prepared {
            pixels: image.pixels,
            content_hash,
            notes,
            from_cache: true,
        });
    }
    let (image, notes) = workspace::prepare(bytes, spec, limits)?;
    if let Some(cache) = cache
        && let Err(error) = cache.put(&content_hash, spec, &image, &notes)
    {
        tracing::warn!(%error, "Cannot keep an entry of the pixel cache; the run goes on without it");
    }
    Ok(Prepared {
        pixels: image.pixels,
        content_hash,
        notes,
        from_cache: false,
    })
}

/// A file's bytes, at most `limits.max_file_bytes` of them and at least one.
pub fn read_file(path: impl AsRef<Path>, limits: &Limits) -> Result<Vec<u8>, ImageError> {
    let path = path.as_ref();
    let fault = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => ImageError::Missing { path: path.into() },
        ErrorKind::IsADirectory => ImageError::IsADirectory { path: path.into() },
        _ => ImageError::Unreadable {
            path: path.into(),
            reason: error.to_string(),
        },
    };
    // Asked before opening: opening a pipe would wait for its writer.
    let metadata = fs::metadata(path).map_err(fault)?;
    if metadata.is_dir() {
        return Err(ImageError::IsADirectory { path: path.into() });
    }
    if !metadata.is_file() {
        return Err(ImageError::Unreadable {
            path: path.into(),
            reason: "not a regular file".into(),
        });
    }
    let limit = limits.max_file_bytes;
    if metadata.len() > limit {
        return Err(ImageError::FileTooLarge {
            bytes: metadata.len(),
            limit,
        });
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    // One byte more than allowed, to notice a file that grew meanwhile.
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(fault)?;
    if bytes.len() as u64 > limit {
        return Err(ImageError::FileTooLarge {
            bytes: bytes.len() as u64,
            limit,
        });
    }
    if bytes.is_empty() {
        return Err(ImageError::Empty);
    }
    Ok(bytes)
}
