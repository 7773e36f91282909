//! Leaderboards: every model and method on the images that all of them answered, with mid-ranks and rank intervals from
//! paired resamples; and over test sets, means of the same. Corrected track; a published board is values in order.

use super::Common;
use crate::Track;
use crate::catalogue::Catalogue;
use crate::cell::{Analysed, CellStatus, headline};
use crate::cohort::Cohort;
use crate::error::{AnalysisError, Result};
use crate::name::ModelName;
use crate::options::Options;
use crate::summary::{Placed, canonical, unusable};
use crate::units::RowUnits;
use crate::{plain_method, task_place};
use focus_metrics::{MetricSpec, Rank, Series, metric, mid_ranks, rank_series};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Metrics that have boards.
const BOARD_METRICS: [&str; 4] = ["auroc", "auprc", "accuracy", "ece"];
/// Share of the images that any arm answered that an arm must have to be ranked with the others.
const COVERED: f64 = 0.9;

/// All boards.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Leaderboards {
    /// By dataset and task, then over datasets by task, then over all.
    pub boards: Vec<Board>,
}

/// Arms ranked by one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Board {
    /// Which track.
    pub track: Track,
    /// Dataset; none: the mean over datasets.
    pub dataset: Option<String>,
    /// Task; none: the mean over datasets and tasks.
    pub task: Option<String>,
    /// Metric id.
    pub metric: &'static str,
    /// Images that all arms answered; over several test sets, their sum.
    pub n: usize,
    /// Test sets averaged over, as dataset and task.
    pub pairs: usize,
    /// What was resampled: `patient`, `image`, or `mixed` over test sets of both kinds; none as published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resampled: Option<&'static str>,
    /// Best first. Overlapping intervals are no test: compare two arms by their difference.
    pub entries: Vec<BoardEntry>,
    /// Arms that are not ranked, and why.
    pub excluded: Vec<BoardExcluded>,
}

/// One arm's place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoardEntry {
    /// Model.
    pub model: String,
    /// Method.
    pub method: String,
    /// The metric, or its mean over test sets.
    pub value: f64,
    /// 1 is best; equal values share the mean of their places.
    pub rank: f64,
    /// 95 % percentile interval of the rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Share of the resamples in which it is first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
    /// Resamples on which every arm is defined, of all drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_resamples: Option<[u32; 2]>,
}

/// An arm that is not ranked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoardExcluded {
    /// Model.
    pub model: String,
    /// Method.
    pub method: String,
    /// Why.
    pub reason: String,
}

type Arm = (String, String);

/// Sums of one metric of one arm over test sets.
struct Total {
    pairs: usize,
    point: Option<f64>,
    draws: Vec<f64>,
}

/// Test sets of one scope: one task's, or all.
#[derive(Default)]
struct Scope {
    pairs: usize,
    n: usize,
    kinds: BTreeSet<&'static str>,
    totals: BTreeMap<(usize, Arm), Total>,
    /// Every arm seen, ranked on a test set or not.
    arms: BTreeSet<Arm>,
}

/// Boards as they grow, dataset by dataset.
pub(crate) struct Builder<'o> {
    options: &'o Options,
    boards: Vec<Board>,
    /// By task, and over all (none, which sorts first).
    scopes: BTreeMap<Option<String>, Scope>,
}

impl Leaderboards {
    pub(crate) fn builder(options: &Options) -> Builder<'_> {
        Builder {
            options,
            boards: Vec::new(),
            scopes: BTreeMap::new(),
        }
    }
}

fn specs() -> Vec<&'static MetricSpec> {
    let find = |id| metric(id).expect("a board's metric is registered");
    BOARD_METRICS.map(find).to_vec()
}

