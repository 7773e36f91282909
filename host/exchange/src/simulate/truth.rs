//! What is true of a simulated reader: AUROC, rates at the threshold, calibration error, by group, in closed form or by
//! integration. It must not know the scores that are drawn.

use super::{
    maths::{density, integral, logistic, logit, normal, solve},
    people::People,
    plan::{Attribute, Calibration, SimCell, SimPlan, unfit},
};
use crate::error::Result;
use focus_store::CellKey;
use serde::Serialize;
use std::collections::BTreeMap;

/// True values of one group, or of all images. Each is the expectation over readings of these very images: labels and
/// groups are fixed, scores are drawn. AUROC is that of images of different patients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupTruth {
    /// `test`, or attribute and group (`age:older`).
    pub subset: String,
    /// Images.
    pub n: usize,
    /// Of these, positive.
    pub n_pos: usize,
    /// Of these, negative.
    pub n_neg: usize,
    /// AUROC; none with one class.
    pub auroc: Option<f64>,
    /// Share of positives with a score above a half; none without positives.
    pub tpr: Option<f64>,
    /// Share of negatives with a score above a half; none without negatives.
    pub fpr: Option<f64>,
    /// Share of right decisions.
    pub accuracy: f64,
    /// Share of positive decisions.
    pub selection: f64,
    /// Expected calibration error of ten equal bins, of infinitely many such images; none with one class.
    pub ece: Option<f64>,
}

/// True signed gaps of one attribute: the first group minus the second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapTruth {
    /// Which.
    pub attribute: Attribute,
    /// The first group.
    pub first: String,
    /// The second group.
    pub second: String,
    /// AUROC; none where a group has one class.
    pub auroc: Option<f64>,
    /// True positive rate (equal opportunity).
    pub tpr: Option<f64>,
    /// False positive rate.
    pub fpr: Option<f64>,
    /// Accuracy.
    pub accuracy: f64,
    /// Share of positive decisions (demographic parity).
    pub selection: f64,
    /// Expected calibration error.
    pub ece: Option<f64>,
}

/// What is true of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellTruth {
    /// Which cell.
    pub cell: CellKey,
    /// All images.
    pub overall: GroupTruth,
    /// Each group of each known attribute.
    pub groups: Vec<GroupTruth>,
    /// Each known attribute's gaps.
    pub gaps: Vec<GapTruth>,
    /// Slope of the regression of the truth on logit(score): 1 is calibrated; none with group effects.
    pub calibration_slope: Option<f64>,
    /// Its intercept: 0 is calibrated; none with group effects.
    pub calibration_intercept: Option<f64>,
    /// Model of the other arm on the same images.
    pub base: Option<String>,
    /// AUROC minus the other arm's.
    pub delta_auroc: Option<f64>,
    /// ECE minus the other arm's.
    pub delta_ece: Option<f64>,
}

/// Where a cell's scores come from: logit(score) = `alpha` + `beta` x, x normal with variance 1 about each image's mean.
pub(super) struct Reader {
    pub alpha: f64,
    pub beta: f64,
    /// Mean of x of each image.
    pub mean: Vec<f64>,
}

// Images alike in label and groups.
struct Part {
    first: [Option<bool>; 3],
    positive: bool,
    mean: f64,
    n: usize,
}

/// The reader of `cell`, and what is true of it (the arms' differences excepted).
pub(super) fn reader(
    plan: &SimPlan,
    cell: &SimCell,
    people: &People,
) -> Result<(Reader, CellTruth)> {
    let (set, task) = plan.place(cell)?;
    let effect = |first: &[Option<bool>; 3]| {
        cell.effects
            .iter()
            .fold((0.0, 0.0), |(shift, separation), effect| {
                if first[effect.attribute as usize] == Some(true) {
                    (shift + effect.shift, separation + effect.separation)
                } else {
                    (shift, separation)
                }
            })
    };
    let mut counts: BTreeMap<([Option<bool>; 3], bool), usize> = BTreeMap::new();
    for (record, first) in people.records.iter().zip(&people.first) {
        *counts
            .entry((*first, record.labels[&task.task]))
            .or_default() += 1;
    }
    let parts_at = |distance: f64| -> Vec<Part> {
        counts
            .iter()
            .map(|((first, positive), n)| {
                let (shift, separation) = effect(first);
                let mean = if *positive {
                    shift + distance + separation
                } else {
                    shift
                };
                Part {
                    first: *first,
                    positive: *positive,
                    mean,
                    n: *n,
                }
            })
            .collect()
    };
    let distance = solve(cell.auroc, |d| {
        auroc(&parts_at(d).iter().collect::<Vec<_>>()).unwrap_or(0.5)
    });
    if !(distance > 0.05 && distance < 11.0) {
        return Err(unfit(
            &cell.cell,
            "an AUROC that its group effects leave room for",
            &cell.auroc.to_string(),
        ));
    }
    let parts = parts_at(distance);
    let Calibration { slope, intercept } = cell.calibration;
    let prior = logit(task.positives as f64 / set.images as f64);
    let (alpha, beta) = (
        intercept + slope * (prior - 0.5 * distance * distance),
        slope * distance,
    );
    let mean = people
        .records
        .iter()
        .zip(&people.first)
        .map(|(record, first)| {
            let (shift, separation) = effect(first);
            if record.labels[&task.task] {
                shift + distance + separation
            } else {
                shift
            }
        })
        .collect();
    let of = |subset: String, keep: &dyn Fn(&Part) -> bool| {
        let parts: Vec<&Part> = parts.iter().filter(|part| keep(part)).collect();
        group(subset, &parts, alpha, beta)
    };
    let overall = of("test".into(), &|_| true);
    let mut groups = Vec::new();
    let mut gaps = Vec::new();
    for attribute in Attribute::ALL {
        let at = attribute as usize;
        if people.first.iter().all(|first| first[at].is_none()) {
            continue;
        }
        let [one, two] = [true, false].map(|side| {
            let name = attribute.groups()[usize::from(!side)];
            of(format!("{}:{name}", attribute.as_str()), &|part| {
                part.first[at] == Some(side)
            })
        });
        gaps.push(gap(attribute, &one, &two));
        groups.extend([one, two]);
    }
    let plain = cell.effects.is_empty();
    let truth = CellTruth {
        cell: cell.cell.clone(),
        overall,
        groups,
        gaps,
        calibration_slope: plain.then(|| 1.0 / slope),
        calibration_intercept: plain.then(|| -intercept / slope),
        base: None,
        delta_auroc: None,
        delta_ece: None,
    };
    Ok((Reader { alpha, beta, mean }, truth))
}

