//! One cell: counts, exclusions, and every metric in every track that applies.

use super::AS_PUBLISHED_SUFFIX;
use crate::eval::method;
use crate::task::Track;
use focus_metrics::{MetricError, MetricValue, Plan, Scored, Units, bootstrap, metrics};
use focus_store::{CellKey, Fold, MetricRow, Outcome, PredictionRow, Predictions};
use serde::Serialize;
use std::collections::BTreeMap;

/// Resamples behind an interval (focus-benchmark.md, section 8, corrected).
pub const RESAMPLES: u32 = 10_000;
/// Seed of the resamples; the same for every cell, so that cells on the same images are resampled alike.
pub const SEED: u64 = 33_158;

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
    /// Of these, without an answer, by `outcome:reason`.
    pub excluded: BTreeMap<String, usize>,
    /// Per track.
    pub tracks: Vec<TrackAnalysis>,
}

/// A cell in one track.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackAnalysis {
    /// Which track.
    pub track: Track,
    /// Test images behind the metrics.
    pub n: usize,
    /// Of these, positive.
    pub n_pos: usize,
    /// Of these, negative.
    pub n_neg: usize,
    /// What the intervals resample: `patient` where every image has a patient key, else `image`; none without intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resampled: Option<&'static str>,
    /// In the order of the metrics' listing.
    pub metrics: Vec<MetricEntry>,
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

/// The cell's analysis. `error_budget`: share of labelled test images that may lack an answer. `published_apart`: the run has
/// a cell of its own for the published labels, because they differ (the rows here alone cannot tell: an image whose label is
/// unknown in this track is not among them).
pub fn analyse(
    predictions: &Predictions,
    error_budget: f64,
    published_apart: bool,
) -> Result<CellAnalysis, MetricError> {
    let tracks = tracks_of(predictions, published_apart);
    let label = |row: &PredictionRow| {
        if tracks[0] == Track::Corrected {
            row.label
        } else {
            row.published_label
        }
    };
    let test: Vec<_> = predictions
        .fold(Fold::Test)
        .filter(|row| label(row).is_some())
        .collect();
    let mut excluded = BTreeMap::new();
    for row in test.iter().filter(|row| row.outcome != Outcome::Ok) {
        let reason = row.reason.as_deref().unwrap_or("unknown");
        *excluded
            .entry(format!("{}:{reason}", row.outcome.as_str()))
            .or_insert(0) += 1;
    }
    let failed: usize = excluded.values().sum();
    let over = failed as f64 > error_budget * test.len() as f64;
    Ok(CellAnalysis {
        cell: predictions.cell.clone(),
        status: if over {
            CellStatus::Failed
        } else {
            CellStatus::Ok
        },
        train: predictions
            .fold(Fold::Train)
            .filter(|row| row.outcome == Outcome::Ok)
            .count(),
        train_failed: predictions
            .fold(Fold::Train)
            .filter(|row| row.outcome != Outcome::Ok)
            .count(),
        test: test.len(),
        excluded,
        tracks: tracks
            .iter()
            .map(|&track| in_track(predictions, track))
            .collect::<Result<_, _>>()?,
    })
}

/// Corrected always; as published where the method belongs to that track and the labels are the same there. A cell fitted
/// on the published labels, because they differ, is of that track alone.
fn tracks_of(predictions: &Predictions, published_apart: bool) -> Vec<Track> {
    let name = predictions.cell.method.as_str();
    if name.ends_with(AS_PUBLISHED_SUFFIX) {
        return vec![Track::AsPublished];
    }
    let published = method::all()
        .iter()
        .any(|m| m.id == name && m.tracks.contains(&Track::AsPublished));
    if published && !published_apart {
        Track::ALL.to_vec()
    } else {
        vec![Track::Corrected]
    }
}

fn in_track(predictions: &Predictions, track: Track) -> Result<TrackAnalysis, MetricError> {
    let (mut labels, mut predicted, mut scores, mut patients) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in predictions.fold(Fold::Test) {
        let label = match track {
            Track::Corrected => row.label,
            Track::AsPublished => row.published_label,
        };
        if let (Some(label), Some(decision), Some(score)) = (label, row.predicted, row.score) {
            labels.push(label);
            predicted.push(decision);
            scores.push(score);
            patients.push(row.patient.as_deref());
        }
    }
    let scored = Scored::new(&labels, &predicted, &scores)?;
    let specs: Vec<_> = metrics()
        .into_iter()
        .filter(|spec| track == Track::Corrected || spec.as_published)
        .collect();
    let mut entries: Vec<_> = specs
        .iter()
        .map(|spec| entry(spec.id, spec.compute(&scored)))
        .collect();
    let mut resampled = None;
    // The paper gives its cells no intervals; they belong to the corrected track.
    if track == Track::Corrected && !scored.is_empty() {
        let clusters = patient_numbers(&patients);
        resampled = Some(if clusters.is_some() {
            "patient"
        } else {
            "image"
        });
        let units = clusters.as_deref().map_or(Units::Images, Units::Patients);
        let plan = Plan {
            resamples: RESAMPLES,
            seed: SEED,
            units,
        };
        for (entry, estimate) in entries.iter_mut().zip(bootstrap(&scored, &specs, &plan)?) {
            entry.interval = estimate
                .interval
                .map(|interval| [interval.low, interval.high]);
            entry.valid_resamples = Some([estimate.valid, estimate.resamples]);
        }
    }
    let n_pos = labels.iter().filter(|label| **label).count();
    let (n, n_neg) = (labels.len(), labels.len() - n_pos);
    Ok(TrackAnalysis {
        track,
        n,
        n_pos,
        n_neg,
        resampled,
        metrics: entries,
    })
}

