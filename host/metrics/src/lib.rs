//! Metrics and resampling for binary retinal tasks: pure functions in f64, seeds passed in, bitwise the same for any
//! row order and any number of threads. This crate must not know files, models, datasets, candle, or how a number is
//! printed.
//!
//! ```
//! use focus_metrics::{Scored, evaluate_all};
//!
//! let rows = Scored::new(&[true, false, true], &[true, true, false], &[0.9, 0.6, 0.4])?;
//! for (spec, value) in evaluate_all(&rows) {
//!     if spec.id == "auroc" {
//!         assert_eq!(value.value(), Some(0.5));
//!     }
//! }
//! # Ok::<(), focus_metrics::MetricError>(())
//! ```
#![deny(unsafe_code)]

mod bootstrap;
mod correlation;
mod domain;
mod error;
mod gap;
mod location;
mod metric;
mod multiple;
mod overall;
mod random;
mod rank;
mod ranking;
mod recalibration;
mod registry;
mod score;
mod scored;
mod series;
mod subgroup;
mod tally;
mod value;

pub use bootstrap::{
    Delta, Estimate, GroupedResamples, Interval, MeanEstimate, Plan, Resamples, Units, bootstrap,
    bootstrap_mean, paired_bootstrap, resample, resample_with_groups, two_sided_p,
};
pub use correlation::{Correlation, correlate};
pub use domain::{Domain, DomainSummary};
pub use error::MetricError;
pub use gap::{
    EqualizedOdds, Gap, Gaps, Null, Nulls, Shuffled, StandardisedGap, gap_nulls, gaps, gaps_from,
    standardised_gaps,
};
pub use location::{BoundingBox, POINT_TOLERANCE, point_hit};
pub use metric::ece::{BINS, Bin, reliability_bins};
pub use multiple::{Family, benjamini_hochberg};
pub use overall::{Axis, overall};
pub use random::seed_for;
pub use rank::{Rank, mid_ranks, rank_series};
pub use ranking::{Ranking, ranking_score};
pub use recalibration::{Recalibration, SCORE_CLIP, recalibrate};
pub use registry::{
    Direction, Input, METRICS, MetricSpec, Role, Share, evaluate_all, metric, metrics, metrics_of,
};
pub use score::{prior_shifted, shortest_decimal, shortest_decimals};
pub use scored::Scored;
pub use series::{Series, SeriesEstimate};
pub use subgroup::{GroupCount, GroupRule, Skip, above, group_counts, median};
pub use tally::{Confusion, Group, Groups, Tally};
pub use value::{MetricValue, Missing, NO_POSITIVES};
