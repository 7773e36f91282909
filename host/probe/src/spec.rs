//! What is asked of a fit and how it ended. It must not know how a fit is done.

use serde::{Deserialize, Serialize};

use crate::ProbeError;

/// The objective `1/2 |w|^2 + c sum_i c_i log(1 + exp(-y_i (w.z_i + b)))` and when to stop.
///
/// `z_i` is embedding `i` divided by its Euclidean norm (a zero embedding stays zero), `y_i` is +1 or -1, and the
/// intercept `b` is not penalised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Weight of the data term against the penalty; above 0. FOCUS uses 1.
    pub c: f64,
    /// `c_i = n / (2 n_class)` when true (scikit-learn's `class_weight="balanced"`), else 1.
    pub balanced: bool,
    /// A fit has converged when the Euclidean norm of the gradient, intercept included, is at most this; 0 or more.
    pub tolerance: f64,
    /// Most Newton steps; at the limit the fit is returned with `Status::IterationLimit`.
    pub max_iterations: usize,
}

impl Default for ProbeSpec {
    fn default() -> Self {
        Self {
            c: 1.0,
            balanced: true,
            tolerance: 1e-10,
            max_iterations: 200,
        }
    }
}

impl ProbeSpec {
    /// The default with `c_i = 1`, the unweighted probe.
    pub fn unweighted() -> Self {
        Self {
            balanced: false,
            ..Self::default()
        }
    }

    pub(crate) fn check(&self) -> Result<(), ProbeError> {
        if !(self.c > 0.0 && self.c.is_finite()) {
            return Err(ProbeError::Setting {
                name: "c",
                range: "above 0 and finite",
                found: self.c,
            });
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            return Err(ProbeError::Setting {
                name: "tolerance",
                range: "0 or more and finite",
                found: self.tolerance,
            });
        }
        Ok(())
    }
}

/// How a fit ended. Anything but `Converged` must be marked wherever its scores are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The gradient's norm is at most the tolerance.
    Converged,
    /// `max_iterations` Newton steps were taken first.
    IterationLimit,
    /// No step improves the point any more: f64 arithmetic ends before the tolerance is reached.
    Stalled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        for c in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let spec = ProbeSpec {
                c,
                ..ProbeSpec::default()
            };
            assert!(matches!(
                spec.check(),
                Err(ProbeError::Setting { name: "c", .. })
            ));
        }
        for tolerance in [-1e-3, f64::NAN, f64::INFINITY] {
            let spec = ProbeSpec {
                tolerance,
                ..ProbeSpec::default()
            };
            assert!(matches!(
                spec.check(),
                Err(ProbeError::Setting {
                    name: "tolerance",
                    ..
                })
            ));
        }
    }

    #[test]
    fn status_is_a_plain_word_in_json() {
        assert_eq!(
            serde_json::to_string(&Status::IterationLimit).unwrap(),
            "\"iteration_limit\""
        );
    }
}
