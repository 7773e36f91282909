//! TIFF: strips and tiles, either byte order, 1 to 16 bits, grey, palette, RGB, ink; uncompressed, LZW, deflate or PackBits. Knows no resizing.
//!
//! Read here over `weezl` and `flate2` because masks need stored indices and grey may have alpha: the `tiff` crate (0.11) refuses palettes and knows
//! no grey with alpha. Of several pages the first is read.
//!
//! | file | owns |
//! |---|---|
//! | `directory` | the tags of a page |
//! | `chunk` | one strip or tile: decompression and prediction |

mod chunk;
mod directory;

use chunk::Coding;
use directory::{Directory, tag};

use crate::orientation::Orientation;
use crate::raster::{Color, Raster, Samples, check_size};
use crate::{ImageError, ImageFormat, Limits};

const FORMAT: ImageFormat = ImageFormat::Tiff;

fn corrupt(detail: impl Into<String>) -> ImageError {
    ImageError::Corrupt {
        format: FORMAT,
        detail: detail.into(),
    }
}

fn cut(detail: impl Into<String>) -> ImageError {
    ImageError::Truncated {
        format: FORMAT,
        detail: detail.into(),
    }
}

fn unsupported(what: impl Into<String>) -> ImageError {
    ImageError::Unsupported {
        format: FORMAT,
        what: what.into(),
    }
}

/// Samples of a pixel that are kept; scientific stacks have hundreds.
const MOST_SAMPLES: u32 = 8;

/// How samples lie in the file.
struct Layout {
    width: usize,
    height: usize,
    bits: usize,
    /// Samples of a pixel.
    samples: usize,
    /// Whether each sample has strips of its own.
    planar: bool,
    /// Size of a strip or tile in pixels.
    chunk: (usize, usize),
    tiled: bool,
}

/// The first page as stored, and its orientation.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    remarks: &mut Vec<String>,
) -> Result<(Raster, Orientation), ImageError> {
    let directory = Directory::first(bytes)?;
    let layout = layout(&directory, limits)?;
    let color = color(&directory, &layout)?;
    let (premultiplied, color) = color;
    if layout.samples > color.channels() {
        remarks.push(format!(
            "{} further samples of each pixel are not used",
            layout.samples - color.channels()
        ));
    }
    let pages = directory.pages()?;
    if pages > 1 {
        remarks.push(format!("{pages} pages; the first is read"));
    }
    let inverted = directory.one(tag::PHOTOMETRIC, 1)? == 0;
    let mut samples = read(bytes, &directory, &layout)?;
    if inverted {
        let most = ((1_u32 << layout.bits) - 1) as u16;
        // Only the grey is stored the other way round, not what comes with it.
        match &mut samples {
            Samples::Bytes(values) => values
                .iter_mut()
                .step_by(layout.samples)
                .for_each(|value| *value = most as u8 - *value),
            Samples::Words(values) => values
                .iter_mut()
                .step_by(layout.samples)
                .for_each(|value| *value = most - *value),
        }
    }
    let raster = Raster {
        width: layout.width as u32,
        height: layout.height as u32,
        color,
        bits: layout.bits as u8,
        stride: layout.samples,
        premultiplied,
        samples,
    };
    let orientation = Orientation::of_value(directory.one(tag::ORIENTATION, 1)?, remarks);
    Ok((raster, orientation))
}

