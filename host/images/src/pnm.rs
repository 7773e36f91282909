//! Portable anymaps of the binary kinds (`P4`, `P5`, `P6`), 8 or 16 bits: what STARE's photographs come in. Knows no colours beyond grey and RGB.

use crate::raster::{Color, Raster, Samples, check_size};
use crate::{ImageError, ImageFormat, Limits};

const FORMAT: ImageFormat = ImageFormat::Pnm;

/// The picture as stored.
pub(crate) fn decode(bytes: &[u8], limits: &Limits) -> Result<Raster, ImageError> {
    let mut at = 2;
    let kind = bytes.get(1).copied().unwrap_or(0);
    let width = number(bytes, &mut at)?;
    let height = number(bytes, &mut at)?;
    check_size(width, height, FORMAT, limits)?;
    let most = if kind == b'4' {
        1
    } else {
        number(bytes, &mut at)?
    };
    if !(1..=65535).contains(&most) {
        return Err(ImageError::Corrupt {
            format: FORMAT,
            detail: format!("a largest value of {most}, which must be 1 to 65535"),
        });
    }
    // Exactly one space or line end before the samples.
    let data = bytes.get(at + 1..).unwrap_or(&[]);
    let color = if kind == b'6' {
        Color::Rgb
    } else {
        Color::Grey
    };
    let channels = color.channels();
    let row = width as usize * channels;
    let bytes_a_row = match (kind, most) {
        (b'4', _) => row.div_ceil(8),
        (_, ..=255) => row,
        _ => row * 2,
    };
    let needed = bytes_a_row * height as usize;
    let data = data.get(..needed).ok_or_else(|| ImageError::Truncated {
        format: FORMAT,
        detail: format!("expected {needed} bytes of pixels, found {}", data.len()),
    })?;
    let over = |value: u64| ImageError::Corrupt {
        format: FORMAT,
        detail: format!("a sample of {value}, and the largest is {most}"),
    };
    let (bits, samples) = if kind == b'4' {
        // Ones are black.
        let bit = |row: &[u8], x: usize| u8::from(row[x / 8] >> (7 - x % 8) & 1 == 0);
        let rows = data.chunks_exact(bytes_a_row);
        let samples = rows.flat_map(|row| (0..width as usize).map(move |x| bit(row, x)));
        (1, Samples::Bytes(samples.collect()))
    } else if most <= 255 {
        if let Some(&value) = data.iter().find(|&&value| u64::from(value) > most) {
            return Err(over(value.into()));
        }
        // Pillow's rounding where the range is not the byte's.
        let scaled = |value: u8| (f64::from(value) / most as f64 * 255.0).round_ties_even() as u8;
        let samples = if most == 255 {
            data.to_vec()
        } else {
            data.iter().map(|&value| scaled(value)).collect()
        };
        (8, Samples::Bytes(samples))
    } else {
        let mut samples = Vec::with_capacity(data.len() / 2);
        for pair in data.chunks_exact(2) {
            let value = u64::from(u16::from_be_bytes([pair[0], pair[1]]));
            if value > most {
                return Err(over(value));
            }
            samples.push(((value * 65535 + most / 2) / most) as u16);
        }
        (16, Samples::Words(samples))
    };
    Ok(Raster {
        width: width as u32,
        height: height as u32,
        stride: channels,
        color,
        bits,
        premultiplied: false,
        samples,
    })
}

/// A decimal number behind spaces and comments.
fn number(bytes: &[u8], at: &mut usize) -> Result<u64, ImageError> {
    let ended = || ImageError::Truncated {
        format: FORMAT,
        detail: "the header is not complete".into(),
    };
    loop {
        match bytes.get(*at).ok_or_else(ended)? {
            b'#' => {
                while *bytes.get(*at).ok_or_else(ended)? != b'\n' {
                    *at += 1;
                }
            }
            byte if byte.is_ascii_whitespace() => *at += 1,
            _ => break,
        }
    }
    let digits = bytes[*at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let text = &bytes[*at..*at + digits];
    *at += digits;
    if *at == bytes.len() {
        return Err(ended());
    }
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| ImageError::Corrupt {
            format: FORMAT,
            detail: "the header's sizes must be decimal numbers".into(),
        })
}
