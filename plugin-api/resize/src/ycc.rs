//! Resizing the planes of a decoded JPEG: chroma is widened, colours are converted and the horizontal pass is run a few rows at a time, in the near
//! caches, so that the full-size RGB picture is never written.
//!
//! Owns the description of the planes and the walk over them. Must not know files or decoders. The bytes are those of libjpeg-turbo's default
//! decoding to RGB (smooth chroma upsampling, not merged) followed by [`Resizer::resize`].

use crate::kernel::{self, Backend, Rows, RowsMut, SLACK, ycc};
use crate::resizer::{check_length, checked, grow, prepare};
use crate::{ResizeError, Resizer, Scaling};

/// How many chroma samples there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Chroma {
    /// One for each pixel (4:4:4).
    Full,
    /// One for two pixels of a row (4:2:2).
    HalfWidth,
    /// One for two by two pixels (4:2:0).
    Quarter,
}

/// The planes of a JPEG in the full-range `YCbCr` of JFIF, 8 bits a sample.
#[derive(Debug, Clone, Copy)]
pub struct YccPlanes<'a> {
    /// Width and height of the picture in pixels.
    pub size: (u32, u32),
    /// How many samples the chroma planes have: half a side is rounded up.
    pub chroma: Chroma,
    /// Luma: rows of [`Self::luma_stride`] bytes.
    pub luma: &'a [u8],
    /// Bytes from one luma row to the next.
    pub luma_stride: usize,
    /// Blue difference and red difference.
    pub differences: [&'a [u8]; 2],
    /// Bytes from one row of a difference to the next.
    pub difference_stride: usize,
}

/// Picture rows converted at a time: three channels of each make whole blocks of the horizontal kernels.
const BAND: usize = 4;