impl Builder<'_> {
    /// Adds the cells of one dataset and task.
    pub fn add(
        &mut self,
        cells: &[Analysed],
        cohort: &Cohort,
        catalogue: &Catalogue,
    ) -> Result<()> {
        let mut excluded = Vec::new();
        let mut arms: Vec<(Arm, &Analysed)> = Vec::new();
        for cell in cells.iter().filter(|cell| cell.columns.is_some()) {
            let name = ModelName::parse(&cell.analysis.cell.model)?;
            if name.adapter.is_some() {
                continue;
            }
            let arm = (
                canonical(&name, catalogue),
                plain_method(&cell.analysis.cell.method).to_owned(),
            );
            let track = cell.analysis.track(Track::Corrected);
            let reason = track.and_then(|track| unusable(cell.analysis.status, track));
            match reason {
                Some(reason) => excluded.push(because(&arm, reason)),
                None => arms.push((arm, cell)),
            }
        }
        let all: BTreeSet<u32> = arms
            .iter()
            .flat_map(|(_, cell)| images(cell).iter().copied())
            .collect();
        arms.retain(|(arm, cell)| {
            let own = images(cell).len();
            let covered = own as f64 >= COVERED * all.len() as f64;
            if !covered {
                let reason = format!("answered {own} of {} images", all.len());
                excluded.push(because(arm, &reason));
            }
            covered
        });
        let Some((_, first)) = arms.first() else {
            return Ok(());
        };
        let cell = first.analysis.cell.clone();
        let columns: Vec<_> = arms
            .iter()
            .filter_map(|(_, cell)| cell.columns.as_ref())
            .collect();
        let common = Common::of(&columns);
        let same = columns.iter().all(|arm| {
            arm.decided.is_none() && arm.scored.images.len() == common.scored.images().len()
        });
        let specs = specs();
        let series: Vec<Vec<Series>> = if same {
            arms.iter().map(|(_, cell)| reuse(cell, &specs)).collect()
        } else {
            let what = format!("Leaderboard of `{}` `{}`", cell.dataset, cell.task);
            common
                .draw(&specs, cohort, self.options.resamples, self.options)
                .map_err(AnalysisError::during(what))?
        };
        let n = common.scored.images().len();
        let kind = RowUnits::new(cohort, common.scored.images()).kind;
        let names: Vec<&Arm> = arms.iter().map(|(arm, _)| arm).collect();
        for (place, spec) in specs.iter().enumerate() {
            let of: Vec<Series> = series.iter().map(|arm| arm[place].clone()).collect();
            let mut board = Board {
                track: Track::Corrected,
                dataset: Some(cell.dataset.clone()),
                task: Some(cell.task.clone()),
                metric: spec.id,
                n,
                pairs: 1,
                resampled: Some(kind),
                entries: Vec::new(),
                excluded: excluded.clone(),
            };
            rank(&mut board, &names, &of, spec)?;
            self.boards.push(board);
        }
        for scope in [Some(cell.task.clone()), None] {
            let scope = self.scopes.entry(scope).or_default();
            scope.pairs += 1;
            scope.n += n;
            scope.kinds.insert(kind);
            let left = excluded.iter().map(|e| (e.model.clone(), e.method.clone()));
            scope
                .arms
                .extend(left.chain(names.iter().map(|arm| (*arm).clone())));
            for (arm, series) in names.iter().zip(&series) {
                for (place, series) in series.iter().enumerate() {
                    scope.add(place, arm, series);
                }
            }
        }
        Ok(())
    }

    /// The boards, means over test sets last.
    pub fn finish(self) -> Result<Leaderboards> {
        let mut boards = self.boards;
        let mut scopes: Vec<_> = self.scopes.into_iter().collect();
        scopes.sort_by_key(|(task, _)| {
            let place = task.as_deref().map_or(usize::MAX, task_place);
            (place, task.clone())
        });
        for (task, mut scope) in scopes {
            for (place, spec) in specs().into_iter().enumerate() {
                let mut board = Board {
                    track: Track::Corrected,
                    dataset: None,
                    task: task.clone(),
                    metric: spec.id,
                    n: scope.n,
                    pairs: scope.pairs,
                    resampled: match scope.kinds.len() {
                        1 => scope.kinds.first().copied(),
                        _ => Some("mixed"),
                    },
                    entries: Vec::new(),
                    excluded: Vec::new(),
                };
                let (mut arms, mut series) = (Vec::new(), Vec::new());
                for arm in &scope.arms {
                    let total = scope.totals.remove(&(place, arm.clone()));
                    match total {
                        Some(total) if total.pairs == board.pairs => {
                            arms.push(arm);
                            series.push(total.mean());
                        }
                        other => board.excluded.push(because(
                            arm,
                            &format!(
                                "ranked on {} of {} test sets",
                                other.map_or(0, |total| total.pairs),
                                board.pairs
                            ),
                        )),
                    }
                }
                rank(&mut board, &arms, &series, spec)?;
                boards.push(board);
            }
        }
        Ok(Leaderboards { boards })
    }
}

