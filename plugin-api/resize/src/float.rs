//! The two passes on `f32`: sums in `f64`, rounded to `f32` after each pass, as Pillow's mode `F`. Plain code: the cards that want it are few.

use crate::coefficients::Coefficients;

/// Resamples each of `rows` rows of `width` pixels to the outputs of `table`.
pub(crate) fn horizontal(
    source: &[f32],
    width: usize,
    channels: usize,
    table: &Coefficients,
) -> Vec<f32> {
    let mut out = Vec::with_capacity(source.len() / width * table.spans.len());
    for row in source.chunks_exact(width * channels) {
        for (output, span) in table.spans.iter().enumerate() {
            let taps = &row[span.start * channels..];
            for channel in 0..channels {
                let values = taps.iter().skip(channel).step_by(channels);
                let sum = values
                    .zip(table.weights_of(output))
                    .fold(0.0, |sum, (&value, weight)| sum + f64::from(value) * weight);
                out.push(sum as f32);
            }
        }
    }
    out
}

/// Resamples columns of rows of `row` values.
pub(crate) fn vertical(source: &[f32], row: usize, table: &Coefficients) -> Vec<f32> {
    let mut out = Vec::with_capacity(row * table.spans.len());
    let mut sums = vec![0.0_f64; row];
    for (output, span) in table.spans.iter().enumerate() {
        sums.fill(0.0);
        for (tap, weight) in table.weights_of(output).iter().enumerate() {
            for (sum, &value) in sums.iter_mut().zip(&source[(span.start + tap) * row..]) {
                *sum += f64::from(value) * weight;
            }
        }
        out.extend(sums.iter().map(|&sum| sum as f32));
    }
    out
}
