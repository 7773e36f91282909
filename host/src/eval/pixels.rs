//! Where a sample's pixels come from: a trait, so that evaluation runs on drawn pixels in tests, and the real thing over files.

use focus_images::{ImageError, Limits, PixelCache, PrepareSpec, prepare_bytes, read_file};
use focus_plugin_abi::v1::message::{Geometry, PixelMode, PreprocessingCard, ResizeFilter};
use focus_store::ContentHash;
use std::path::PathBuf;
use std::sync::Arc;

/// An image that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFailure {
    /// Kind, a short stable word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Reads and prepares images; used from several threads.
pub trait PixelSource: Sync {
    /// The file's bytes and their hash.
    fn read(&self, sample: u32) -> Result<(Vec<u8>, ContentHash), ImageFailure>;
    /// What `read` gave, decoded and resized: u8 RGB of the card's size.
    fn prepare(&self, bytes: &[u8], hash: ContentHash) -> Result<Arc<[u8]>, ImageFailure>;
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
    fn read(&self, sample: u32) -> Result<(Vec<u8>, ContentHash), ImageFailure> {
        let bytes =
            read_file(&self.files[sample as usize], &self.limits).map_err(|e| failure(&e))?;
        let hash = ContentHash::of(&bytes);
        Ok((bytes, hash))
    }

    fn prepare(&self, bytes: &[u8], hash: ContentHash) -> Result<Arc<[u8]>, ImageFailure> {
        let hash = focus_images::ContentHash(hash.0);
        let prepared = prepare_bytes(bytes, hash, &self.spec, &self.limits, self.cache.as_ref())
            .map_err(|e| failure(&e))?;
        Ok(prepared.pixels.into())
    }
}

/// The message names the fault, not the path: answers hold no path of this machine, and the record has the dataset's own.
fn failure(error: &ImageError) -> ImageFailure {
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

/// What to prepare for a card; `None` for cards whose plugin resizes for itself.
pub fn spec_of(card: &PreprocessingCard) -> Option<PrepareSpec> {
    use focus_images::{Geometry as G, ResizeFilter as F};
    (card.mode == PixelMode::Resized).then_some(PrepareSpec {
        width: card.width,
        height: card.height,
        geometry: match card.geometry {
            Geometry::Squash => G::Squash,
            Geometry::ShortestEdgeCrop { edge } => G::ShortestEdgeCrop { edge },
            Geometry::Fit => G::Fit,
        },
        filter: match card.filter {
            ResizeFilter::Box => F::Box,
            ResizeFilter::Bilinear => F::Bilinear,
            ResizeFilter::Bicubic => F::Bicubic,
            ResizeFilter::Lanczos => F::Lanczos,
        },
    })
}