fn layout(directory: &Directory<'_>, limits: &Limits) -> Result<Layout, ImageError> {
    let width = directory.required(tag::WIDTH, "width")?;
    let height = directory.required(tag::HEIGHT, "height")?;
    check_size(width.into(), height.into(), FORMAT, limits)?;
    let samples = directory.one(tag::SAMPLES, 1)?;
    if !(1..=MOST_SAMPLES).contains(&samples) {
        return Err(unsupported(format!("{samples} samples a pixel")));
    }
    let bits = directory.same(tag::BITS, 1, "samples of unequal bits")?;
    if !matches!(bits, 1 | 2 | 4 | 8 | 16) {
        return Err(unsupported(format!("{bits} bits a sample")));
    }
    match directory.same(tag::SAMPLE_FORMAT, 1, "samples of unequal kinds")? {
        1 | 4 => {}
        2 => return Err(unsupported("signed samples")),
        3 => return Err(unsupported("floating-point samples")),
        other => return Err(unsupported(format!("samples of kind {other}"))),
    }
    // Eight bytes a pixel are four samples of 16 bits.
    let area = u64::from(width) * u64::from(height);
    let stored = area * u64::from(samples) * u64::from(bits.div_ceil(8));
    if stored > limits.max_pixels.saturating_mul(8) {
        return Err(ImageError::TooLarge {
            width: width.into(),
            height: height.into(),
            limit: limits.max_pixels / 2,
        });
    }
    let tiled = directory.has(tag::TILE_WIDTH);
    let chunk = if tiled {
        (
            directory.required(tag::TILE_WIDTH, "tile width")?,
            directory.required(tag::TILE_HEIGHT, "tile height")?,
        )
    } else {
        let rows = directory.one(tag::ROWS_PER_STRIP, u32::MAX)?;
        (width, rows.min(height))
    };
    let area = u64::from(chunk.0) * u64::from(chunk.1);
    // Tiles may stand out over the picture, but not turn a small picture into a large allocation.
    if area == 0 || area > (4 * u64::from(width) * u64::from(height)).max(1 << 20) {
        return Err(corrupt(format!(
            "strips or tiles of {} x {} pixels in a picture of {width} x {height}",
            chunk.0, chunk.1
        )));
    }
    let planar = match directory.one(tag::PLANAR, 1)? {
        1 => false,
        2 => samples > 1,
        other => return Err(corrupt(format!("planar configuration {other}"))),
    };
    Ok(Layout {
        width: width as usize,
        height: height as usize,
        bits: bits as usize,
        samples: samples as usize,
        planar,
        chunk: (chunk.0 as usize, chunk.1 as usize),
        tiled,
    })
}

/// What the samples mean, and whether colours are multiplied with alpha already.
fn color(directory: &Directory<'_>, layout: &Layout) -> Result<(bool, Color), ImageError> {
    let photometric = directory.one(tag::PHOTOMETRIC, 1)?;
    let base = match photometric {
        0 | 1 | 3 => 1,
        2 => 3,
        5 => 4,
        4 => return Err(unsupported("a transparency mask")),
        6 => return Err(unsupported("luma and colour differences (YCbCr)")),
        8..=10 => return Err(unsupported("CIE L*a*b* colours")),
        other => return Err(unsupported(format!("photometric interpretation {other}"))),
    };
    if layout.samples < base {
        return Err(corrupt(format!(
            "expected at least {base} samples a pixel, found {}",
            layout.samples
        )));
    }
    // Unnamed further samples beside RGB are alpha, as Pillow has it; samples named unspecified are not.
    let named = directory.values(tag::EXTRA_SAMPLES)?;
    let extra = match named.as_deref() {
        Some(kinds) => kinds.first().copied().unwrap_or(0),
        None if photometric == 2 && layout.samples == 4 => 2,
        None => 0,
    };
    let alpha = layout.samples > base && matches!(extra, 1 | 2);
    let color = match (photometric, alpha) {
        (0 | 1, false) => Color::Grey,
        (0 | 1, true) => Color::GreyAlpha,
        (2, false) => Color::Rgb,
        (2, true) => Color::Rgba,
        (3, _) => Color::Palette(palette(directory, layout.bits)?),
        _ => Color::Cmyk,
    };
    Ok((alpha && extra == 1, color))
}

