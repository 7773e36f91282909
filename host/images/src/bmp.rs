//! Windows and OS/2 bitmaps: 1 to 32 bits a pixel, either row order, run-length coded or not. Knows no colours beyond the palette.
//!
//! Read here rather than by a crate because masks need the stored indices, which decoders to RGB throw away.

use crate::raster::{Color, Raster, Samples, check_size};
use crate::{ImageError, ImageFormat, Limits};

const FORMAT: ImageFormat = ImageFormat::Bmp;

struct Header {
    width: usize,
    height: usize,
    top_down: bool,
    bits: u16,
    compression: u32,
    palette: Vec<[u8; 4]>,
    /// Red, green, blue, alpha.
    masks: [u32; 4],
    /// Where the pixels begin.
    data: usize,
}

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

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ImageError> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or_else(|| cut("the header is not complete"))
}

fn short(bytes: &[u8], at: usize) -> Result<u16, ImageError> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Result<u32, ImageError> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn header(bytes: &[u8], limits: &Limits) -> Result<Header, ImageError> {
    let data = long(bytes, 10)? as usize;
    let size = long(bytes, 14)? as usize;
    let core = size == 12;
    if !core && !(40..=124).contains(&size) {
        return Err(unsupported(format!("a header of {size} bytes")));
    }
    let (width, signed_height, bits) = if core {
        let height = i32::from(short(bytes, 20)?);
        (i32::from(short(bytes, 18)?), height, short(bytes, 24)?)
    } else {
        let height = long(bytes, 22)? as i32;
        (long(bytes, 18)? as i32, height, short(bytes, 28)?)
    };
    let width = u64::try_from(width).map_err(|_| corrupt("a negative width"))?;
    let height = u64::from(signed_height.unsigned_abs());
    check_size(width, height, FORMAT, limits)?;
    let (compression, used) = if core {
        (0, 0)
    } else {
        (long(bytes, 30)?, long(bytes, 46)?)
    };
    let mut at = 14 + size;
    let mut masks = match bits {
        16 => [0x7C00, 0x03E0, 0x001F, 0],
        _ => [0xFF_0000, 0xFF00, 0xFF, 0],
    };
    if matches!(compression, 3 | 6) {
        // Within the longer headers they lie in the same place as behind the short one.
        for (index, mask) in masks.iter_mut().enumerate().take(3) {
            *mask = long(bytes, 54 + 4 * index)?;
        }
        let alpha = compression == 6 || size >= 56;
        masks[3] = if alpha { long(bytes, 66)? } else { 0 };
        if size == 40 {
            at += if compression == 6 { 16 } else { 12 };
        }
    }
    let mut palette = Vec::new();
    if bits <= 8 {
        let most = 1_usize << bits;
        let entry = if core { 3 } else { 4 };
        let stated = if used == 0 { most } else { used as usize };
        let room = data.saturating_sub(at) / entry;
        for index in 0..stated.min(most).min(room) {
            let [blue, green, red]: [u8; 3] = array(bytes, at + index * entry)?;
            palette.push([red, green, blue, 255]);
        }
    }
    if data < at || data > bytes.len() {
        return Err(cut(format!(
            "pixels from byte {data}, and the file has {}",
            bytes.len()
        )));
    }
    Ok(Header {
        width: width as usize,
        height: height as usize,
        top_down: signed_height < 0,
        bits,
        compression,
        palette,
        masks,
        data,
    })
}

/// The picture as stored; the first row is the upper one.
pub(crate) fn decode(bytes: &[u8], limits: &Limits) -> Result<Raster, ImageError> {
    let header = header(bytes, limits)?;
    let data = &bytes[header.data..];
    let (color, bits, mut samples) = match (header.bits, header.compression) {
        (1 | 2 | 4 | 8, 0) => {
            let rows = rows(&header, data)?;
            (None, header.bits as u8, indices(&header, rows))
        }
        (8, 1) | (4, 2) => (None, header.bits as u8, runs(&header, data)?),
        (24, 0) => {
            let rows = rows(&header, data)?;
            let pixels = rows.flat_map(|row| {
                row[..header.width * 3]
                    .chunks_exact(3)
                    .flat_map(|pixel| [pixel[2], pixel[1], pixel[0]])
            });
            (Some(Color::Rgb), 8, pixels.collect())
        }
        (16 | 32, 0 | 3 | 6) => {
            let (color, samples) = fields(&header, data)?;
            (Some(color), 8, samples)
        }
        (bits, 4 | 5) => {
            return Err(unsupported(format!(
                "a JPEG or PNG within a bitmap of {bits} bits"
            )));
        }
        (bits, compression) => {
            return Err(unsupported(format!(
                "{bits} bits a pixel with compression {compression}"
            )));
        }
    };
    let color = color.unwrap_or(Color::Palette(header.palette));
    let stride = color.channels();
    if !header.top_down {
        flip(&mut samples, header.width * stride);
    }
    Ok(Raster {
        width: header.width as u32,
        height: header.height as u32,
        color,
        bits,
        stride,
        premultiplied: false,
        samples: Samples::Bytes(samples),
    })
}

