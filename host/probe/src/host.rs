//! The objective on the CPU: row blocks of the candle tensor's own storage, spread over rayon's threads and added up in
//! a fixed order, so that any number of threads gives the same bits. It must not know the optimiser.

use candle_core::{CpuStorage, Storage, Tensor};
use pulp::Arch;
use rayon::prelude::*;

use crate::kernel::{Curve, Evaluate, Logits, Real, Rows, SumOfSquares, Totals};
use crate::objective::{Costs, Objective, Point, Precision, add_scaled, dot};
use crate::{Features, ProbeError};

/// Most blocks, and so most threads that help.
const MAX_BLOCKS: usize = 32;
/// Fewest rows in a block: clearing and adding its sums must stay small beside the block's own work.
const MIN_BLOCK_ROWS: usize = 64;
/// Fewest values in a pass that are worth waking other threads for.
const PARALLEL_VALUES: usize = 1 << 15;
/// Rows scored by one task.
const SCORED_ROWS: usize = 256;
/// Norms that a single-precision pass handles without overflow or loss.
const SINGLE_RANGE: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// One block's sums; kept between passes.
struct Block {
    totals: Totals,
    gradient: Vec<f64>,
    pull: Vec<f64>,
    single: Vec<f32>,
}

/// One block with its number, its labels and its rows' `D_i`.
type Share<'a> = ((usize, &'a mut Block), (&'a [bool], &'a mut [f64]));

pub(crate) struct HostObjective<'a> {
    features: &'a Features,
    labels: &'a [bool],
    costs: Costs,
    block_rows: usize,
    blocks: Vec<Block>,
    /// `D_i` of the last evaluated point and of the settled one.
    latest: Vec<f64>,
    settled: Vec<f64>,
    arch: Arch,
}

impl<'a> HostObjective<'a> {
    pub fn new(features: &'a Features, labels: &'a [bool], costs: Costs) -> Self {
        let rows = labels.len();
        let block_rows = rows
            .div_ceil(MAX_BLOCKS)
            .max(MIN_BLOCK_ROWS)
            .next_multiple_of(4);
        let width = features.width;
        let block = || Block {
            totals: Totals::default(),
            gradient: vec![0.0; width],
            pull: vec![0.0; width],
            single: vec![0.0; width],
        };
        Self {
            features,
            labels,
            costs,
            block_rows,
            blocks: std::iter::repeat_with(block)
                .take(rows.div_ceil(block_rows))
                .collect(),
            latest: vec![0.0; rows],
            settled: vec![0.0; rows],
            arch: Arch::new(),
        }
    }
}

impl Objective for HostObjective<'_> {
    fn evaluate(&mut self, point: &mut Point) -> Result<(), ProbeError> {
        let (features, costs, arch, size) = (self.features, self.costs, self.arch, self.block_rows);
        let (weights, intercept) = (&point.weights, point.intercept);
        with_values(&features.values, |values| {
            let work = |((index, block), (labels, curvatures)): Share<'_>| {
                block.gradient.fill(0.0);
                block.pull.fill(0.0);
                let rows = block_of(features, values, index * size, labels.len());
                let (gradient, pull) = (&mut block.gradient[..], &mut block.pull[..]);
                block.totals = arch.dispatch(Evaluate {
                    rows,
                    labels,
                    costs,
                    weights,
                    intercept,
                    gradient,
                    pull,
                    curvatures,
                });
            };
            if values.len() < PARALLEL_VALUES {
                self.blocks
                    .iter_mut()
                    .enumerate()
                    .zip(self.labels.chunks(size).zip(self.latest.chunks_mut(size)))
                    .for_each(work);
            } else {
                let rows = self
                    .labels
                    .par_chunks(size)
                    .zip(self.latest.par_chunks_mut(size));
                self.blocks
                    .par_iter_mut()
                    .enumerate()
                    .zip(rows)
                    .for_each(work);
            }
        })?;
        point.gradient.copy_from_slice(&point.weights);
        point.pull.fill(0.0);
        let mut totals = Totals::default();
        for block in &self.blocks {
            totals.loss += block.totals.loss;
            totals.slope += block.totals.slope;
            totals.curvature += block.totals.curvature;
            add_scaled(&mut point.gradient, 1.0, &block.gradient);
            add_scaled(&mut point.pull, 1.0, &block.pull);
        }
        point.loss = 0.5 * dot(&point.weights, &point.weights) + totals.loss;
        point.intercept_gradient = totals.slope;
        point.intercept_curvature = totals.curvature;
        Ok(())
    }

    fn curvature(
        &mut self,
        direction: &[f64],
        shift: f64,
        precision: Precision,
        out: &mut [f64],
    ) -> Result<(), ProbeError> {
        if precision == Precision::Double {
            return self.curve(direction, shift, 1.0, |block| &mut block.gradient, out);
        }
        // Search directions shrink with the gradient; at unit length they keep clear of f32's ends.
        let length = dot(direction, direction).sqrt();
        if length == 0.0 {
            out.fill(0.0);
            return Ok(());
        }
        let unit: Vec<f32> = direction
            .iter()
            .map(|value| (value / length) as f32)
            .collect();
        self.curve(
            &unit,
            shift / length,
            length,
            |block| &mut block.single,
            out,
        )
    }

    fn settle(&mut self) -> Result<(), ProbeError> {
        self.settled.copy_from_slice(&self.latest);
        Ok(())
    }

    fn precision(&self) -> Precision {
        let fits = |&inverse: &f64| inverse == 0.0 || SINGLE_RANGE.contains(&inverse);
        if self.features.inverse_norms.iter().all(fits) {
            Precision::Single
        } else {
            Precision::Double
        }
    }
}

