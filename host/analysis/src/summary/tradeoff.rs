//! Trade-offs (the paper's Fig. 3): within a family, mean AUROC of each model and method against its mean ECE and its mean
//! age gap in equalized odds.

use super::figure::mean;
use super::view::Placed;
use crate::Track;
use crate::catalogue::{Family, Group};
use focus_metrics::{Missing, correlate};
use serde::Serialize;
use std::collections::BTreeMap;

/// Points below which a correlation is shown without a p-value.
const POINTS_FOR_INFERENCE: usize = 10;

/// One panel: a family, and what AUROC is held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TradeOff {
    /// Which track.
    pub track: Track,
    /// Family.
    pub family: Family,
    /// `ece`, or `age_equalized_odds`.
    pub against: &'static str,
    /// One for each model and method that has both.
    pub points: Vec<TradeOffPoint>,
    /// Pearson's r.
    pub r: Option<f64>,
    /// Its two-sided p-value; none under 10 points.
    pub p: Option<f64>,
    /// Slope of the least-squares line of the gap (or ECE) on AUROC.
    pub slope: Option<f64>,
    /// Its intercept.
    pub intercept: Option<f64>,
    /// Why there is no r, or (`too_few_points`) no p.
    pub missing: Option<&'static str>,
}

/// One model under one method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TradeOffPoint {
    /// Model.
    pub model: String,
    /// Group.
    pub group: Group,
    /// Method.
    pub method: String,
    /// Mean AUROC over the cells that have the other number.
    pub auroc: f64,
    /// Those cells.
    pub cells: usize,
    /// Mean of the other number.
    pub value: f64,
    /// Mean AUROC over all cells.
    pub auroc_of_all: f64,
    /// All cells.
    pub cells_of_all: usize,
}

/// The panels of one track.
pub(crate) fn trade_offs(placed: &[Placed<'_>], track: Track) -> Vec<TradeOff> {
    let mut arms: BTreeMap<(Family, Group, &str, &str), Vec<&Placed<'_>>> = BTreeMap::new();
    for cell in placed {
        if let (Some(kind), None, false, None) =
            (cell.kind, &cell.adapter, cell.varied, cell.unusable())
        {
            arms.entry((kind.family, kind.group, &cell.model, cell.method))
                .or_default()
                .push(cell);
        }
    }
    let mut panels = Vec::new();
    for family in Family::ALL {
        for against in ["age_equalized_odds", "ece"] {
            let points: Vec<TradeOffPoint> = arms
                .iter()
                .filter(|((of, ..), _)| *of == family)
                .filter_map(|((_, group, model, method), cells)| {
                    point(cells, against, (*group, model, method))
                })
                .collect();
            if !points.is_empty() {
                panels.push(panel(track, family, against, points));
            }
        }
    }
    panels
}

fn point(
    cells: &[&Placed<'_>],
    against: &str,
    (group, model, method): (Group, &str, &str),
) -> Option<TradeOffPoint> {
    let value = |cell: &Placed<'_>| match against {
        "ece" => cell.track.value("ece"),
        _ => cell.track.gap("age", "gap_equalized_odds"),
    };
    let all: Vec<f64> = cells
        .iter()
        .filter_map(|cell| cell.track.value("auroc"))
        .collect();
    let both: Vec<(f64, f64)> = cells
        .iter()
        .filter_map(|cell| Some((cell.track.value("auroc")?, value(cell)?)))
        .collect();
    let (aurocs, values): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    Some(TradeOffPoint {
        model: model.into(),
        group,
        method: method.into(),
        auroc: mean(&aurocs)?,
        cells: aurocs.len(),
        value: mean(&values)?,
        auroc_of_all: mean(&all)?,
        cells_of_all: all.len(),
    })
}

fn panel(
    track: Track,
    family: Family,
    against: &'static str,
    points: Vec<TradeOffPoint>,
) -> TradeOff {
    let pairs: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.auroc, point.value))
        .collect();
    let inference = points.len() >= POINTS_FOR_INFERENCE;
    let found = correlate(&pairs);
    let few = (!inference).then_some("too_few_points");
    TradeOff {
        track,
        family,
        against,
        points,
        r: found.ok().map(|line| line.r),
        p: found.ok().filter(|_| inference).map(|line| line.p),
        slope: found.ok().map(|line| line.slope),
        intercept: found.ok().map(|line| line.intercept),
        missing: found.err().map(Missing::name).or(few),
    }
}
