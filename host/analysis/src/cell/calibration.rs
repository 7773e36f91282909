//! Calibration of a cell in detail: the metrics beyond ECE, the scores moved back to the training prior, the bins.

use super::rows::TrainCounts;
use super::{Columns, MetricEntry};
use focus_metrics::{
    Estimate, MetricError, MetricSpec, MetricValue, Missing, Plan, Scored, bootstrap, metric,
    prior_shifted, reliability_bins,
};
use serde::Serialize;

/// Calibration in detail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// `ece_debiased`, `calibration_slope`, `calibration_intercept`, in the order of the metrics' listing.
    pub metrics: Vec<MetricEntry>,
    /// Of a probe fitted with balanced class weights: its scores moved back to the prior of its training split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_corrected: Option<PriorCorrected>,
}

/// Scores whose logit is shifted by log(n+ / n-) of the training split. Decisions stay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PriorCorrected {
    /// n+ of the training split.
    pub train_pos: u64,
    /// n- of the training split.
    pub train_neg: u64,
    /// `ece_prior_corrected`, `brier_prior_corrected`.
    pub metrics: Vec<MetricEntry>,
}

/// Metrics of shifted scores: the metric, and its id here.
const SHIFTED: [(&str, &str); 2] = [
    ("ece", "ece_prior_corrected"),
    ("brier", "brier_prior_corrected"),
];

impl PriorCorrected {
    /// Shifts the scores and computes anew.
    pub(super) fn of(
        rows: &Columns,
        train: TrainCounts,
        plan: &Plan<'_>,
    ) -> Result<Self, MetricError> {
        let (positives, negatives) = (train.positives, train.negatives);
        let metrics = match prior_shifted(&rows.scores, positives, negatives) {
            Ok(scores) => {
                let shifted = Scored::new(&rows.labels, &rows.decisions, &scores)?;
                let specs: Vec<&MetricSpec> = SHIFTED
                    .iter()
                    .map(|(id, _)| metric(id).expect("a registered metric"))
                    .collect();
                let estimates = bootstrap(&shifted, &specs, plan)?;
                SHIFTED
                    .iter()
                    .zip(&estimates)
                    .map(|((_, id), estimate): (_, &Estimate)| MetricEntry::estimated(id, estimate))
                    .collect()
            }
            Err(MetricError::NotAProbability { .. }) => SHIFTED
                .iter()
                .map(|(_, id)| {
                    MetricEntry::plain(id, MetricValue::Missing(Missing::ScoreOutOfRange))
                })
                .collect(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            train_pos: positives,
            train_neg: negatives,
            metrics,
        })
    }
}

/// One bin of the reliability diagram that holds rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BinEntry {
    /// Scores in [bin / 10, (bin + 1) / 10); the last bin also holds 1.
    pub bin: usize,
    /// Rows.
    pub n: u64,
    /// Of these, positive.
    pub n_pos: u64,
    /// Mean score.
    pub mean_score: f64,
    /// Share of positives.
    pub positive_rate: f64,
}

/// The bins that hold rows; none where a score is no probability or there is none.
pub(super) fn bins(rows: &Scored<'_>) -> Vec<BinEntry> {
    let Ok(bins) = reliability_bins(rows.tally()) else {
        return Vec::new();
    };
    bins.iter()
        .enumerate()
        .filter_map(|(bin, found)| {
            Some(BinEntry {
                bin,
                n: found.rows,
                n_pos: found.positives,
                mean_score: found.mean_score()?,
                positive_rate: found.positive_rate()?,
            })
        })
        .collect()
}
