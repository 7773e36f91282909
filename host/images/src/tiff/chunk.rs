//! One strip or tile: decompressed into a buffer of known length, prediction undone, bits unpacked. Knows no tags and no places.

use flate2::{Decompress, FlushDecompress, Status};
use weezl::{BitOrder, LzwStatus, decode::Decoder};

use super::{corrupt, unsupported};
use crate::ImageError;
use crate::raster::Samples;

/// How every strip or tile of a page is coded.
pub(super) struct Coding {
    pub compression: u32,
    pub predictor: u32,
    /// Whether bits are filled from the low end.
    pub reversed: bool,
    pub big_endian: bool,
    pub bits: usize,
    /// Samples of a pixel within a strip or tile.
    pub samples: usize,
    /// Pixels of a row.
    pub width: usize,
}

impl Coding {
    /// Whether all of it is read here.
    pub(super) fn check(&self) -> Result<(), ImageError> {
        let name = match self.compression {
            1 | 5 | 8 | 32946 | 32773 => None,
            2..=4 => Some("fax compression (CCITT)"),
            6 | 7 => Some("JPEG compression within TIFF"),
            34712 => Some("JPEG 2000 compression within TIFF"),
            50000 => Some("Zstandard compression"),
            50001 => Some("WebP compression within TIFF"),
            other => return Err(unsupported(format!("compression {other}"))),
        };
        if let Some(name) = name {
            return Err(unsupported(name));
        }
        match (self.predictor, self.bits) {
            (1, _) | (2, 8 | 16) => Ok(()),
            (other, bits) => Err(unsupported(format!(
                "prediction {other} with {bits} bits a sample"
            ))),
        }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        (self.width * self.samples * self.bits).div_ceil(8)
    }

