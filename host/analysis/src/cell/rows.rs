//! A cell's predictions joined to its dataset's images, and which rows a track's metrics see. It computes no metric.

use crate::cohort::Cohort;
use crate::error::{AnalysisError, Result};
use crate::{Track, plain_method};
use focus_metrics::{MetricError, Scored};
use focus_store::{CellKey, Fold, Outcome, Predictions};
use std::collections::BTreeMap;

/// One test image of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Place in the cohort.
    pub image: u32,
    /// 0, but for further rows of the same image, which the published code's merges make.
    pub copy: u32,
    /// Label of the corrected track.
    pub label: Option<bool>,
    /// Label as the published code derives it.
    pub published_label: Option<bool>,
    /// Score of the positive class.
    pub score: Option<f64>,
    /// Decision.
    pub decision: Option<bool>,
    /// How it went.
    pub outcome: Outcome,
    /// Kind of failure.
    pub reason: Option<Box<str>>,
}

impl Row {
    /// The label in a track.
    pub fn label(&self, track: Track) -> Option<bool> {
        match track {
            Track::Corrected => self.label,
            Track::AsPublished => self.published_label,
        }
    }
}

/// Positives and negatives that a method was fitted on, in one track's labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrainCounts {
    /// n+.
    pub positives: u64,
    /// n-.
    pub negatives: u64,
}

/// A cell's rows, ready for analysis and for pairing with another cell of the same dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRows {
    /// Which cell.
    pub cell: CellKey,
    /// Test rows, in order of image and copy.
    pub test: Vec<Row>,
    /// Training images with an answer.
    pub train: usize,
    /// Training images without.
    pub train_failed: usize,
    /// Labels of the training images with an answer: corrected, as published.
    pub train_counts: [TrainCounts; 2],
}

impl CellRows {
    /// Joins by image id, one to one but for copies. `run` names the run in errors.
    ///
    /// # Errors
    /// A test image without a record (with counts), one that occurs twice, one whose label is not the records'. Cells of the
    /// published reading are held to the corrected label alone: the published code's merges bring labels of other photographs.
    pub fn join(predictions: &Predictions, cohort: &Cohort, run: &str) -> Result<Self> {
        let cell = &predictions.cell;
        let published = cell.is_published_reading();
        let mut test = Vec::new();
        let (mut rows, mut missing, mut first) = (0, 0, None);
        for row in predictions.fold(Fold::Test) {
            rows += 1;
            let Some(image) = cohort.place(&row.id) else {
                missing += 1;
                first.get_or_insert(&row.id);
                continue;
            };
            let known = cohort.labels(&cell.task, image);
            let held = [
                ("label", known[0], row.label),
                ("published label", known[1], row.published_label),
            ];
            for (what, known, found) in held.into_iter().take(if published { 1 } else { 2 }) {
                if let (Some(known), Some(found)) = (known, found)
                    && known != found
                {
                    return Err(AnalysisError::Disagree {
                        dataset: cell.dataset.as_str().into(),
                        image: row.id.as_str().into(),
                        what: format!("the {what} of `{}`", cell.task).into(),
                        first: known.to_string().into(),
                        first_run: format!("the records of `{}`", cohort.run_of(image)).into(),
                        second: found.to_string().into(),
                        second_run: format!("the predictions of `{run}` ({cell})").into(),
                    });
                }
            }
            test.push(Row {
                image,
                copy: row.copy,
                label: row.label,
                published_label: row.published_label,
                score: row.score,
                decision: row.predicted,
                outcome: row.outcome,
                reason: row.reason.as_deref().map(Box::from),
            });
        }
        if let Some(first) = first {
            return Err(AnalysisError::Join {
                cell: Box::new(cell.clone()),
                rows,
                missing,
                first: first.clone(),
            });
        }
        test.sort_by_key(|row| (row.image, row.copy));
        let place = |row: &Row| (row.image, row.copy);
        if let Some(pair) = test
            .windows(2)
            .find(|pair| place(&pair[0]) == place(&pair[1]))
        {
            return Err(AnalysisError::Duplicate {
                place: format!("Cell `{cell}`"),
                image: cohort.members()[pair[0].image as usize].id.clone(),
            });
        }
        let (mut train, mut train_failed) = (0, 0);
        let mut train_counts = [TrainCounts::default(); 2];
        for row in predictions.fold(Fold::Train) {
            if row.outcome != Outcome::Ok {
                train_failed += 1;
                continue;
            }
            train += 1;
            for (counts, label) in train_counts
                .iter_mut()
                .zip([row.label, row.published_label])
            {
                match label {
                    Some(true) => counts.positives += 1,
                    Some(false) => counts.negatives += 1,
                    None => {}
                }
            }
        }
        Ok(Self {
            cell: cell.clone(),
            test,
            train,
            train_failed,
            train_counts,
        })
    }