fn entry(id: &'static str, value: MetricValue) -> MetricEntry {
    let empty = MetricEntry {
        id,
        value: None,
        interval: None,
        valid_resamples: None,
        missing: None,
        flag: None,
    };
    match value {
        MetricValue::Value { value, flag } => MetricEntry {
            value: Some(value),
            flag,
            ..empty
        },
        MetricValue::Missing(missing) => MetricEntry {
            missing: Some(missing.name()),
            ..empty
        },
    }
}

/// A number for each row's patient; `None` unless every row has one.
fn patient_numbers(patients: &[Option<&str>]) -> Option<Vec<u32>> {
    let mut numbers = BTreeMap::new();
    patients
        .iter()
        .map(|patient| {
            let next = numbers.len() as u32;
            patient.map(|patient| *numbers.entry(patient).or_insert(next))
        })
        .collect()
}

/// The long form for `metrics.parquet`.
pub fn metric_rows(cells: &[CellAnalysis]) -> Vec<MetricRow> {
    let mut rows = Vec::new();
    for cell in cells {
        for track in &cell.tracks {
            rows.extend(track.metrics.iter().map(|entry| MetricRow {
                cell: cell.cell.clone(),
                track: track.track.name().into(),
                subset: "test".into(),
                metric: entry.id.into(),
                value: entry.value,
                missing: entry.missing.map(str::to_owned),
                ci_low: entry.interval.map(|[low, _]| low),
                ci_high: entry.interval.map(|[_, high]| high),
                p_value: None,
                flags: entry.flag.iter().map(|flag| (*flag).to_owned()).collect(),
                n: track.n as u32,
                n_pos: track.n_pos as u32,
                n_neg: track.n_neg as u32,
            }));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sample: u32, fold: Fold, label: Option<bool>, score: Option<f64>) -> PredictionRow {
        PredictionRow {
            sample,
            id: format!("s{sample}"),
            fold,
            split: None,
            patient: None,
            label,
            published_label: label,
            score,
            predicted: score.map(|s| s > 0.5),
            outcome: if score.is_some() {
                Outcome::Ok
            } else {
                Outcome::ModelError
            },
            reason: score.is_none().then(|| "crash".into()),
            text: None,
        }
    }

    fn cell(method: &str, rows: Vec<PredictionRow>) -> Predictions {
        Predictions::new(CellKey::new("d", "binary_dr", method, "m"), rows, vec![])
            .expect("valid rows")
    }

    #[test]
    fn unknown_labels_and_failures_leave_the_metrics_but_not_the_count() {
        let rows = vec![
            row(0, Fold::Train, Some(true), Some(0.9)),
            row(1, Fold::Test, Some(true), Some(0.8)),
            row(2, Fold::Test, Some(false), Some(0.3)),
            row(3, Fold::Test, None, Some(0.99)),
            row(4, Fold::Test, Some(false), None),
        ];
        let found = analyse(&cell("linear_probing", rows), 0.5, false).expect("analyses");
        assert_eq!((found.train, found.test), (1, 3));
        assert_eq!(
            found.excluded,
            BTreeMap::from([("model_error:crash".into(), 1)])
        );
        assert_eq!(found.status, CellStatus::Ok);
        assert_eq!(
            found.tracks.iter().map(|t| t.track).collect::<Vec<_>>(),
            Track::ALL
        );
        assert_eq!((found.tracks[0].n, found.tracks[0].n_pos), (2, 1));
        let auroc = found.tracks[0]
            .metrics
            .iter()
            .find(|m| m.id == "auroc")
            .expect("there");
        assert_eq!(auroc.value, Some(1.0));
    }

    #[test]
    fn too_many_failures_fail_the_cell() {
        let rows = vec![
            row(1, Fold::Test, Some(true), Some(0.8)),
            row(2, Fold::Test, Some(false), None),
        ];
        assert_eq!(
            analyse(&cell("linear_probing", rows), 0.49, false)
                .expect("analyses")
                .status,
            CellStatus::Failed
        );
    }

    #[test]
    fn a_cell_with_a_published_twin_is_of_the_corrected_track_alone() {
        let rows = vec![
            row(1, Fold::Test, Some(true), Some(0.8)),
            row(2, Fold::Test, Some(false), Some(0.3)),
        ];
        let tracks = |method: &str, apart: bool| -> Vec<Track> {
            let found = analyse(&cell(method, rows.clone()), 0.0, apart).expect("analyses");
            found.tracks.iter().map(|t| t.track).collect()
        };
        assert_eq!(tracks("linear_probing", false), Track::ALL);
        assert_eq!(tracks("linear_probing", true), [Track::Corrected]);
        assert_eq!(
            tracks("linear_probing+as_published", true),
            [Track::AsPublished]
        );
        assert_eq!(
            tracks("linear_probing_unweighted", false),
            [Track::Corrected]
        );
    }

    #[test]
    fn one_class_is_said_not_averaged() {
        let found = analyse(
            &cell(
                "linear_probing",
                vec![row(1, Fold::Test, Some(true), Some(0.8))],
            ),
            0.0,
            false,
        )
        .expect("analyses");
        let auroc = found.tracks[0]
            .metrics
            .iter()
            .find(|m| m.id == "auroc")
            .expect("there");
        assert_eq!((auroc.value, auroc.missing), (None, Some("one_class")));
        assert_eq!(
            metric_rows(&[found])
                .iter()
                .filter(|r| r.metric == "auroc")
                .count(),
            2
        );
    }
}
