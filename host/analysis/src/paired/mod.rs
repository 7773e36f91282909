//! Cells of one dataset and task side by side: rows they have in common, and metrics drawn on the same resamples. Owns
//! alignment; its rooms rank, and subtract.

mod finetune;
mod leaderboard;

pub(crate) use finetune::family;
pub use finetune::{
    Comparison, DeltaEntry, DomainRow, FamilyNote, FineTuning, FineTuningTable, LeaveOneOut,
    LevelRow, Unpaired,
};
pub(crate) use leaderboard::published_boards;
pub use leaderboard::{Board, BoardEntry, BoardExcluded, Leaderboards};

use crate::cell::{Columns, TrackColumns};
use crate::cohort::Cohort;
use crate::error::Result;
use crate::options::Options;
use crate::units::RowUnits;
use focus_metrics::{Input, MetricError, MetricSpec, Scored, Series, resample};
use std::collections::BTreeSet;

/// Rows that several arms have in common, in the order of the cohort. Arm by arm, with equal labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aligned {
    pub arms: Vec<Columns>,
    /// Common images whose labels differ between arms; they are in no arm.
    pub mismatched: usize,
}

impl Aligned {
    /// Intersects the arms' images.
    pub fn of(arms: &[&Columns]) -> Self {
        let Some((first, others)) = arms.split_first() else {
            return Self {
                arms: Vec::new(),
                mismatched: 0,
            };
        };
        let mut positions: Vec<Vec<usize>> = vec![Vec::new(); arms.len()];
        let mut mismatched = 0;
        for (place, (image, copy)) in first.images.iter().zip(&first.copies).enumerate() {
            let found: Option<Vec<usize>> = others
                .iter()
                .map(|arm| arm.position(*image, *copy))
                .collect();
            let Some(found) = found else { continue };
            let label = first.labels[place];
            if others
                .iter()
                .zip(&found)
                .any(|(arm, &at)| arm.labels[at] != label)
            {
                mismatched += 1;
                continue;
            }
            positions[0].push(place);
            for (kept, at) in positions[1..].iter_mut().zip(found) {
                kept.push(at);
            }
        }
        Self {
            arms: arms
                .iter()
                .zip(&positions)
                .map(|(arm, kept)| arm.select(kept))
                .collect(),
            mismatched,
        }
    }

    /// Common images.
    pub fn images(&self) -> &[u32] {
        self.arms.first().map_or(&[], |arm| &arm.images)
    }

    /// Common labels.
    pub fn labels(&self) -> &[bool] {
        self.arms.first().map_or(&[], |arm| &arm.labels)
    }

    /// Only the rows that `keep` keeps.
    pub fn retain(&self, keep: impl Fn(u32) -> bool) -> Self {
        let kept: Vec<usize> = self
            .images()
            .iter()
            .enumerate()
            .filter(|(_, image)| keep(**image))
            .map(|(at, _)| at)
            .collect();
        Self {
            arms: self.arms.iter().map(|arm| arm.select(&kept)).collect(),
            mismatched: self.mismatched,
        }
    }
}

/// Common rows of several cells in a track: those that all arms scored, and those that all arms decided where they are
/// others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Common {
    pub scored: Aligned,
    pub decided: Option<Aligned>,
}

impl Common {
    pub fn of(arms: &[&TrackColumns]) -> Self {
        let scored: Vec<&Columns> = arms.iter().map(|arm| &arm.scored).collect();
        let decided: Vec<&Columns> = arms.iter().map(|arm| arm.decided()).collect();
        Self {
            scored: Aligned::of(&scored),
            decided: arms
                .iter()
                .any(|arm| arm.decided.is_some())
                .then(|| Aligned::of(&decided)),
        }
    }

    /// Some of the arms, on the rows that all have in common.
    pub fn arms(&self, places: &[usize]) -> Self {
        let of = |rows: &Aligned| Aligned {
            arms: places.iter().map(|&at| rows.arms[at].clone()).collect(),
            mismatched: rows.mismatched,
        };
        Self {
            scored: of(&self.scored),
            decided: self.decided.as_ref().map(of),
        }
    }

    pub fn retain(&self, keep: impl Fn(u32) -> bool) -> Self {
        Self {
            scored: self.scored.retain(&keep),
            decided: self.decided.as_ref().map(|rows| rows.retain(&keep)),
        }
    }

    /// The metrics of every arm, on all common rows and on the resamples: by arm, then in the order of `specs`.
    pub fn draw(
        &self,
        specs: &[&'static MetricSpec],
        cohort: &Cohort,
        resamples: u32,
        options: &Options,
    ) -> Result<Vec<Vec<Series>>, MetricError> {
        let all = |rows: &Aligned, specs: &[&'static MetricSpec]| {
            let units = RowUnits::new(cohort, rows.images());
            draw(rows, specs, &units.plan(cohort, resamples, options))
        };
        let Some(decided) = &self.decided else {
            return all(&self.scored, specs);
        };
        let of = |input: Input| -> Vec<&'static MetricSpec> {
            specs
                .iter()
                .copied()
                .filter(|spec| spec.input == input)
                .collect()
        };
        let by_scores = all(&self.scored, &of(Input::Scores))?;
        let by_decisions = all(decided, &of(Input::Decisions))?;
        Ok(by_scores
            .into_iter()
            .zip(by_decisions)
            .map(|(scores, decisions)| {
                let (mut scores, mut decisions) = (scores.into_iter(), decisions.into_iter());
                specs
                    .iter()
                    .map(|spec| {
                        let from = match spec.input {
                            Input::Scores => &mut scores,
                            Input::Decisions => &mut decisions,
                        };
                        from.next().expect("one series for each metric")
                    })
                    .collect()
            })
            .collect())
    }
}

/// Metrics of aligned arms; without rows, every one is missing.
pub(crate) fn draw(
    rows: &Aligned,
    specs: &[&'static MetricSpec],
    plan: &focus_metrics::Plan<'_>,
) -> Result<Vec<Vec<Series>>, MetricError> {
    if rows.images().is_empty() {
        let none = || Series::new(None, (0..plan.resamples).map(|_| None));
        return Ok(rows
            .arms
            .iter()
            .map(|_| specs.iter().map(|_| none()).collect())
            .collect());
    }
    let scored: Vec<Scored<'_>> = rows
        .arms
        .iter()
        .map(Columns::rows)
        .collect::<Result<_, _>>()?;
    let arms: Vec<&Scored<'_>> = scored.iter().collect();
    let drawn = resample(&arms, specs, plan)?;
    Ok(arms
        .iter()
        .enumerate()
        .map(|(arm, rows)| {
            specs
                .iter()
                .enumerate()
                .map(|(metric, spec)| drawn.series(arm, metric, spec.compute(rows).value()))
                .collect()
        })
        .collect())
}

/// Images that only some of the arms have.
pub(crate) fn only_in(own: &[u32], other: &[u32]) -> usize {
    let other: BTreeSet<&u32> = other.iter().collect();
    own.iter().filter(|image| !other.contains(image)).count()
}