impl HostObjective<'_> {
    fn curve<R: Real>(
        &mut self,
        direction: &[R],
        shift: f64,
        scale: f64,
        sums: impl Fn(&mut Block) -> &mut Vec<R> + Sync,
        out: &mut [f64],
    ) -> Result<(), ProbeError> {
        let (features, arch, size) = (self.features, self.arch, self.block_rows);
        with_values(&features.values, |values| {
            let work = |((index, block), curvatures): ((usize, &mut Block), &[f64])| {
                let out = sums(block);
                out.fill(R::ZERO);
                let rows = block_of(features, values, index * size, curvatures.len());
                arch.dispatch(Curve {
                    rows,
                    curvatures,
                    direction,
                    shift,
                    out,
                });
            };
            if values.len() < PARALLEL_VALUES {
                self.blocks
                    .iter_mut()
                    .enumerate()
                    .zip(self.settled.chunks(size))
                    .for_each(work);
            } else {
                self.blocks
                    .par_iter_mut()
                    .enumerate()
                    .zip(self.settled.par_chunks(size))
                    .for_each(work);
            }
        })?;
        out.fill(0.0);
        for block in &mut self.blocks {
            for (out, sum) in out.iter_mut().zip(sums(block).iter()) {
                *out += sum.to_f64();
            }
        }
        for out in out {
            *out *= scale;
        }
        Ok(())
    }
}

fn block_of<'a>(features: &'a Features, values: &'a [f32], first: usize, count: usize) -> Rows<'a> {
    let width = features.width;
    Rows {
        values: &values[first * width..(first + count) * width],
        width,
        inverse_norms: &features.inverse_norms[first..first + count],
    }
}

fn with_values<T>(tensor: &Tensor, work: impl FnOnce(&[f32]) -> T) -> Result<T, ProbeError> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(CpuStorage::F32(values)) = &*storage else {
        let text = "the CPU objective needs an f32 tensor on the CPU".to_owned();
        return Err(candle_core::Error::Msg(text).into());
    };
    let start = layout.start_offset();
    Ok(work(&values[start..start + layout.shape().elem_count()]))
}

/// `1 / |row|` in f64 for each row, 0 for a row of zeros; an error names the first value that is not finite.
pub(crate) fn inverse_norms(embeddings: &[f32], width: usize) -> Result<Vec<f64>, ProbeError> {
    let arch = Arch::new();
    let inverse = |row: &[f32]| match arch.dispatch(SumOfSquares(row)) {
        0.0 => 0.0,
        squares => 1.0 / squares.sqrt(),
    };
    let inverse_norms: Vec<f64> = if embeddings.len() < PARALLEL_VALUES {
        embeddings.chunks(width).map(inverse).collect()
    } else {
        embeddings
            .par_chunks(width)
            .with_min_len(64)
            .map(inverse)
            .collect()
    };
    for (row, &inverse) in inverse_norms.iter().enumerate() {
        // The sum of an infinite row is infinite, its inverse 0; of a NaN row NaN.
        if inverse.is_normal() {
            continue;
        }
        let values = &embeddings[row * width..(row + 1) * width];
        if let Some(column) = values.iter().position(|value| !value.is_finite()) {
            return Err(ProbeError::NotFinite {
                row,
                column,
                value: values[column],
            });
        }
    }
    Ok(inverse_norms)
}

/// Each embedding's logit under `(weights, intercept)`.
pub(crate) fn logits(
    embeddings: &[f32],
    weights: &[f64],
    intercept: f64,
) -> Result<Vec<f64>, ProbeError> {
    let width = weights.len();
    let inverse_norms = inverse_norms(embeddings, width)?;
    let arch = Arch::new();
    let mut logits = vec![0.0; inverse_norms.len()];
    let inputs = embeddings
        .par_chunks(width * SCORED_ROWS)
        .zip(inverse_norms.par_chunks(SCORED_ROWS));
    logits
        .par_chunks_mut(SCORED_ROWS)
        .zip(inputs)
        .for_each(|(out, (values, inverse_norms))| {
            arch.dispatch(Logits {
                rows: Rows {
                    values,
                    width,
                    inverse_norms,
                },
                weights,
                intercept,
                out,
            });
        });
    Ok(logits)
}