/// Rows in the file's order, padded to four bytes there.
fn rows<'a>(
    header: &Header,
    data: &'a [u8],
) -> Result<impl Iterator<Item = &'a [u8]> + use<'a>, ImageError> {
    let stride = (header.width * usize::from(header.bits)).div_ceil(32) * 4;
    let used = (header.width * usize::from(header.bits)).div_ceil(8);
    // The last row's padding may be missing.
    let needed = stride * (header.height - 1) + used;
    if data.len() < needed {
        return Err(cut(format!(
            "expected {needed} bytes of pixels, found {}",
            data.len()
        )));
    }
    Ok(data.chunks(stride).take(header.height))
}

fn indices<'a>(header: &Header, rows: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let bits = usize::from(header.bits);
    let each = 8 / bits;
    let mask = ((1_u16 << bits) - 1) as u8;
    let mut out = Vec::with_capacity(header.width * header.height);
    for row in rows {
        out.extend(
            (0..header.width).map(|x| (row[x / each] >> (8 - bits * (x % each + 1))) & mask),
        );
    }
    out
}

/// Pixels of 16 or 32 bits, whose channels are runs of bits.
fn fields(header: &Header, data: &[u8]) -> Result<(Color, Vec<u8>), ImageError> {
    let mut parts = Vec::new();
    for mask in header.masks {
        if mask == 0 {
            continue;
        }
        let shift = mask.trailing_zeros();
        let most = mask >> shift;
        if most & most.wrapping_add(1) != 0 {
            return Err(corrupt(format!(
                "a channel's bits {mask:#x} are not in a row"
            )));
        }
        parts.push((shift, most));
    }
    let color = match (parts.len(), header.masks[3]) {
        (3, 0) => Color::Rgb,
        (4, _) => Color::Rgba,
        _ => return Err(unsupported("channels without bits")),
    };
    let wide = header.bits == 32;
    let step = if wide { 4 } else { 2 };
    let mut out = Vec::with_capacity(header.width * header.height * parts.len());
    for row in rows(header, data)? {
        for pixel in row[..header.width * step].chunks_exact(step) {
            let value = if wide {
                u32::from_le_bytes([pixel[0], pixel[1], pixel[2], pixel[3]])
            } else {
                u32::from(u16::from_le_bytes([pixel[0], pixel[1]]))
            };
            let channel = |&(shift, most): &(u32, u32)| {
                (u64::from((value >> shift) & most) * 255 / u64::from(most)) as u8
            };
            out.extend(parts.iter().map(channel));
        }
    }
    Ok((color, out))
}

/// Run-length coded indices. Pixels that are skipped are 0, as everywhere.
fn runs(header: &Header, data: &[u8]) -> Result<Vec<u8>, ImageError> {
    let mut out = vec![0; header.width * header.height];
    let nibbles = header.bits == 4;
    let (mut x, mut y) = (0_usize, 0_usize);
    let mut at = 0;
    let mut put = |x: &mut usize, y: usize, value: u8| {
        if *x < header.width && y < header.height {
            out[y * header.width + *x] = value;
        }
        *x += 1;
    };
    let next = |at: usize| -> Result<u8, ImageError> {
        data.get(at)
            .copied()
            .ok_or_else(|| cut("the coded rows end before the mark of their end"))
    };
    loop {
        let (count, value) = (next(at)?, next(at + 1)?);
        at += 2;
        match (count, value) {
            (0, 0) => (x, y) = (0, y + 1),
            (0, 1) => return Ok(out),
            (0, 2) => {
                x += usize::from(next(at)?);
                y += usize::from(next(at + 1)?);
                at += 2;
            }
            (0, length) => {
                let length = usize::from(length);
                for index in 0..length {
                    let byte = next(at + if nibbles { index / 2 } else { index })?;
                    let value = match (nibbles, index % 2) {
                        (false, _) => byte,
                        (true, 0) => byte >> 4,
                        (true, _) => byte & 15,
                    };
                    put(&mut x, y, value);
                }
                let bytes = if nibbles { length.div_ceil(2) } else { length };
                at += bytes.next_multiple_of(2);
            }
            (count, value) => {
                for index in 0..count {
                    let value = match (nibbles, index % 2) {
                        (false, _) => value,
                        (true, 0) => value >> 4,
                        (true, _) => value & 15,
                    };
                    put(&mut x, y, value);
                }
            }
        }
        if y > header.height {
            return Err(corrupt("the coded rows are more than the picture has"));
        }
    }
}

fn flip(samples: &mut [u8], row: usize) {
    let height = samples.len() / row;
    for y in 0..height / 2 {
        let (upper, lower) = samples.split_at_mut((height - 1 - y) * row);
        upper[y * row..][..row].swap_with_slice(&mut lower[..row]);
    }
}