impl YccPlanes<'_> {
    /// Width and height of the chroma planes in samples.
    pub fn chroma_size(&self) -> (usize, usize) {
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        match self.chroma {
            Chroma::Full => (width, height),
            Chroma::HalfWidth => (width.div_ceil(2), height),
            Chroma::Quarter => (width.div_ceil(2), height.div_ceil(2)),
        }
    }

    /// Whether libjpeg-turbo widens such planes smoothly. It repeats samples where a row has fewer than three, which is not done here.
    pub fn is_smooth(&self) -> bool {
        self.chroma == Chroma::Full || self.chroma_size().0 > 2
    }

    fn check(&self, scaling: &Scaling) -> Result<(), ResizeError> {
        let (width, height) = scaling.source;
        if self.size != scaling.source {
            return Err(ResizeError::PlanesSize {
                width,
                height,
                found_width: self.size.0,
                found_height: self.size.1,
            });
        }
        let chroma = self.chroma_size();
        if !self.is_smooth() {
            return Err(ResizeError::NarrowChroma { found: chroma.0 });
        }
        let luma = (width as usize, height as usize);
        let [blue, red] = self.differences;
        for (what, plane, (width, height), stride) in [
            ("luma", self.luma, luma, self.luma_stride),
            ("blue difference", blue, chroma, self.difference_stride),
            ("red difference", red, chroma, self.difference_stride),
        ] {
            // Rows that overlap are refused with the planes that are too short.
            let expected = stride
                .max(width)
                .saturating_mul(height - 1)
                .saturating_add(width);
            let found = if stride < width { 0 } else { plane.len() };
            if found < expected {
                return Err(ResizeError::BufferLength {
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// Samples of row `y`: luma, and for both differences the row that it lies in and the next nearest. `first` is where the walk down the rows began.
    fn row(&self, y: usize, first: usize) -> ycc::Row<'_> {
        let (width, height) = self.chroma_size();
        let (near, far) = match self.chroma {
            Chroma::Full | Chroma::HalfWidth => (y, y),
            Chroma::Quarter if y.is_multiple_of(2) => (y / 2, (y / 2).saturating_sub(1)),
            Chroma::Quarter => (y / 2, (y / 2 + 1).min(height - 1)),
        };
        let samples = |plane: usize, line: usize| {
            &self.differences[plane][line * self.difference_stride..][..width]
        };
        ycc::Row {
            luma: &self.luma[y * self.luma_stride..][..self.size.0 as usize],
            near: [samples(0, near), samples(1, near)],
            far: [samples(0, far), samples(1, far)],
            chroma: self.chroma,
            // An even row's far chroma row is the near one of the row before, and the other way round.
            exchanged: self.chroma == Chroma::Quarter && y.is_multiple_of(2) && y > first,
            ahead: (self.luma_stride, self.difference_stride),
        }
    }
}

impl Resizer {
    /// Whether [`Self::resize_ycc`] has fast kernels here: with AVX-512. Elsewhere decoding to RGB and resizing that takes less time.
    pub fn prefers_planes(&self) -> bool {
        self.backend == Backend::Avx512
    }

    /// Resizes the planes of a JPEG to interleaved RGB in `target`, which holds exactly [`Scaling::output_size`] pixels.
    ///
    /// The same bytes as converting all of it to RGB first.
    pub fn resize_ycc(
        &mut self,
        scaling: &Scaling,
        planes: &YccPlanes<'_>,
        target: &mut [u8],
    ) -> Result<(), ResizeError> {
        scaling.check()?;
        planes.check(scaling)?;
        let width = planes.size.0 as usize;
        let output = checked(scaling, 3, width * planes.size.1 as usize * 3)?;
        check_length("destination", output, target.len())?;
        let (Some(across), Some(down), true) = (
            scaling.horizontal(),
            scaling.vertical(),
            scaling.horizontal_first(),
        ) else {
            return self.resize_converted(scaling, planes, target);
        };
        prepare(&mut self.horizontal, Some(across), 1, Some(self.backend))?;
        prepare(&mut self.vertical, Some(down), 1, None)?;
        let (Some(across), Some(down)) = (&self.horizontal, &self.vertical) else {
            return Ok(());
        };
        // A region between two rows' centres may take nothing from any row.
        if down.reach.0 == down.reach.1 {
            return self.resize_converted(scaling, planes, target);
        }
        let outputs = across.coefficients.spans.len();
        // Red, green and blue of a row lie one behind the other, with the padding between: the vertical pass takes them as one row.
        let padded = outputs + SLACK;
        let row = 3 * padded;
        let lines = down.reach.1 - down.reach.0;
        let stride = ycc::padded(width.max(across.reach.0 + across.packed.reach));
        let band = kernel::aligned(&mut self.band, BAND * 3 * stride);
        grow(&mut self.first_pass, lines * row);
        let mut finished = 0;
        for first in (0..lines).step_by(BAND) {
            let count = BAND.min(lines - first);
            for (y, room) in band.chunks_exact_mut(3 * stride).take(count).enumerate() {
                let row = planes.row(down.reach.0 + first + y, down.reach.0);
                ycc::to_planes(self.backend, &row, &mut self.sums, room, stride);
            }
            kernel::horizontal(
                1,
                Rows {
                    data: &band[across.reach.0..],
                    stride,
                    count: count * 3,
                },
                &across.coefficients,
                &across.packed,
                RowsMut {
                    data: &mut self.first_pass[first * row..],
                    stride: padded,
                },
                &mut self.scratch,
            );
            // What can be finished is, while its rows are in the near caches.
            let ready = down.coefficients.spans[finished..]
                .iter()
                .take_while(|span| span.start + span.len <= first + count)
                .count();
            grow(&mut self.last_pass, ready * row);
            kernel::vertical(
                self.backend,
                row,
                Rows {
                    data: &self.first_pass[..(first + count) * row],
                    stride: row,
                    count: first + count,
                },
                &down.coefficients,
                finished..finished + ready,
                RowsMut {
                    data: &mut self.last_pass,
                    stride: row,
                },
            );
            let rest = target.chunks_exact_mut(outputs * 3).skip(finished);
            for (out, row) in rest.zip(self.last_pass.chunks_exact(row).take(ready)) {
                let planes = [row, &row[padded..], &row[2 * padded..]];
                ycc::interleave(self.backend, planes, out);
            }
            finished += ready;
        }
        Ok(())
    }

    /// The plain way, for scalings that lack a pass or run the vertical one first.
    fn resize_converted(
        &mut self,
        scaling: &Scaling,
        planes: &YccPlanes<'_>,
        target: &mut [u8],
    ) -> Result<(), ResizeError> {
        let (width, height) = (planes.size.0 as usize, planes.size.1 as usize);
        let stride = ycc::padded(width);
        grow(&mut self.band, 3 * stride);
        let mut pixels = vec![0; width * height * 3];
        for (y, out) in pixels.chunks_exact_mut(width * 3).enumerate() {
            let row = planes.row(y, 0);
            ycc::to_planes(self.backend, &row, &mut self.sums, &mut self.band, stride);
            let band = &self.band;
            ycc::interleave(
                self.backend,
                [band, &band[stride..], &band[2 * stride..]],
                out,
            );
        }
        self.resize(scaling, 3, &pixels, target)
    }
}

#[cfg(test)]
mod tests;
