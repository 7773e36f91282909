//! One cell: counts, exclusions by reason, every metric, calibration, subgroups, in each track that applies. Pure: reads
//! what it is given. Which rows a metric sees is decided here; the metrics themselves live in `focus-metrics`.

mod analyse;
mod calibration;
mod drawn;
mod rows;
mod subgroup;
mod table;

pub(crate) use analyse::{Analysed, analyse_together, headline};
pub use analyse::{CellContext, analyse};
pub use calibration::{BinEntry, Calibration, PriorCorrected};
pub use rows::{CellRows, Columns, Row, TrackColumns, TrainCounts};
pub use subgroup::{AttributeAnalysis, GapEntry, GroupAnalysis, NullEntry, StandardisedEntry};
pub use table::metric_rows;

use crate::Track;
use focus_metrics::{Estimate, Interval, MetricValue, Missing};
use focus_store::CellKey;
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether a cell's numbers may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellStatus {
    /// They may.
    Ok,
    /// More of its test images failed than the error budget allows.
    Failed,
}

/// A cell's counts and metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellAnalysis {
    /// Which cell.
    pub cell: CellKey,
    /// Usable or not.
    pub status: CellStatus,
    /// Images the method was fitted on.
    pub train: usize,
    /// Labelled training images that have no answer and so are not in the fit.
    pub train_failed: usize,
    /// Test images with a known label.
    pub test: usize,
    /// Of these, not `ok`, by `outcome:reason`.
    pub excluded: BTreeMap<String, usize>,
    /// Per track.
    pub tracks: Vec<TrackAnalysis>,
}

impl CellAnalysis {
    /// The analysis in a track, where the cell belongs to it.
    pub fn track(&self, track: Track) -> Option<&TrackAnalysis> {
        self.tracks.iter().find(|found| found.track == track)
    }
}

/// A cell in one track.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackAnalysis {
    /// Which track.
    pub track: Track,
    /// Test images behind the metrics of scores.
    pub n: usize,
    /// Of these, positive.
    pub n_pos: usize,
    /// Of these, negative.
    pub n_neg: usize,
    /// Test images behind the metrics of decisions, where they are others: an unparseable answer counts as a wrong one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<Counts>,
    /// What the intervals resample: `patient` where every image has a patient key, else `image`; none without intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resampled: Option<&'static str>,
    /// In the order of the metrics' listing.
    pub metrics: Vec<MetricEntry>,
    /// Calibration in detail; corrected track alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// The bins behind ECE; empty where a score is no probability.
    pub reliability: Vec<BinEntry>,
    /// `age`, `sex`, `quality`: groups and gaps, or why there are none.
    pub subgroups: Vec<AttributeAnalysis>,
}

impl TrackAnalysis {
    /// The entry of a metric.
    pub fn metric(&self, id: &str) -> Option<&MetricEntry> {
        self.metrics.iter().find(|entry| entry.id == id)
    }

    /// A metric's value, where it has one.
    pub fn value(&self, id: &str) -> Option<f64> {
        self.metric(id)?.value
    }

    /// The absolute gap of an attribute, where there is one.
    pub fn gap(&self, attribute: &str, id: &str) -> Option<f64> {
        let found = self.subgroups.iter().find(|a| a.attribute == attribute)?;
        found.gaps.iter().find(|gap| gap.id == id)?.absolute
    }

    /// Rows that a metric was computed on.
    pub(crate) fn counts(&self, decisions: bool) -> Counts {
        self.decided.filter(|_| decisions).unwrap_or(Counts {
            n: self.n,
            n_pos: self.n_pos,
            n_neg: self.n_neg,
        })
    }
}

/// Rows, positive and negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Rows.
    pub n: usize,
    /// Of these, positive.
    pub n_pos: usize,
    /// Of these, negative.
    pub n_neg: usize,
}

impl Counts {
    /// Counts of these labels.
    pub fn of(labels: &[bool]) -> Self {
        let n_pos = labels.iter().filter(|label| **label).count();
        Self {
            n: labels.len(),
            n_pos,
            n_neg: labels.len() - n_pos,
        }
    }
}

/// One metric's value, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricEntry {
    /// The metric's id.
    pub id: &'static str,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// 95 % percentile interval of the bootstrap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Resamples in which the metric exists, of all that were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_resamples: Option<[u32; 2]>,
    /// Why it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'static str>,
    /// A warning about the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<&'static str>,
}

impl MetricEntry {
    /// A value without an interval.
    pub fn plain(id: &'static str, value: MetricValue) -> Self {
        Self {
            id,
            value: value.value(),
            interval: None,
            valid_resamples: None,
            missing: value.missing().map(Missing::name),
            flag: value.flag(),
        }
    }

    /// A value with its interval.
    pub fn estimated(id: &'static str, estimate: &Estimate) -> Self {
        Self {
            interval: estimate.interval.map(ends),
            valid_resamples: Some([estimate.valid, estimate.resamples]),
            ..Self::plain(id, estimate.value)
        }
    }
}

/// An interval as two numbers.
pub(crate) fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}
