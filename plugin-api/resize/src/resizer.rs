//! Runs a scaling: checks, chooses passes, keeps tables and buffers for the next image. Knows no files and no colours.

use crate::coefficients::{Axis, Coefficients};
use crate::kernel::{self, Backend, Packed, Rows, RowsMut, SLACK};
use crate::{Filter, ResizeError, Scaling, float};

/// A resizer to keep: images of one size after another share coefficient tables and buffers. One per thread.
#[derive(Debug)]
pub struct Resizer {
    pub(crate) backend: Backend,
    pub(crate) horizontal: Option<Table>,
    pub(crate) vertical: Option<Table>,
    pub(crate) first_pass: Vec<u8>,
    pub(crate) last_pass: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
    /// Planes of a few rows, and room for widening their chroma.
    pub(crate) band: Vec<u8>,
    pub(crate) sums: Vec<i16>,
}

/// A coefficient table with what it was made for.
#[derive(Debug)]
pub(crate) struct Table {
    axis: Axis,
    channels: usize,
    pub coefficients: Coefficients,
    /// Empty for the vertical pass.
    pub packed: Packed,
    /// First source pixel and one past the last; the table's spans are relative to the first.
    pub reach: (usize, usize),
}

impl Default for Resizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Resizer {
    /// With the best instruction set that this processor has.
    pub fn new() -> Self {
        Self::build(Backend::best())
    }

    /// With a given instruction set: for tests and measurements, the result is the same.
    pub fn with_backend(backend: Backend) -> Result<Self, ResizeError> {
        Ok(Self::build(backend.require()?))
    }

