//! The "Overall" block of the method-aware means (the paper's Table 3): each task's mean, weighted by the number of
//! datasets it was averaged over. Owns the weights as published and the weighted mean. It must not know how a task's
//! own mean came about.

/// Column kinds of Table 3, which differ in how many datasets each task brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Accuracy, AUROC, AUPRC, ECE: every dataset.
    Performance,
    /// Datasets with age or sex.
    Fairness,
    /// Datasets with image quality.
    Quality,
}

impl Axis {
    /// Weights of binary DR, referable DR and glaucoma, as published: their dataset-task pairs.
    pub fn published_weights(self) -> [u32; 3] {
        match self {
            Self::Performance => [7, 7, 5],
            Self::Fairness => [2, 2, 3],
            Self::Quality => [1, 1, 1],
        }
    }
}

/// Weighted mean over tasks. A missing task takes its weight with it; none when no weight is left.
pub fn overall(tasks: &[Option<f64>], weights: &[u32]) -> Option<f64> {
    debug_assert_eq!(tasks.len(), weights.len(), "one weight for each task");
    let present = || {
        tasks
            .iter()
            .zip(weights)
            .filter_map(|(task, &weight)| Some(((*task)?, weight)))
    };
    let weight: u64 = present().map(|(_, weight)| u64::from(weight)).sum();
    let sum: f64 = present()
        .map(|(task, weight)| task * f64::from(weight))
        .sum();
    (weight > 0).then(|| sum / weight as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_task_takes_its_weight_with_it() {
        assert_eq!(
            overall(&[Some(1.0), Some(0.0), None], &[3, 1, 100]),
            Some(0.75)
        );
        assert_eq!(overall(&[None, None, None], &[7, 7, 5]), None);
        assert_eq!(overall(&[Some(0.5)], &[0]), None);
    }
}
