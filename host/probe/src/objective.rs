//! What the optimiser sees: the objective's value, slopes and curvature at a point, whichever machine computes them.
//! It must not know how they are computed.

use crate::ProbeError;

/// A point `(w, b)` and what one pass over the embeddings tells about it.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub weights: Vec<f64>,
    pub intercept: f64,
    pub loss: f64,
    /// Gradient with respect to `weights`, penalty included.
    pub gradient: Vec<f64>,
    /// Gradient with respect to `intercept`.
    pub intercept_gradient: f64,
    /// Mixed second derivatives of weights and intercept: `sum_i D_i z_i`, with `D_i = c c_i p_i (1 - p_i)`.
    pub pull: Vec<f64>,
    /// Second derivative in the intercept: `sum_i D_i`.
    pub intercept_curvature: f64,
}

impl Point {
    pub fn at(weights: Vec<f64>, intercept: f64) -> Self {
        let width = weights.len();
        Self {
            weights,
            intercept,
            loss: f64::NAN,
            gradient: vec![0.0; width],
            intercept_gradient: 0.0,
            pull: vec![0.0; width],
            intercept_curvature: 0.0,
        }
    }

    pub fn gradient_norm(&self) -> f64 {
        (dot(&self.gradient, &self.gradient) + self.intercept_gradient * self.intercept_gradient)
            .sqrt()
    }
}

/// Precision of a Hessian-vector product. The gradient, which decides where the optimum is, is always f64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Single,
    Double,
}

/// The data term over a fixed set of embeddings and labels. Results are bitwise the same for any number of threads.
pub(crate) trait Objective {
    /// Fills all that `Point` tells of its `weights` and `intercept`.
    fn evaluate(&mut self, point: &mut Point) -> Result<(), ProbeError>;

    /// `out = sum_i D_i (z_i.direction - shift) z_i`, with the `D_i` of the point set by `settle`.
    fn curvature(
        &mut self,
        direction: &[f64],
        shift: f64,
        precision: Precision,
        out: &mut [f64],
    ) -> Result<(), ProbeError>;

    /// Makes the last evaluated point the one whose curvature is used.
    fn settle(&mut self) -> Result<(), ProbeError>;

    /// The cheapest precision worth trying for `curvature`.
    fn precision(&self) -> Precision;
}

/// Cost of one row of each class in the data term, `c` included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub positive: f64,
    pub negative: f64,
}

/// One row's part in the sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowTerms {
    pub loss: f64,
    /// Derivative of the loss in the logit.
    pub slope: f64,
    /// Second derivative of the loss in the logit.
    pub curvature: f64,
}

impl Costs {
    /// Terms of a row with this logit, without overflow for any finite logit.
    #[inline]
    pub fn terms(self, logit: f64, label: bool) -> RowTerms {
        let (cost, margin) = if label {
            (self.positive, logit)
        } else {
            (self.negative, -logit)
        };
        let tail = (-margin.abs()).exp();
        let wrong = if margin > 0.0 {
            tail / (1.0 + tail)
        } else {
            1.0 / (1.0 + tail)
        };
        let slope = cost * if label { -wrong } else { wrong };
        RowTerms {
            loss: cost * ((-margin).max(0.0) + tail.ln_1p()),
            slope,
            curvature: cost * tail / ((1.0 + tail) * (1.0 + tail)),
        }
    }
}

/// Inner product with eight running sums added in a fixed order.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a8.iter().zip(b8) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest
}

/// `target += factor * source`.
pub(crate) fn add_scaled(target: &mut [f64], factor: f64, source: &[f64]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target += factor * source;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_match_the_textbook_and_survive_extremes() {
        let costs = Costs {
            positive: 2.0,
            negative: 0.5,
        };
        for logit in [-3.0_f64, -0.1, 0.0, 0.7, 12.0] {
            let p = 1.0 / (1.0 + (-logit).exp());
            let up = costs.terms(logit, true);
            assert!((up.loss - 2.0 * (1.0 + (-logit).exp()).ln()).abs() < 1e-12);
            assert!((up.slope - 2.0 * (p - 1.0)).abs() < 1e-12);
            assert!((up.curvature - 2.0 * p * (1.0 - p)).abs() < 1e-12);
            let down = costs.terms(logit, false);
            assert!((down.loss - 0.5 * (1.0 + logit.exp()).ln()).abs() < 1e-12);
            assert!((down.slope - 0.5 * p).abs() < 1e-12);
        }
        for logit in [-1e300, -800.0, 800.0, 1e300] {
            for label in [false, true] {
                let terms = costs.terms(logit, label);
                assert!(
                    terms.loss.is_finite() && terms.slope.is_finite() && terms.curvature >= 0.0
                );
            }
        }
    }

    #[test]
    fn dot_of_every_length() {
        for length in 0..40 {
            let a: Vec<f64> = (0..length).map(f64::from).collect();
            assert_eq!(
                dot(&a, &vec![2.0; a.len()]),
                f64::from(length * (length - 1))
            );
        }
    }
}