fn palette(directory: &Directory<'_>, bits: usize) -> Result<Vec<[u8; 4]>, ImageError> {
    if bits > 8 {
        return Err(unsupported("a palette of more than 256 colours"));
    }
    let values = directory
        .values(tag::COLOR_MAP)?
        .ok_or_else(|| corrupt("a palette picture without a palette"))?;
    let count = 1 << bits;
    if values.len() != 3 * count {
        return Err(corrupt(format!(
            "expected a palette of {} values, found {}",
            3 * count,
            values.len()
        )));
    }
    let part = |index: usize, channel: usize| (values[channel * count + index] >> 8) as u8;
    Ok((0..count)
        .map(|index| [part(index, 0), part(index, 1), part(index, 2), 255])
        .collect())
}

/// All samples, interleaved.
fn read(bytes: &[u8], directory: &Directory<'_>, layout: &Layout) -> Result<Samples, ImageError> {
    let (offsets, lengths) = if layout.tiled {
        (tag::TILE_OFFSETS, tag::TILE_LENGTHS)
    } else {
        (tag::STRIP_OFFSETS, tag::STRIP_LENGTHS)
    };
    let offsets = directory
        .values(offsets)?
        .ok_or_else(|| corrupt("the places of the strips or tiles are missing"))?;
    let (across, down) = (
        layout.width.div_ceil(layout.chunk.0),
        layout.height.div_ceil(layout.chunk.1),
    );
    let planes = if layout.planar { layout.samples } else { 1 };
    let count = across * down * planes;
    if offsets.len() < count {
        return Err(corrupt(format!(
            "expected {count} strips or tiles, found {}",
            offsets.len()
        )));
    }
    let lengths = match directory.values(lengths)? {
        Some(lengths) if lengths.len() >= count => lengths,
        None if count == 1 => vec![(bytes.len() as u32).saturating_sub(offsets[0])],
        _ => return Err(corrupt("the lengths of the strips or tiles are missing")),
    };
    let within = if layout.planar { 1 } else { layout.samples };
    let coding = Coding {
        compression: directory.one(tag::COMPRESSION, 1)?,
        predictor: directory.one(tag::PREDICTOR, 1)?,
        reversed: directory.one(tag::FILL_ORDER, 1)? == 2,
        big_endian: directory.big_endian(),
        bits: layout.bits,
        samples: within,
        width: layout.chunk.0,
    };
    coding.check()?;
    // Every strip must lie within the file before anything is allocated for the picture.
    let part = |index: usize| {
        let (from, length) = (offsets[index] as usize, lengths[index] as usize);
        bytes.get(from..from.saturating_add(length)).ok_or_else(|| {
            cut(format!(
                "a strip or tile of {length} bytes from byte {from}, and the file has {}",
                bytes.len()
            ))
        })
    };
    for index in 0..count {
        part(index)?;
    }
    let coded: u64 = lengths[..count]
        .iter()
        .map(|&length| u64::from(length))
        .sum();
    // Strips that share their bytes could make a small file cost hours.
    if coded > 2 * bytes.len() as u64 {
        return Err(corrupt(format!(
            "strips or tiles of {coded} bytes in a file of {}",
            bytes.len()
        )));
    }
    let total = layout.width * layout.height * layout.samples;
    let mut out = if layout.bits == 16 {
        Samples::Words(vec![0; total])
    } else {
        Samples::Bytes(vec![0; total])
    };
    let mut chunk = Vec::new();
    for index in 0..count {
        let (plane, place) = (index / (across * down), index % (across * down));
        let (left, top) = (
            place % across * layout.chunk.0,
            place / across * layout.chunk.1,
        );
        let rows = layout.chunk.1.min(layout.height - top);
        let columns = layout.chunk.0.min(layout.width - left);
        // A tile is always whole; the last strip only as high as is left.
        let coded_rows = if layout.tiled { layout.chunk.1 } else { rows };
        coding.expand(part(index)?, coded_rows, &mut chunk)?;
        for y in 0..rows {
            let row = &chunk[y * coding.row_bytes()..][..coding.row_bytes()];
            let at = ((top + y) * layout.width + left) * layout.samples + plane;
            // In planes, samples lie apart in the output.
            let step = if layout.planar { layout.samples } else { 1 };
            coding.unpack(row, columns * within, &mut out, at, step);
        }
    }
    Ok(out)
}
