//! Where a sample's pixels come from: a trait, so that evaluation runs on drawn pixels in tests, and the real thing over files.

use focus_images::{
    Decode, DecodeNotes, FieldSteps, ImageError, ImageFormat, Limits, PixelCache, PrepareSpec,
    prepare_bytes, read_file,
};
use focus_plugin_abi::v1::message::{Geometry, PixelMode, PreprocessingCard, ResizeFilter};
use focus_store::ContentHash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An image that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFailure {
    /// Kind, a short stable word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// An image file as read.
#[derive(Debug)]
pub struct FileBytes {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Their hash.
    pub hash: ContentHash,
    /// What is odd about its name, for people: the content alone does not tell.
    pub note: Option<String>,
}

/// An image as the model gets it.
#[derive(Debug)]
pub struct Pixels {
    /// RGB of the card's size and number type; f32 as little-endian bytes.
    pub rgb: Arc<[u8]>,
    /// What is odd about the picture, for people: a function of the file's bytes and the preparation alone.
    pub note: Option<String>,
}

/// Reads and prepares images; used from several threads.
pub trait PixelSource: Sync {
    /// A sample's file.
    fn read(&self, sample: u32) -> Result<FileBytes, ImageFailure>;
    /// What `read` gave, decoded and resized.
    fn prepare(&self, bytes: &[u8], hash: ContentHash) -> Result<Pixels, ImageFailure>;
}

/// Files of a dataset, prepared as a card says.
#[derive(Debug)]
pub struct FilePixels {
    /// Path of each record's file, by sample index.
    pub files: Vec<PathBuf>,
    /// How to prepare.
    pub spec: PrepareSpec,
    /// Caps on what is read and decoded.
    pub limits: Limits,
    /// Prepared pixels of earlier runs.
    pub cache: Option<PixelCache>,
}

impl PixelSource for FilePixels {
    fn read(&self, sample: u32) -> Result<FileBytes, ImageFailure> {
        read(&self.files[sample as usize], &self.limits)
    }

    fn prepare(&self, bytes: &[u8], hash: ContentHash) -> Result<Pixels, ImageFailure> {
        Self::prepare_as(bytes, hash, &self.spec, &self.limits, self.cache.as_ref())
    }
}

impl FilePixels {
    /// A file's bytes decoded and resized.
    pub(crate) fn prepare_as(
        bytes: &[u8],
        hash: ContentHash,
        spec: &PrepareSpec,
        limits: &Limits,
        cache: Option<&PixelCache>,
    ) -> Result<Pixels, ImageFailure> {
        let hash = focus_images::ContentHash(hash.0);
        let prepared = prepare_bytes(bytes, hash, spec, limits, cache).map_err(|e| failure(&e))?;
        Ok(Pixels {
            note: picture_note(&prepared.notes),
            rgb: prepared.pixels.into(),
        })
    }
}

/// A photograph's file.
pub(crate) fn read(file: &Path, limits: &Limits) -> Result<FileBytes, ImageFailure> {
    let bytes = read_file(file, limits).map_err(|e| failure(&e))?;
    Ok(FileBytes {
        hash: ContentHash::of(&bytes),
        note: name_note(file, &bytes),
        bytes,
    })
}

/// How a note on a file's name begins, so that it can be told from one on its picture.
const NAME_NOTE: &str = "the name ends in ";
/// Between the two, where there are both.
pub(crate) const NOTE_BORDER: &str = " | ";

/// Both notes as one message.
pub(crate) fn joined(name: Option<&str>, picture: Option<&str>) -> Option<String> {
    match (name, picture) {
        (Some(name), Some(picture)) => Some(format!("{name}{NOTE_BORDER}{picture}")),
        (one, other) => one.or(other).map(str::to_owned),
    }
}

/// The picture's part of a joined message: what may be cached by content.
pub(crate) fn picture_part(message: &str) -> Option<&str> {
    if message.starts_with(NAME_NOTE) {
        message.split_once(NOTE_BORDER).map(|(_, picture)| picture)
    } else {
        Some(message)
    }
}

/// The single notes in a joined message.
pub fn notes_of(message: &str) -> impl Iterator<Item = &str> {
    message.split(NOTE_BORDER).flat_map(|part| part.split("; "))
}

/// A remark where the extension says another format than the content.
fn name_note(file: &Path, bytes: &[u8]) -> Option<String> {
    ImageFormat::of(bytes)?.remark_on_name(file)
}

/// A remark on what was done to the picture beyond decoding and resizing.
pub(crate) fn picture_note(notes: &DecodeNotes) -> Option<String> {
    let mut parts = Vec::new();
    if notes.translucent_pixels > 0 {
        parts.push("transparent pixels put on black".to_owned());
    }
    if notes.bits > 8 {
        parts.push(format!("{} bits a sample brought to 8", notes.bits));
    }
    if let Some(reason) = notes
        .field
        .as_ref()
        .and_then(|field| field.fallback.as_ref())
    {
        parts.push(format!(
            "no circular field found ({reason}), so it was used whole"
        ));
    }
    parts.extend(notes.remarks.iter().cloned());
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The message names the fault, not the path: answers hold no path of this machine, and the record has the dataset's own.
pub(crate) fn failure(error: &ImageError) -> ImageFailure {
    let message = match error {
        ImageError::Missing { .. } => "The file is not there".into(),
        ImageError::IsADirectory { .. } => "A folder stands in place of the file".into(),
        ImageError::Unreadable { reason, .. } => format!("The file cannot be read: {reason}"),
        other => other.to_string(),
    };
    ImageFailure {
        reason: error.kind().into(),
        message,
    }
}

/// What to prepare for a card, with what the user asks for beside it; `None` for cards whose plugin resizes for itself.
pub fn spec_of(card: &PreprocessingCard, steps: FieldSteps, decode: Decode) -> Option<PrepareSpec> {
    use focus_images::{Geometry as G, PixelType as P, ResizeFilter as F};
    let pixels = match card.mode {
        PixelMode::Resized => P::U8,
        PixelMode::Float => P::F32,
        PixelMode::Own => return None,
    };
    let geometry = match card.geometry {
        Geometry::Squash => G::Squash,
        Geometry::ShortestEdgeCrop { edge } => G::ShortestEdgeCrop { edge },
        Geometry::Fit => G::Fit,
        Geometry::FitCorner => G::FitCorner,
    };
    let filter = match card.filter {
        ResizeFilter::Box => F::Box,
        ResizeFilter::Bilinear => F::Bilinear,
        ResizeFilter::Bicubic => F::Bicubic,
        ResizeFilter::Lanczos => F::Lanczos,
    };
    let spec = PrepareSpec::new(card.width, card.height, geometry, filter);
    Some(
        spec.with_steps(steps)
            .with_decode(decode)
            .with_pixels(pixels),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_of_either_number_type_are_prepared_and_tiling_ones_are_not() {
        let mut card = focus_models::fake::opened(1, 1, 512, 512).preprocessing;
        let canonical = |card: &PreprocessingCard| {
            spec_of(card, FieldSteps::NONE, Decode::Exact).map(|spec| spec.canonical())
        };
        assert_eq!(
            canonical(&card).as_deref(),
            Some("focus-pixels 1; rgb8 512x512; squash; bicubic")
        );
        card.mode = PixelMode::Float;
        card.geometry = Geometry::FitCorner;
        assert_eq!(
            canonical(&card).as_deref(),
            Some("focus-pixels 1; rgbf32 1 512x512; fit-corner; bicubic")
        );
        card.mode = PixelMode::Own;
        assert_eq!(canonical(&card), None);
    }

    #[test]
    fn a_name_that_lies_is_noted_and_told_from_the_picture() {
        let png = b"\x89PNG\r\n\x1a\n....";
        let name = name_note(Path::new("eye.jpg"), png).expect("it lies");
        assert!(name.starts_with(NAME_NOTE), "{name}");
        assert_eq!(name_note(Path::new("eye.PNG"), png), None);
        assert_eq!(name_note(Path::new("eye.png"), b"no picture"), None);

        let both = joined(Some(&name), Some("one; two")).expect("both");
        assert_eq!(picture_part(&both), Some("one; two"));
        assert_eq!(notes_of(&both).collect::<Vec<_>>(), [&name, "one", "two"]);
        assert_eq!(picture_part(&name), None);
        assert_eq!(picture_part("one"), Some("one"));
        assert_eq!(joined(None, None), None);
    }
}