    fn build(backend: Backend) -> Self {
        Self {
            backend,
            horizontal: None,
            vertical: None,
            first_pass: Vec::new(),
            last_pass: Vec::new(),
            scratch: Vec::new(),
            band: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Resizes `source` (rows of interleaved pixels, tightly packed) into `target`, which holds exactly [`Scaling::output_size`] pixels.
    ///
    /// `channels` is 1, 3 or 4.
    pub fn resize(
        &mut self,
        scaling: &Scaling,
        channels: usize,
        source: &[u8],
        target: &mut [u8],
    ) -> Result<(), ResizeError> {
        let output = checked(scaling, channels, source.len())?;
        check_length("destination", output, target.len())?;
        prepare(
            &mut self.horizontal,
            scaling.horizontal(),
            channels,
            Some(self.backend),
        )?;
        prepare(&mut self.vertical, scaling.vertical(), channels, None)?;

        let window = scaling.full_window();
        let (width, height) = (window.width as usize, window.height as usize);
        let row = width * channels;
        let source_stride = scaling.source.0 as usize * channels;
        // Without a pass along an axis the window is a plain crop of the source along it.
        let columns = self
            .horizontal
            .as_ref()
            .map_or((window.x as usize, window.x as usize + width), |table| {
                table.reach
            });
        let lines = self
            .vertical
            .as_ref()
            .map_or((window.y as usize, window.y as usize + height), |table| {
                table.reach
            });
        let rows = Rows {
            data: &source[lines.0 * source_stride + columns.0 * channels..],
            stride: source_stride,
            count: lines.1 - lines.0,
        };
        let padded = row + SLACK;
        let backend = self.backend;

        match (&self.horizontal, &self.vertical) {
            (None, None) => copy_rows(rows, row, target),
            (None, Some(table)) => kernel::vertical(
                backend,
                row,
                rows,
                &table.coefficients,
                0..height,
                RowsMut {
                    data: target,
                    stride: row,
                },
            ),
            (Some(table), None) => {
                grow(&mut self.last_pass, height * padded);
                let pass = RowsMut {
                    data: &mut self.last_pass,
                    stride: padded,
                };
                kernel::horizontal(
                    channels,
                    rows,
                    &table.coefficients,
                    &table.packed,
                    pass,
                    &mut self.scratch,
                );
                copy_rows(
                    Rows {
                        data: &self.last_pass,
                        stride: padded,
                        count: height,
                    },
                    row,
                    target,
                );
            }
            (Some(across), Some(down)) if scaling.horizontal_first() => {
                grow(&mut self.first_pass, rows.count * padded);
                if rows.count > 0 {
                    let pass = RowsMut {
                        data: &mut self.first_pass,
                        stride: padded,
                    };
                    kernel::horizontal(
                        channels,
                        rows,
                        &across.coefficients,
                        &across.packed,
                        pass,
                        &mut self.scratch,
                    );
                }
                let between = Rows {
                    data: &self.first_pass,
                    stride: padded,
                    count: rows.count,
                };
                kernel::vertical(
                    backend,
                    row,
                    between,
                    &down.coefficients,
                    0..height,
                    RowsMut {
                        data: target,
                        stride: row,
                    },
                );
            }
            (Some(across), Some(down)) => {
                let wide = (columns.1 - columns.0) * channels;
                grow(&mut self.first_pass, height * wide);
                kernel::vertical(
                    backend,
                    wide,
                    rows,
                    &down.coefficients,
                    0..height,
                    RowsMut {
                        data: &mut self.first_pass,
                        stride: wide,
                    },
                );
                let between = Rows {
                    data: &self.first_pass[..height * wide],
                    stride: wide,
                    count: height,
                };
                grow(&mut self.last_pass, height * padded);
                let pass = RowsMut {
                    data: &mut self.last_pass,
                    stride: padded,
                };
                kernel::horizontal(
                    channels,
                    between,
                    &across.coefficients,
                    &across.packed,
                    pass,
                    &mut self.scratch,
                );
                copy_rows(
                    Rows {
                        data: &self.last_pass,
                        stride: padded,
                        count: height,
                    },
                    row,
                    target,
                );
            }
        }
        Ok(())
    }
}

/// Resizes RGB pixels; sizes are (width, height). For many images, keep a [`Resizer`].
pub fn resize_rgb8(
    source: &[u8],
    from: (u32, u32),
    to: (u32, u32),
    filter: Filter,
) -> Result<Vec<u8>, ResizeError> {
    let scaling = Scaling::new(from, to, filter);
    let mut target = vec![0; checked(&scaling, 3, source.len())?];
    Resizer::new().resize(&scaling, 3, source, &mut target)?;
    Ok(target)
}

/// Resizes pixels of `channels` interleaved channels into a buffer of the right length.
pub fn resize_into(
    source: &[u8],
    scaling: &Scaling,
    channels: usize,
    target: &mut [u8],
) -> Result<(), ResizeError> {
    Resizer::new().resize(scaling, channels, source, target)
}

/// Resizes `f32` pixels of 1, 3 or 4 interleaved channels; values of any range, not clamped. As Pillow's mode `F`, channel by channel.
pub fn resize_f32(
    source: &[f32],
    scaling: &Scaling,
    channels: usize,
) -> Result<Vec<f32>, ResizeError> {
    checked(scaling, channels, source.len())?;
    let window = scaling.full_window();
    let mut width = scaling.source.0 as usize;
    let mut pixels = source.to_vec();
    let mut across = |pixels: Vec<f32>| -> Result<Vec<f32>, ResizeError> {
        let Some(axis) = scaling.horizontal() else {
            return Ok(pixels);
        };
        let resized = float::horizontal(&pixels, width, channels, &Coefficients::new(&axis)?);
        width = axis.count as usize;
        Ok(resized)
    };
    let down = |pixels: Vec<f32>, width: usize| -> Result<Vec<f32>, ResizeError> {
        let Some(axis) = scaling.vertical() else {
            return Ok(pixels);
        };
        Ok(float::vertical(
            &pixels,
            width * channels,
            &Coefficients::new(&axis)?,
        ))
    };
    let final_width = scaling
        .horizontal()
        .map_or(scaling.source.0, |axis| axis.count) as usize;
    pixels = if scaling.horizontal_first() {
        down(across(pixels)?, final_width)?
    } else {
        across(down(pixels, scaling.source.0 as usize)?)?
    };
    // A pass cuts its own axis; what had no pass is cut here.
    let (left, top) = (
        if scaling.horizontal().is_none() {
            window.x as usize
        } else {
            0
        },
        if scaling.vertical().is_none() {
            window.y as usize
        } else {
            0
        },
    );
    let row = window.width as usize * channels;
    let lines = pixels
        .chunks_exact(final_width * channels)
        .skip(top)
        .take(window.height as usize);
    Ok(lines
        .flat_map(|line| line[left * channels..][..row].iter().copied())
        .collect())
}

/// Checks a request; returns the number of values of the output.
pub(crate) fn checked(
    scaling: &Scaling,
    channels: usize,
    source: usize,
) -> Result<usize, ResizeError> {
    if !matches!(channels, 1 | 3 | 4) {
        return Err(ResizeError::Channels { found: channels });
    }
    scaling.check()?;
    check_length("source", values(scaling.source, channels)?, source)?;
    values(scaling.output_size(), channels)
}

pub(crate) fn check_length(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), ResizeError> {
    if expected == found {
        Ok(())
    } else {
        Err(ResizeError::BufferLength {
            what,
            expected,
            found,
        })
    }
}

fn values((width, height): (u32, u32), channels: usize) -> Result<usize, ResizeError> {
    // Room for the padding of the buffers between the passes is left too.
    (width as usize + SLACK)
        .checked_mul(height as usize)
        .and_then(|pixels| pixels.checked_mul(channels))
        .filter(|&total| isize::try_from(total).is_ok())
        .map(|_| width as usize * height as usize * channels)
        .ok_or(ResizeError::TooLarge {
            from: width,
            to: height,
        })
}

/// Makes `slot` the table of `axis`, if it is not already; laid out for a back end where it is for the horizontal pass.
pub(crate) fn prepare(
    slot: &mut Option<Table>,
    axis: Option<Axis>,
    channels: usize,
    packed_for: Option<Backend>,
) -> Result<(), ResizeError> {
    let Some(axis) = axis else {
        *slot = None;
        return Ok(());
    };
    if slot
        .as_ref()
        .is_some_and(|table| table.axis == axis && table.channels == channels)
    {
        return Ok(());
    }
    let mut coefficients = Coefficients::new(&axis)?;
    let reach = coefficients.reach();
    coefficients.shift(reach.0);
    let packed = packed_for
        .map(|backend| Packed::new(&coefficients, channels, backend))
        .unwrap_or_default();
    *slot = Some(Table {
        axis,
        channels,
        coefficients,
        packed,
        reach,
    });
    Ok(())
}

pub(crate) fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

fn copy_rows(rows: Rows<'_>, row: usize, target: &mut [u8]) {
    for (y, out) in target.chunks_exact_mut(row).enumerate() {
        out.copy_from_slice(&rows.row(y)[..row]);
    }
}