impl Scope {
    fn add(&mut self, place: usize, arm: &Arm, series: &Series) {
        let total = self
            .totals
            .entry((place, arm.clone()))
            .or_insert_with(|| Total {
                pairs: 0,
                point: Some(0.0),
                draws: vec![0.0; series.count() as usize],
            });
        total.pairs += 1;
        total.point = total.point.zip(series.point()).map(|(sum, own)| sum + own);
        for (sum, draw) in total.draws.iter_mut().zip(series.draws()) {
            *sum += draw.unwrap_or(f64::NAN);
        }
    }
}

impl Total {
    fn mean(self) -> Series {
        let n = self.pairs as f64;
        let draws = self
            .draws
            .into_iter()
            .map(|sum| (!sum.is_nan()).then_some(sum / n));
        Series::new(self.point.map(|sum| sum / n), draws)
    }
}

fn images(cell: &Analysed) -> &[u32] {
    cell.columns
        .as_ref()
        .map_or(&[], |columns| &columns.scored.images)
}

/// The series that the cell's own intervals came from.
fn reuse(cell: &Analysed, specs: &[&'static MetricSpec]) -> Vec<Series> {
    let headline = headline();
    let place = |spec: &&'static MetricSpec| headline.iter().position(|known| known.id == spec.id);
    specs
        .iter()
        .map(|spec| {
            cell.series[place(spec).expect("a board's metric is a headline metric")].clone()
        })
        .collect()
}

fn because((model, method): &Arm, reason: &str) -> BoardExcluded {
    BoardExcluded {
        model: model.clone(),
        method: method.clone(),
        reason: reason.into(),
    }
}

fn rank(board: &mut Board, arms: &[&Arm], series: &[Series], spec: &MetricSpec) -> Result<()> {
    let ranks = rank_series(series, spec.direction)
        .map_err(AnalysisError::during(format!("Ranks by `{}`", spec.id)))?;
    for (arm, rank) in arms.iter().zip(ranks) {
        match rank {
            Rank {
                value: Some(value),
                rank: Some(place),
                ..
            } => board.entries.push(BoardEntry {
                model: arm.0.clone(),
                method: arm.1.clone(),
                value,
                rank: place,
                interval: rank.interval.map(|interval| [interval.low, interval.high]),
                first: rank.first,
                valid_resamples: Some([rank.valid, rank.resamples]),
            }),
            _ => board.excluded.push(because(arm, "metric_missing")),
        }
    }
    in_order(&mut board.entries);
    Ok(())
}

fn in_order(entries: &mut [BoardEntry]) {
    entries.sort_by(|a, b| {
        a.rank
            .total_cmp(&b.rank)
            .then_with(|| (&a.model, &a.method).cmp(&(&b.model, &b.method)))
    });
}

/// Boards of the published track: the cells' values in order, each on its own images, without intervals.
pub(crate) fn published_boards(placed: &[Placed<'_>]) -> Vec<Board> {
    let mut by_pair: BTreeMap<(&str, usize, &str), Vec<&Placed<'_>>> = BTreeMap::new();
    for cell in placed.iter().filter(|cell| cell.adapter.is_none()) {
        if cell.analysis.status == CellStatus::Ok {
            by_pair
                .entry((cell.dataset(), task_place(cell.task()), cell.task()))
                .or_default()
                .push(cell);
        }
    }
    let mut boards = Vec::new();
    for ((dataset, _, task), cells) in by_pair {
        for spec in specs() {
            let valued: Vec<_> = cells
                .iter()
                .filter_map(|cell| Some((*cell, cell.track.value(spec.id)?)))
                .collect();
            let values: Vec<f64> = valued.iter().map(|(_, value)| *value).collect();
            let ranks = mid_ranks(&values, spec.direction).expect("board metrics have a direction");
            let mut entries: Vec<BoardEntry> = valued
                .iter()
                .zip(ranks)
                .map(|((cell, value), rank)| BoardEntry {
                    model: cell.model.clone(),
                    method: cell.method.into(),
                    value: *value,
                    rank,
                    interval: None,
                    first: None,
                    valid_resamples: None,
                })
                .collect();
            in_order(&mut entries);
            boards.push(Board {
                track: Track::AsPublished,
                dataset: Some(dataset.into()),
                task: Some(task.into()),
                metric: spec.id,
                n: cells.iter().map(|cell| cell.track.n).max().unwrap_or(0),
                pairs: 1,
                resampled: None,
                entries,
                excluded: Vec::new(),
            });
        }
    }
    boards
}