fn auroc(parts: &[&Part]) -> Option<f64> {
    let (mut won, mut pairs) = (0.0, 0.0);
    for positive in parts.iter().filter(|p| p.positive) {
        for negative in parts.iter().filter(|p| !p.positive) {
            let weight = positive.n as f64 * negative.n as f64;
            won +=
                weight * normal((positive.mean - negative.mean) * std::f64::consts::FRAC_1_SQRT_2);
            pairs += weight;
        }
    }
    (pairs > 0.0).then(|| won / pairs)
}

fn group(subset: String, parts: &[&Part], alpha: f64, beta: f64) -> GroupTruth {
    let count = |positive: bool| {
        parts
            .iter()
            .filter(|p| p.positive == positive)
            .map(|p| p.n)
            .sum::<usize>()
    };
    let threshold = -alpha / beta;
    // Expected number of positive decisions.
    let above = |positive: bool| -> f64 {
        let of = parts.iter().filter(|p| p.positive == positive);
        of.map(|p| p.n as f64 * normal(p.mean - threshold)).sum()
    };
    let (n_pos, n_neg) = (count(true), count(false));
    let (hits, alarms) = (above(true), above(false));
    let n = n_pos + n_neg;
    GroupTruth {
        subset,
        n,
        n_pos,
        n_neg,
        auroc: auroc(parts),
        tpr: (n_pos > 0).then(|| hits / n_pos as f64),
        fpr: (n_neg > 0).then(|| alarms / n_neg as f64),
        accuracy: if n == 0 {
            0.0
        } else {
            (hits + n_neg as f64 - alarms) / n as f64
        },
        selection: if n == 0 {
            0.0
        } else {
            (hits + alarms) / n as f64
        },
        ece: (n_pos > 0 && n_neg > 0).then(|| calibration_error(parts, n, alpha, beta)),
    }
}

// sum over bins of | E[score; in bin] - P(positive; in bin) |.
fn calibration_error(parts: &[&Part], n: usize, alpha: f64, beta: f64) -> f64 {
    let edge = |k: u32| match k {
        0 => f64::NEG_INFINITY,
        10 => f64::INFINITY,
        _ => (logit(f64::from(k) / 10.0) - alpha) / beta,
    };
    (0..10)
        .map(|k| {
            let (low, high) = (edge(k), edge(k + 1));
            let part = |p: &&Part| {
                let (from, to) = (low.max(p.mean - 9.0), high.min(p.mean + 9.0));
                let scores = integral(from, to, |x| {
                    logistic(alpha + beta * x) * density(x - p.mean)
                });
                let inside = normal(high - p.mean) - normal(low - p.mean);
                p.n as f64 * (scores - if p.positive { inside } else { 0.0 })
            };
            parts.iter().map(part).sum::<f64>().abs() / n as f64
        })
        .sum()
}

fn gap(attribute: Attribute, one: &GroupTruth, two: &GroupTruth) -> GapTruth {
    let between = |get: fn(&GroupTruth) -> Option<f64>| Some(get(one)? - get(two)?);
    let [first, second] = attribute.groups().map(str::to_owned);
    GapTruth {
        attribute,
        first,
        second,
        auroc: between(|g| g.auroc),
        tpr: between(|g| g.tpr),
        fpr: between(|g| g.fpr),
        accuracy: one.accuracy - two.accuracy,
        selection: one.selection - two.selection,
        ece: between(|g| g.ece),
    }
}
