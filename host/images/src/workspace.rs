//! Decoding and preparing with what a thread keeps: the JPEG library's instance, pixel buffers, coefficient tables. Knows no paths.

use std::cell::RefCell;
use std::fmt;

use focus_resize::Resizer;

use crate::geometry::Source;
use crate::jpeg::Layout;
use crate::orientation::Orientation;
use crate::{
    DecodeNotes, ImageError, ImageFormat, Limits, PrepareSpec, RgbImage, format, geometry, jpeg,
    portable,
};

/// Buffers larger than this are given back after use: one huge picture must not hold its memory for the rest of the run.
const KEPT_BYTES: usize = 192 << 20;

/// What one thread keeps between pictures. A fresh 12-megapixel buffer costs as much as resizing does, in page faults.
#[derive(Default)]
pub struct Workspace {
    jpeg: Option<turbojpeg::Decompressor>,
    raw: Vec<u8>,
    stored: Vec<u8>,
    upright: Vec<u8>,
    part: Vec<u8>,
    resizer: Resizer,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Workspace")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Workspace {
    /// An empty one; it grows with the pictures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes a file's bytes to upright RGB.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<(RgbImage, DecodeNotes), ImageError> {
        let (size, notes, _) = self.decode_upright(bytes, limits, false)?;
        let pixels = std::mem::take(&mut self.stored);
        self.trim();
        Ok((
            RgbImage {
                width: size.0,
                height: size.1,
                pixels,
            },
            notes,
        ))
    }

    /// Decodes a file's bytes and brings them to the size that `spec` asks for.
    pub fn prepare(
        &mut self,
        bytes: &[u8],
        spec: &PrepareSpec,
        limits: &Limits,
    ) -> Result<(RgbImage, DecodeNotes), ImageError> {
        let planes_will_do = self.resizer.prefers_planes();
        let (size, notes, layout) = self.decode_upright(bytes, limits, planes_will_do)?;
        let source = match layout {
            Layout::Rgb => Source::Rgb(&self.stored),
            Layout::Planes(chroma) => Source::Planes(jpeg::planes(&self.stored, size, chroma)),
        };
        let pixels = geometry::apply(spec, source, size, &mut self.resizer, &mut self.part)?;
        self.trim();
        Ok((
            RgbImage {
                width: spec.width,
                height: spec.height,
                pixels,
            },
            notes,
        ))
    }

    /// Upright pixels in `self.stored`, of the returned width and height: RGB, or with `planes_will_do` perhaps planes.
    fn decode_upright(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        planes_will_do: bool,
    ) -> Result<((u32, u32), DecodeNotes, Layout), ImageError> {
        let (notes, orientation, layout) = match format::sniff(bytes)? {
            ImageFormat::Jpeg => jpeg::decode(
                &mut self.jpeg,
                bytes,
                limits,
                &mut self.stored,
                planes_will_do,
            )?,
            ImageFormat::Png => {
                let (notes, orientation) =
                    portable::decode(bytes, limits, &mut self.raw, &mut self.stored)?;
                (notes, orientation, Layout::Rgb)
            }
        };
        let mut size = (notes.stored_width, notes.stored_height);
        if orientation != Orientation::UPRIGHT {
            size = orientation.apply(&self.stored, size, &mut self.upright);
            std::mem::swap(&mut self.stored, &mut self.upright);
        }
        Ok((size, notes, layout))
    }

    fn bytes(&self) -> usize {
        [&self.raw, &self.stored, &self.upright, &self.part]
            .iter()
            .map(|buffer| buffer.capacity())
            .sum()
    }

    fn trim(&mut self) {
        if self.bytes() > KEPT_BYTES {
            for buffer in [
                &mut self.raw,
                &mut self.stored,
                &mut self.upright,
                &mut self.part,
            ] {
                *buffer = Vec::new();
            }
        }
    }
}

thread_local! {
    static KEPT: RefCell<Workspace> = RefCell::new(Workspace::new());
}

/// Runs `work` with the calling thread's own workspace.
fn with_kept<T>(work: impl FnOnce(&mut Workspace) -> T) -> T {
    KEPT.with_borrow_mut(work)
}

/// Decodes a file's bytes to upright RGB, with the calling thread's own buffers.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<(RgbImage, DecodeNotes), ImageError> {
    with_kept(|workspace| workspace.decode(bytes, limits))
}

/// Decodes a file's bytes and brings them to the size that `spec` asks for, with the calling thread's own buffers.
pub fn prepare(
    bytes: &[u8],
    spec: &PrepareSpec,
    limits: &Limits,
) -> Result<(RgbImage, DecodeNotes), ImageError> {
    with_kept(|workspace| workspace.prepare(bytes, spec, limits))
}
