//! The list of metrics. A metric adds itself to [`METRICS`] from its own file (or from another crate); nothing else
//! needs to change. Owns their order and the evaluation of all of them. It must not know any metric by name.

use serde::Serialize;

use crate::scored::Scored;
use crate::tally::{Confusion, Tally};
use crate::value::MetricValue;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Larger values are better.
    HigherIsBetter,
    /// Smaller values are better.
    LowerIsBetter,
    /// 1 is best.
    NearerOne,
    /// 0 is best.
    NearerZero,
    /// Neither way is better: the metric describes.
    Neutral,
}

/// Where a metric belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A cell's main table.
    Headline,
    /// A cell's calibration, in detail.
    Calibration,
    /// A share or a mean that gaps between groups are made of. Not listed by [`metrics`]: see [`metrics_of`].
    Rate,
}

/// What a metric looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// [`Tally::confusion`] alone. Resampling then leaves the score groups as they were.
    Decisions,
    /// The score groups too.
    Scores,
}

/// Numerator and denominator of a share of rows.
pub type Share = fn(&Confusion) -> (u64, u64);

/// One metric of a cell.
#[derive(Debug)]
pub struct MetricSpec {
    /// Stable id, as stored: lower-case words joined by underscores.
    pub id: &'static str,
    /// Column title for people.
    pub title: &'static str,
    /// Position among the metrics; equal positions go by id.
    pub order: u16,
    /// Which way is better.
    pub direction: Direction,
    /// Whether the paper reports it; the others belong to the corrected track alone.
    pub as_published: bool,
    /// Where it belongs.
    pub role: Role,
    /// What it looks at. A metric that declares [`Input::Decisions`] must not look at scores.
    pub input: Input,
    /// Numerator and denominator, where the metric is a share of rows whose denominator (all rows, the positive or the
    /// negative ones) does not depend on decisions. Only these can be standardised by strata.
    pub share: Option<Share>,
    /// The formula, on integer counts. Must not depend on groups without rows, which resamples contain.
    pub from_tally: fn(&Tally) -> MetricValue,
}

impl MetricSpec {
    /// The metric of these rows.
    pub fn compute(&self, rows: &Scored<'_>) -> MetricValue {
        (self.from_tally)(rows.tally())
    }
}

/// Every metric linked into this program, in no particular order; see [`metrics`]. Adding one:
///
/// ```
/// #![forbid(unsafe_code)]
/// use focus_metrics::{Direction, Input, METRICS, MetricSpec, MetricValue, Role, Tally, metric};
///
/// #[linkme::distributed_slice(METRICS)]
/// static PREVALENCE: MetricSpec = MetricSpec {
///     id: "prevalence",
///     title: "Prevalence",
///     order: 300,
///     direction: Direction::Neutral,
///     as_published: false,
///     role: Role::Rate,
///     input: Input::Decisions,
///     share: Some(|counts| (counts.positives(), counts.rows())),
///     from_tally: |tally| {
///         let counts = tally.confusion();
///         MetricValue::ratio_or_flag(counts.positives(), counts.rows())
///     },
/// };
///
/// fn main() {
///     assert_eq!(metric("prevalence").map(|spec| spec.order), Some(300));
/// }
/// ```
#[linkme::distributed_slice]
pub static METRICS: [MetricSpec];

/// Adds a metric of this crate to [`METRICS`]. Another crate writes `#[linkme::distributed_slice(METRICS)]` itself, and
/// may forbid unsafe code: the lint only looks into macros that expand in the crate that declares the slice.
macro_rules! register {
    ($spec:expr) => {
        #[expect(
            unsafe_code,
            reason = "linkme places the element by a link section; no code is unsafe"
        )]
        #[linkme::distributed_slice($crate::registry::METRICS)]
        static SPEC: $crate::registry::MetricSpec = $spec;
    };
}
pub(crate) use register;

/// The metrics of a cell, headline and calibration, by `order` and then `id`, whatever order the linker chose.
pub fn metrics() -> Vec<&'static MetricSpec> {
    listed(|spec| spec.role != Role::Rate)
}

/// The metrics with this role, in the same order.
pub fn metrics_of(role: Role) -> Vec<&'static MetricSpec> {
    listed(|spec| spec.role == role)
}

fn listed(keep: impl Fn(&MetricSpec) -> bool) -> Vec<&'static MetricSpec> {
    let mut listed: Vec<_> = METRICS.iter().filter(|spec| keep(spec)).collect();
    listed.sort_by_key(|spec| (spec.order, spec.id));
    listed
}

/// The metric with this id, whatever its role.
pub fn metric(id: &str) -> Option<&'static MetricSpec> {
    METRICS.iter().find(|spec| spec.id == id)
}

/// All metrics of a cell with these rows, in the order of [`metrics`].
pub fn evaluate_all(rows: &Scored<'_>) -> Vec<(&'static MetricSpec, MetricValue)> {
    metrics()
        .into_iter()
        .map(|spec| (spec, spec.compute(rows)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_sorted_by_order() {
        let all = listed(|_| true);
        let mut ids: Vec<_> = all.iter().map(|spec| spec.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all.len());
        assert!(all.windows(2).all(|pair| pair[0].order <= pair[1].order));
    }

    #[test]
    fn the_papers_metrics_are_all_there() {
        let published: Vec<_> = metrics()
            .into_iter()
            .filter(|spec| spec.as_published)
            .map(|spec| spec.id)
            .collect();
        assert_eq!(
            published,
            [
                "auroc",
                "auprc",
                "accuracy",
                "f1",
                "precision",
                "recall",
                "ece"
            ]
        );
        assert!(!metric("brier").expect("registered").as_published);
        assert!(metric("auc").is_none());
    }

    #[test]
    fn rates_are_found_but_not_listed_among_a_cells_metrics() {
        let ids = |specs: Vec<&MetricSpec>| specs.iter().map(|spec| spec.id).collect::<Vec<_>>();
        assert_eq!(
            ids(metrics_of(Role::Rate)),
            [
                "positive_rate",
                "true_positive_rate",
                "false_positive_rate",
                "specificity",
                "mean_score"
            ]
        );
        assert_eq!(
            ids(metrics_of(Role::Calibration)),
            ["ece_debiased", "calibration_slope", "calibration_intercept"]
        );
        assert!(metrics().iter().all(|spec| spec.role != Role::Rate));
        assert_eq!(
            metric("positive_rate").map(|spec| spec.role),
            Some(Role::Rate)
        );
    }
}
