//! Fits a probe and owns what a fit is. It must not know how the objective is minimised.

use candle_core::Device;
use serde::{Deserialize, Serialize};

use crate::host::HostObjective;
use crate::newton::minimise;
use crate::objective::{Costs, Objective};
use crate::spec::{ProbeSpec, Status};
use crate::tensor::TensorObjective;
use crate::{Features, ProbeError};

/// A fitted probe and the account of its fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// One weight per embedding value, for the L2-normalised embedding.
    pub weights: Vec<f64>,
    /// The unpenalised intercept.
    pub intercept: f64,
    /// How the optimiser ended.
    pub status: Status,
    /// Newton steps taken.
    pub iterations: usize,
    /// Evaluations of loss and gradient.
    pub evaluations: usize,
    /// Hessian-vector products.
    pub hessian_products: usize,
    /// Euclidean norm of the gradient at the end, intercept included.
    pub gradient_norm: f64,
    /// The objective at the end.
    pub loss: f64,
    /// Rows fitted on.
    pub rows: usize,
    /// Rows labelled true.
    pub positives: usize,
    /// Rows labelled false.
    pub negatives: usize,
    /// Rows whose embedding is all zeros; they pull on the intercept only.
    pub zero_rows: usize,
    /// What was asked for.
    pub spec: ProbeSpec,
}

/// Fits on `embeddings`, row-major with one row per label, on `device`.
///
/// A fit that did not converge is returned with its `status`, not as an error. Results are the same bits for any number
/// of rayon threads. To fit more than once on the same embeddings, prepare `Features`.
pub fn fit(
    embeddings: &[f32],
    labels: &[bool],
    spec: &ProbeSpec,
    device: &Device,
) -> Result<Fit, ProbeError> {
    spec.check()?;
    if !labels.is_empty() {
        classes(labels)?;
    }
    Features::copied(embeddings, labels.len(), device)?.fit(labels, spec)
}

impl Features {
    /// Fits a probe of `labels`, one per row, where these features are.
    pub fn fit(&self, labels: &[bool], spec: &ProbeSpec) -> Result<Fit, ProbeError> {
        spec.check()?;
        if labels.len() != self.rows() {
            return Err(ProbeError::LabelCount {
                rows: self.rows(),
                labels: labels.len(),
            });
        }
        let (positives, negatives) = classes(labels)?;
        let costs = costs(positives, negatives, spec);
        let mut objective: Box<dyn Objective + '_> =
            if self.values.device().is_cpu() && self.values.dtype() == candle_core::DType::F32 {
                Box::new(HostObjective::new(self, labels, costs))
            } else {
                Box::new(TensorObjective::new(self, labels, costs))
            };
        // The best intercept for weights 0: the logit of the weighted share of positives.
        let intercept =
            (positives as f64 * costs.positive / (negatives as f64 * costs.negative)).ln();
        let outcome = minimise(&mut *objective, self.width, intercept, spec)?;
        Ok(Fit {
            gradient_norm: outcome.point.gradient_norm(),
            loss: outcome.point.loss,
            weights: outcome.point.weights,
            intercept: outcome.point.intercept,
            status: outcome.status,
            iterations: outcome.iterations,
            evaluations: outcome.evaluations,
            hessian_products: outcome.products,
            rows: labels.len(),
            positives,
            negatives,
            zero_rows: self.zero_rows,
            spec: *spec,
        })
    }
}

/// How many labels are true and how many false; both must be there.
fn classes(labels: &[bool]) -> Result<(usize, usize), ProbeError> {
    let positives = labels.iter().filter(|&&label| label).count();
    let negatives = labels.len() - positives;
    if positives == 0 || negatives == 0 {
        return Err(ProbeError::OneClass {
            rows: labels.len(),
            positives,
            negatives,
        });
    }
    Ok((positives, negatives))
}

/// Each class's cost per row, `spec.c` included.
pub(crate) fn costs(positives: usize, negatives: usize, spec: &ProbeSpec) -> Costs {
    let share = |count: usize| {
        if spec.balanced {
            spec.c * (positives + negatives) as f64 / (2.0 * count as f64)
        } else {
            spec.c
        }
    };
    Costs {
        positive: share(positives),
        negative: share(negatives),
    }
}
