//! Applies a fitted probe to embeddings. It must not know how it was fitted.

use serde::{Deserialize, Serialize};

use crate::{Fit, ProbeError};

/// A probe's answer for one embedding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// `w.z + b`.
    pub logit: f64,
    /// `1 / (1 + exp(-logit))`, from 0 to 1: the positive-class score.
    pub probability: f64,
}

impl Score {
    fn of(logit: f64) -> Self {
        let tail = (-logit.abs()).exp();
        Self {
            logit,
            probability: if logit >= 0.0 {
                1.0 / (1.0 + tail)
            } else {
                tail / (1.0 + tail)
            },
        }
    }

    /// The predicted label: `logit > 0`.
    pub fn label(self) -> bool {
        self.logit > 0.0
    }
}

impl Fit {
    /// Scores `embeddings`, row-major, of the width fitted on, normalising each as in the fit.
    ///
    /// A row's score does not depend on the rows beside it. It is computed on the CPU whatever device fitted the probe:
    /// one product per row costs less than sending the row anywhere.
    pub fn scores(&self, embeddings: &[f32]) -> Result<Vec<Score>, ProbeError> {
        let expected = self.weights.len();
        if expected == 0 || !embeddings.len().is_multiple_of(expected) {
            return Err(ProbeError::Width {
                expected,
                values: embeddings.len(),
            });
        }
        Ok(
            crate::host::logits(embeddings, &self.weights, self.intercept)?
                .into_iter()
                .map(Score::of)
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_is_negative_and_extremes_stay_probabilities() {
        let tie = Score::of(0.0);
        assert!(!tie.label() && tie.probability == 0.5);
        assert_eq!(Score::of(-1e6).probability, 0.0);
        assert_eq!(Score::of(1e6).probability, 1.0);
        assert!((Score::of(2.0).probability + Score::of(-2.0).probability - 1.0).abs() < 1e-15);
    }
}
