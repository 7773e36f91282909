//! Decoding and preparing with what a thread keeps: the JPEG library's instance, pixel buffers, coefficient tables. Knows no paths.

use std::cell::RefCell;
use std::fmt;

use focus_resize::Resizer;

use crate::geometry::Source;
use crate::jpeg::{Detail, Layout};
use crate::orientation::Orientation;
use crate::raster::Raster;
use crate::{
    Decode, DecodeNotes, FieldStep, ImageError, ImageFormat, Limits, PixelType, PrepareSpec,
    PreparedImage, RgbImage, bmp, field, format, geometry, gif, jpeg, pnm, portable, tiff, webp,
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
        let (size, notes, _) = self.decode_upright(bytes, limits, Detail::Full)?;
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

    /// Decodes a file's bytes and brings them to the size and number type that `spec` asks for.
    pub fn prepare(
        &mut self,
        bytes: &[u8],
        spec: &PrepareSpec,
        limits: &Limits,
    ) -> Result<(PreparedImage, DecodeNotes), ImageError> {
        let (size, notes, layout) = self.decode_for(bytes, spec, limits)?;
        let source = match layout {
            Layout::Rgb => Source::Rgb(&self.stored),
            Layout::Planes(chroma) => Source::Planes(jpeg::planes(&self.stored, size, chroma)),
        };
        let pixels = geometry::apply(spec, source, size, &mut self.resizer, &mut self.part)?;
        self.trim();
        Ok((
            PreparedImage {
                width: spec.width,
                height: spec.height,
                kind: spec.pixels,
                pixels,
            },
            notes,
        ))
    }

    /// Upright pixels in `self.stored` with the field-of-view steps done, ready for the geometry.
    fn decode_for(
        &mut self,
        bytes: &[u8],
        spec: &PrepareSpec,
        limits: &Limits,
    ) -> Result<((u32, u32), DecodeNotes, Layout), ImageError> {
        let steps = spec.steps;
        // The steps need RGB, and so does the floating-point resize.
        let planes =
            steps.is_empty() && spec.pixels == PixelType::U8 && self.resizer.prefers_planes();
        let whole = |size: (u32, u32)| geometry::eighths(spec, field::size_after(steps, size));
        let detail = match spec.decode {
            Decode::Exact if planes => Detail::Planes,
            Decode::Exact => Detail::Full,
            Decode::Fast => Detail::Eighths {
                wanted: &whole,
                planes,
            },
        };
        let (mut size, mut notes, layout) = self.decode_upright(bytes, limits, detail)?;
        if steps.is_empty() {
            return Ok((size, notes, layout));
        }
        let look = |pixels: &[u8], size| {
            steps
                .need_field()
                .then(|| field::find(pixels, size))
                .transpose()
        };
        let mut circle = look(&self.stored, size);
        if let (Some(eighths), Ok(Some(found))) = (notes.eighths, &circle)
            && steps.has(FieldStep::Crop)
        {
            // What is kept must still be twice the target: at a larger scale if need be, which is known only now.
            let part = found.bounds(size);
            let stored = |side: u32| side.saturating_mul(8) / u32::from(eighths);
            let kept = (stored(part.width), stored(part.height));
            let wanted = geometry::eighths(spec, field::size_after(steps, kept));
            if wanted > eighths {
                let again = Detail::Eighths {
                    wanted: &|_| wanted,
                    planes,
                };
                (size, notes, _) = self.decode_upright(bytes, limits, again)?;
                circle = look(&self.stored, size);
            }
        }
        let (size, found) = field::apply(steps, circle, &mut self.stored, size);
        notes.field = Some(found);
        Ok((size, notes, Layout::Rgb))
    }

    /// Upright pixels in `self.stored`, of the returned width and height: RGB, or with [`Detail::Planes`] perhaps planes.
    fn decode_upright(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        detail: Detail<'_>,
    ) -> Result<((u32, u32), DecodeNotes, Layout), ImageError> {
        let format = format::sniff(bytes)?;
        let mut layout = Layout::Rgb;
        let (notes, orientation, mut size) = match format {
            ImageFormat::Jpeg => {
                let room = (&mut self.raw, &mut self.stored);
                let made = jpeg::decode(&mut self.jpeg, bytes, limits, room, detail)?;
                layout = made.layout;
                (made.notes, made.orientation, made.size)
            }
            ImageFormat::Png => {
                let (notes, orientation) =
                    portable::decode(bytes, limits, &mut self.raw, &mut self.stored)?;
                let size = (notes.stored_width, notes.stored_height);
                (notes, orientation, size)
            }
            _ => {
                let (notes, orientation) = decode_raster(bytes, format, limits, &mut self.stored)?;
                let size = (notes.stored_width, notes.stored_height);
                (notes, orientation, size)
            }
        };
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

/// The picture of a format without loss or of WebP, as stored.
pub(crate) fn raster(
    bytes: &[u8],
    format: ImageFormat,
    limits: &Limits,
    remarks: &mut Vec<String>,
) -> Result<(Raster, Orientation), ImageError> {
    let upright = |raster| (raster, Orientation::UPRIGHT);
    match format {
        ImageFormat::Tiff => tiff::decode(bytes, limits, remarks),
        ImageFormat::Webp => webp::decode(bytes, limits, remarks),
        ImageFormat::Bmp => bmp::decode(bytes, limits).map(upright),
        ImageFormat::Gif => gif::decode(bytes, limits).map(upright),
        ImageFormat::Pnm => pnm::decode(bytes, limits).map(upright),
        ImageFormat::Png => portable::stored(bytes, limits),
        ImageFormat::Jpeg => Err(ImageError::Unsupported {
            format,
            what: "stored samples of a lossy picture".into(),
        }),
    }
}

fn decode_raster(
    bytes: &[u8],
    format: ImageFormat,
    limits: &Limits,
    pixels: &mut Vec<u8>,
) -> Result<(DecodeNotes, Orientation), ImageError> {
    let mut remarks = Vec::new();
    let (raster, orientation) = raster(bytes, format, limits, &mut remarks)?;
    let transparency = raster.to_rgb(format, pixels)?;
    raster.remark_on_range(&mut remarks);
    let notes = DecodeNotes {
        format,
        stored_width: raster.width,
        stored_height: raster.height,
        orientation: orientation.value(),
        mode: raster.color.mode(),
        bits: raster.bits,
        alpha_composited: transparency.present,
        translucent_pixels: transparency.pixels,
        eighths: None,
        field: None,
        remarks,
    };
    Ok((notes, orientation))
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

/// Decodes a file's bytes and brings them to the size and number type that `spec` asks for, with the calling thread's own buffers.
pub fn prepare(
    bytes: &[u8],
    spec: &PrepareSpec,
    limits: &Limits,
) -> Result<(PreparedImage, DecodeNotes), ImageError> {
    with_kept(|workspace| workspace.prepare(bytes, spec, limits))
}