    /// Decompresses `rows` rows into `out`, which then holds exactly those, with prediction undone and samples in this machine's byte order.
    pub(super) fn expand(
        &self,
        coded: &[u8],
        rows: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ImageError> {
        let length = self.row_bytes() * rows;
        out.clear();
        out.resize(length, 0);
        let turned: Vec<u8>;
        let coded = if self.reversed {
            turned = coded.iter().map(|byte| byte.reverse_bits()).collect();
            &turned
        } else {
            coded
        };
        let filled = match self.compression {
            1 => {
                let count = coded.len().min(length);
                out[..count].copy_from_slice(&coded[..count]);
                count
            }
            5 => lzw(coded, out)?,
            32773 => packbits(coded, out),
            _ => deflate(coded, out)?,
        };
        if filled < length {
            return Err(corrupt(format!(
                "a strip or tile holds {filled} bytes, expected {length}"
            )));
        }
        if self.bits == 16 {
            for pair in out.as_chunks_mut::<2>().0 {
                let value = if self.big_endian {
                    u16::from_be_bytes(*pair)
                } else {
                    u16::from_le_bytes(*pair)
                };
                *pair = value.to_ne_bytes();
            }
        }
        if self.predictor == 2 {
            for row in out.chunks_exact_mut(self.row_bytes()) {
                self.undo_prediction(row);
            }
        }
        Ok(())
    }

    /// Each sample was stored as the difference to the same sample of the pixel before.
    fn undo_prediction(&self, row: &mut [u8]) {
        if self.bits == 8 {
            for at in self.samples..row.len() {
                row[at] = row[at].wrapping_add(row[at - self.samples]);
            }
            return;
        }
        let pairs = row.as_chunks_mut::<2>().0;
        for at in self.samples..pairs.len() {
            let before = u16::from_ne_bytes(pairs[at - self.samples]);
            pairs[at] = u16::from_ne_bytes(pairs[at])
                .wrapping_add(before)
                .to_ne_bytes();
        }
    }

    /// Moves the first `count` samples of a row to `out`, from `at` in steps of `step`.
    pub(super) fn unpack(
        &self,
        row: &[u8],
        count: usize,
        out: &mut Samples,
        at: usize,
        step: usize,
    ) {
        match out {
            Samples::Words(out) => {
                let values = row.as_chunks::<2>().0.iter().take(count);
                let places = out[at..].iter_mut().step_by(step);
                places
                    .zip(values)
                    .for_each(|(place, &pair)| *place = u16::from_ne_bytes(pair));
            }
            Samples::Bytes(out) if self.bits == 8 => {
                let places = out[at..].iter_mut().step_by(step);
                places
                    .zip(&row[..count])
                    .for_each(|(place, &value)| *place = value);
            }
            Samples::Bytes(out) => {
                let (bits, each) = (self.bits, 8 / self.bits);
                let mask = ((1_u16 << bits) - 1) as u8;
                let places = out[at..].iter_mut().step_by(step).take(count);
                for (index, place) in places.enumerate() {
                    let shift = 8 - bits * (index % each + 1);
                    *place = row[index / each] >> shift & mask;
                }
            }
        }
    }
}

/// Fills `out` as far as the code goes; returns how far.
fn lzw(coded: &[u8], out: &mut [u8]) -> Result<usize, ImageError> {
    let mut decoder = Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let (mut read, mut written) = (0, 0);
    while written < out.len() {
        let step = decoder.decode_bytes(&coded[read..], &mut out[written..]);
        read += step.consumed_in;
        written += step.consumed_out;
        match step.status {
            Ok(LzwStatus::Ok) if step.consumed_in + step.consumed_out > 0 => {}
            Ok(_) => break,
            Err(error) => return Err(corrupt(format!("LZW: {error}"))),
        }
    }
    Ok(written)
}

fn deflate(coded: &[u8], out: &mut [u8]) -> Result<usize, ImageError> {
    let mut decoder = Decompress::new(true);
    loop {
        let (read, written) = (decoder.total_in() as usize, decoder.total_out() as usize);
        if written == out.len() {
            return Ok(written);
        }
        let status = decoder
            .decompress(&coded[read..], &mut out[written..], FlushDecompress::Finish)
            .map_err(|error| corrupt(format!("Deflate: {error}")))?;
        let moved = decoder.total_in() as usize > read || decoder.total_out() as usize > written;
        if status == Status::StreamEnd || !moved {
            return Ok(decoder.total_out() as usize);
        }
    }
}

fn packbits(coded: &[u8], out: &mut [u8]) -> usize {
    let (mut read, mut written) = (0, 0);
    while written < out.len() {
        let Some(&head) = coded.get(read) else { break };
        read += 1;
        match head {
            128 => {}
            0..128 => {
                let count = usize::from(head) + 1;
                let count = count.min(out.len() - written).min(coded.len() - read);
                out[written..written + count].copy_from_slice(&coded[read..read + count]);
                read += count;
                written += count;
                if count == 0 {
                    break;
                }
            }
            _ => {
                let Some(&value) = coded.get(read) else { break };
                read += 1;
                let count = (257 - usize::from(head)).min(out.len() - written);
                out[written..written + count].fill(value);
                written += count;
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packbits_of_the_standard() {
        // The example of the TIFF 6.0 text, section 9.
        let coded = [
            0xFE, 0xAA, 0x02, 0x80, 0x00, 0x2A, 0xFD, 0xAA, 0x03, 0x80, 0x00, 0x2A, 0x22, 0xF7,
            0xAA,
        ];
        let expected = [
            0xAA, 0xAA, 0xAA, 0x80, 0x00, 0x2A, 0xAA, 0xAA, 0xAA, 0xAA, 0x80, 0x00, 0x2A, 0x22,
            0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA,
        ];
        let mut out = [0; 24];
        assert_eq!(packbits(&coded, &mut out), 24);
        assert_eq!(out, expected);
        assert_eq!(packbits(&coded[..5], &mut out), 5, "as far as it goes");
    }

    #[test]
    fn output_stops_at_the_buffer_whatever_the_code_says() {
        // 4,000 bytes of deflate for four million zeros.
        let mut bomb = Vec::new();
        let mut coder = flate2::write::ZlibEncoder::new(&mut bomb, flate2::Compression::best());
        std::io::Write::write_all(&mut coder, &vec![0; 4_000_000]).unwrap();
        coder.finish().unwrap();
        let mut out = [1; 100];
        assert_eq!(deflate(&bomb, &mut out).unwrap(), 100);
        assert_eq!(out, [0; 100]);
        assert_eq!(deflate(&bomb[..1], &mut out).unwrap(), 0);
        assert!(deflate(b"not deflate", &mut out).is_err());
    }
}
