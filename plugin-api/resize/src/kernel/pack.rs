//! Weights laid out for the AVX2 horizontal kernels: split in 16-bit halves and repeated for the channels. Knows no pixels.

use crate::coefficients::{Coefficients, lower, upper};

/// Upper and lower halves of the weights of one step of the kernel.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Chunk {
    pub upper: [i16; 16],
    pub lower: [i16; 16],
}

/// Chunks of each output, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// Chunks of output `i` are `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<usize>,
    pub chunks: Vec<Chunk>,
    /// Bytes of a source row that the kernel may touch, from the row's first byte.
    pub reach: usize,
    usable: bool,
}

/// Bytes that one step loads.
pub(crate) const LOAD: usize = 16;

impl Packed {
    /// Source pixels taken in one step: as many as a 16-byte load has whole pixels, rounded to what the shuffle can pair.
    pub(crate) const fn step(channels: usize) -> usize {
        if channels == 1 { 16 } else { 4 }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.usable
    }

    pub(crate) fn new(table: &Coefficients, channels: usize) -> Self {
        if !table.splittable {
            return Self::default();
        }
        let step = Self::step(channels);
        let mut packed = Self { offsets: vec![0], usable: true, ..Self::default() };
        for (output, span) in table.spans.iter().enumerate() {
            let weights = table.fixed_of(output);
            for (index, part) in weights.chunks(step).enumerate() {
                let mut chunk = Chunk { upper: [0; 16], lower: [0; 16] };
                for (tap, &weight) in part.iter().enumerate() {
                    for slot in slots(channels, tap) {
                        chunk.upper[slot] = upper(weight);
                        chunk.lower[slot] = lower(weight);
                    }
                }
                packed.chunks.push(chunk);
                packed.reach = packed.reach.max((span.start + index * step) * channels + LOAD);
            }
            packed.offsets.push(packed.chunks.len());
        }
        packed
    }
}

/// Where tap `tap` of a step sits among the 16 lanes: in order for one channel; for three or four, pairs of taps side by side, once for each
/// channel, taps 0 and 1 in the lower half and 2 and 3 in the upper.
fn slots(channels: usize, tap: usize) -> impl Iterator<Item = usize> {
    let (first, count) = if channels == 1 { (tap, 1) } else { ((tap / 2) * 8 + tap % 2, 4) };
    (0..count).map(move |channel| first + channel * 2)
}
