//! Weights laid out for the horizontal SIMD kernels: split in parts that their multiply-adds take, and repeated for the channels. Knows no pixels.

use super::Backend;
use crate::coefficients::{Coefficients, byte_digits, lower, upper};

/// One step of the AVX2 kernel: 16-bit halves of the weights.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct WordChunk {
    pub upper: [i16; 16],
    pub lower: [i16; 16],
}

/// One step of the AVX-512 kernel: the weights' three bytes, least first.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct ByteChunk {
    pub digits: [[i8; 64]; 3],
}

/// One step of the AVX-512 kernel for one channel: which bytes of a window are multiplied, and with what.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct GatherChunk {
    /// Least first, as in [`ByteChunk`].
    pub digits: [[i8; 64]; 3],
    pub index: [u8; 64],
    /// Whether any weight has a third digit: at the ends of a wide filter none may have.
    pub wide: bool,
}

/// [`GATHER_LOAD`] bytes of a source row that several steps pick from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatherWindow {
    /// First byte.
    pub base: usize,
    /// One past the last of the window's steps; they begin where the window before ends.
    pub end: usize,
}

/// Steps of each output, one after the other. At most one of `words`, `bytes` and `gathers` is filled; none where only the scalar kernel will do.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// Steps of output `i` are `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<usize>,
    pub words: Vec<WordChunk>,
    pub bytes: Vec<ByteChunk>,
    /// Steps of units of [`Self::lanes`] outputs each.
    pub gathers: Vec<GatherChunk>,
    /// Windows that the steps pick from; unit `i` has `offsets[i]..offsets[i + 1]`.
    pub windows: Vec<GatherWindow>,
    /// Outputs of a unit: 16, each with four taps a step, or 4 with sixteen.
    pub lanes: usize,
    /// Bytes of a source row that the kernel may touch, from the row's first byte.
    pub reach: usize,
}

/// Bytes that one step of the AVX2 kernel loads.
pub(crate) const WORD_LOAD: usize = 16;
/// Bytes that one step of the AVX-512 kernel loads.
pub(crate) const BYTE_LOAD: usize = 64;
/// Bytes that one step of the AVX-512 kernel for one channel loads.
pub(crate) const GATHER_LOAD: usize = 128;
/// Outputs that the AVX-512 kernel for one channel makes at a time.
pub(crate) const GATHER_OUTPUTS: usize = 16;
/// Source pixels that one step of the AVX-512 kernel takes, of three or four channels.
pub(crate) const BYTE_STEP: usize = 16;

/// Source pixels that one step of the AVX2 kernel takes.
pub(crate) const fn word_step(channels: usize) -> usize {
    if channels == 1 { 16 } else { 4 }
}

impl Packed {
    /// For the fastest kernel that `backend` has for this many channels and these weights.
    pub(crate) fn new(table: &Coefficients, channels: usize, backend: Backend) -> Self {
        match backend {
            Backend::Avx512 if channels > 1 && table.fits_bytes => Self::in_bytes(table, channels),
            Backend::Avx512 if table.fits_bytes => Self::in_gathers(table, 16)
                .or_else(|| Self::in_gathers(table, 4))
                .unwrap_or_else(|| Self::in_words(table, channels)),
            Backend::Avx512 | Backend::Avx2 if table.fits_words => Self::in_words(table, channels),
            _ => Self::default(),
        }
    }

    fn in_words(table: &Coefficients, channels: usize) -> Self {
        let mut packed = Self {
            offsets: vec![0],
            ..Self::default()
        };
        let step = word_step(channels);
        for (output, span) in table.spans.iter().enumerate() {
            for (index, part) in table.fixed_of(output).chunks(step).enumerate() {
                let mut chunk = WordChunk {
                    upper: [0; 16],
                    lower: [0; 16],
                };
                for (tap, &weight) in part.iter().enumerate() {
                    // One channel: taps in order. More: pairs of taps side by side, once for each channel; taps 2 and 3 in the upper half.
                    let (first, count) = if channels == 1 {
                        (tap, 1)
                    } else {
                        ((tap / 2) * 8 + tap % 2, 4)
                    };
                    for channel in 0..count {
                        chunk.upper[first + channel * 2] = upper(weight);
                        chunk.lower[first + channel * 2] = lower(weight);
                    }
                }
                packed.words.push(chunk);
                packed.reach = packed
                    .reach
                    .max((span.start + index * step) * channels + WORD_LOAD);
            }
            packed.offsets.push(packed.words.len());
        }
        packed
    }