    /// Training counts in a track; none where the method has no fit with balanced class weights, or one class.
    pub fn balanced_fit(&self, track: Track) -> Option<TrainCounts> {
        let counts = match track {
            Track::Corrected => self.train_counts[0],
            Track::AsPublished => self.train_counts[1],
        };
        (plain_method(&self.cell.method) == "linear_probing"
            && counts.positives > 0
            && counts.negatives > 0)
            .then_some(counts)
    }

    /// Labelled test rows that are not `ok`, by `outcome:reason`.
    pub fn excluded(&self, track: Track) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for row in self.labelled(track).filter(|r| r.outcome != Outcome::Ok) {
            let reason = row.reason.as_deref().unwrap_or("unknown");
            *counts
                .entry(format!("{}:{reason}", row.outcome.as_str()))
                .or_insert(0) += 1;
        }
        counts
    }

    /// Test rows with a known label.
    pub fn labelled(&self, track: Track) -> impl Iterator<Item = &Row> {
        self.test
            .iter()
            .filter(move |row| row.label(track).is_some())
    }

    /// The rows of a track's metrics.
    pub fn columns(&self, track: Track) -> TrackColumns {
        let mut scored = Columns::default();
        let mut decided = Columns::default();
        let mut same = true;
        for row in self.labelled(track) {
            let label = row.label(track).unwrap_or_default();
            let decision = match track {
                Track::Corrected => row.corrected_decision(label),
                Track::AsPublished => row.decision.filter(|_| row.score.is_some()),
            };
            let score = match track {
                Track::Corrected => row.score,
                Track::AsPublished => row.score.filter(|_| row.decision.is_some()),
            };
            same &= score.is_some() == decision.is_some();
            if let Some(score) = score {
                // A decision that is not there is never read: only score metrics see such a row.
                scored.push(row, label, decision.unwrap_or_default());
                scored.scores.push(score);
            }
            if let Some(decision) = decision {
                decided.push(row, label, decision);
            }
        }
        TrackColumns {
            decided: (!same).then_some(decided),
            scored,
        }
    }
}

impl Row {
    /// An answer in which none was found, or that the model declined to give, is a wrong one.
    fn corrected_decision(&self, label: bool) -> Option<bool> {
        match self.outcome {
            Outcome::Unparseable | Outcome::Refused => Some(!label),
            _ => self.decision,
        }
    }

    /// The model or the image failed, or the answer has no score: counted against the error budget. An unparseable or
    /// refused answer is a bad answer, not a failure.
    pub(crate) fn failed(&self) -> bool {
        self.outcome.is_error() || self.outcome == Outcome::ScoreUnavailable
    }
}

/// Parallel columns of rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    /// Places in the cohort, ascending; once each but for copies.
    pub images: Vec<u32>,
    /// [`Row::copy`], ascending within an image.
    pub copies: Vec<u32>,
    /// Labels.
    pub labels: Vec<bool>,
    /// Decisions.
    pub decisions: Vec<bool>,
    /// Scores; empty where rows have none.
    pub scores: Vec<f64>,
}

impl Columns {
    fn push(&mut self, row: &Row, label: bool, decision: bool) {
        self.images.push(row.image);
        self.copies.push(row.copy);
        self.labels.push(label);
        self.decisions.push(decision);
    }

    /// The rows as metrics take them.
    ///
    /// # Errors
    /// A score that is not finite.
    pub fn rows(&self) -> Result<Scored<'_>, MetricError> {
        if self.scores.is_empty() && !self.is_empty() {
            Scored::without_scores(&self.labels, &self.decisions)
        } else {
            Scored::new(&self.labels, &self.decisions, &self.scores)
        }
    }

    /// The position of an image's copy.
    pub fn position(&self, image: u32, copy: u32) -> Option<usize> {
        let first = self.images.partition_point(|known| *known < image);
        let found = self.images[first..].iter().zip(&self.copies[first..]);
        found
            .take_while(|(known, _)| **known == image)
            .position(|(_, known)| *known == copy)
            .map(|at| first + at)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// The rows at these positions.
    #[must_use]
    pub fn select(&self, positions: &[usize]) -> Self {
        Self {
            images: positions.iter().map(|&i| self.images[i]).collect(),
            copies: positions.iter().map(|&i| self.copies[i]).collect(),
            labels: positions.iter().map(|&i| self.labels[i]).collect(),
            decisions: positions.iter().map(|&i| self.decisions[i]).collect(),
            scores: if self.scores.is_empty() {
                Vec::new()
            } else {
                positions.iter().map(|&i| self.scores[i]).collect()
            },
        }
    }
}

/// The rows behind a track's metrics. Score metrics see every scored row; decision metrics every decided one.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackColumns {
    /// Rows with a score.
    pub scored: Columns,
    /// Rows with a decision, where they are not the scored ones.
    pub decided: Option<Columns>,
}

impl TrackColumns {
    /// Rows of the decision metrics.
    pub fn decided(&self) -> &Columns {
        self.decided.as_ref().unwrap_or(&self.scored)
    }
}