    /// Nothing where the taps of a step lie too far apart: large reductions.
    fn in_gathers(table: &Coefficients, lanes: usize) -> Option<Self> {
        let mut packed = Self {
            offsets: vec![0],
            lanes,
            ..Self::default()
        };
        let step = 64 / lanes;
        let outputs = table.spans.len();
        for first in (0..outputs.next_multiple_of(GATHER_OUTPUTS)).step_by(lanes) {
            let unit = first.min(outputs)..(first + lanes).min(outputs);
            let spans = &table.spans[unit.clone()];
            let start = spans.iter().map(|span| span.start).min().unwrap_or(0);
            let longest = spans.iter().map(|span| span.len).max().unwrap_or(0);
            let reach = |done: usize| {
                let ends = spans
                    .iter()
                    .map(|span| span.start + span.len.min(done + step));
                ends.max().unwrap_or(0)
            };
            let mut base = start;
            for done in (0..longest).step_by(step) {
                let mut chunk = GatherChunk {
                    digits: [[0; 64]; 3],
                    index: [0; 64],
                    wide: false,
                };
                // As many steps as possible share a window: loads cost more than the picking.
                let opens = done == 0 || reach(done) > base + GATHER_LOAD;
                if opens {
                    base = start + done;
                    if reach(done) > base + GATHER_LOAD {
                        return None;
                    }
                }
                for (lane, output) in unit.clone().enumerate() {
                    let weights = table.fixed_of(output);
                    let rest = weights.iter().enumerate().skip(done).take(step);
                    for (tap, &weight) in rest {
                        // Four taps side by side for each output of the unit; the next four taps behind those.
                        let quad = (tap - done) / 4;
                        let at = (quad * lanes + lane) * 4 + tap % 4;
                        chunk.index[at] = (table.spans[output].start + tap - base) as u8;
                        for (digits, digit) in chunk.digits.iter_mut().zip(byte_digits(weight)) {
                            digits[at] = digit;
                        }
                    }
                }
                chunk.wide = chunk.digits[2].iter().any(|&digit| digit != 0);
                packed.reach = packed.reach.max(base + GATHER_LOAD);
                packed.gathers.push(chunk);
                let end = packed.gathers.len();
                match packed.windows.last_mut() {
                    Some(window) if !opens => window.end = end,
                    _ => packed.windows.push(GatherWindow { base, end }),
                }
            }
            packed.offsets.push(packed.windows.len());
        }
        Some(packed)
    }

    fn in_bytes(table: &Coefficients, channels: usize) -> Self {
        let mut packed = Self {
            offsets: vec![0],
            ..Self::default()
        };
        for (output, span) in table.spans.iter().enumerate() {
            for (index, part) in table.fixed_of(output).chunks(BYTE_STEP).enumerate() {
                let mut chunk = ByteChunk {
                    digits: [[0; 64]; 3],
                };
                for (tap, &weight) in part.iter().enumerate() {
                    // Four taps side by side, once for each channel; the next four taps in the next 16 bytes.
                    for channel in 0..channels {
                        for (digits, digit) in chunk.digits.iter_mut().zip(byte_digits(weight)) {
                            digits[(tap / 4) * 16 + channel * 4 + tap % 4] = digit;
                        }
                    }
                }
                packed.bytes.push(chunk);
                packed.reach = packed
                    .reach
                    .max((span.start + index * BYTE_STEP) * channels + BYTE_LOAD);
            }
            packed.offsets.push(packed.bytes.len());
        }
        packed
    }
}
