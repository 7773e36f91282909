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
mod error;
mod location;
mod metric;
mod multiple;
mod overall;
mod random;
mod ranking;
mod registry;
mod score;
mod scored;
mod tally;
mod value;

pub use bootstrap::{
    Delta, Estimate, Interval, MeanEstimate, Plan, Resamples, Units, bootstrap, bootstrap_mean,
    paired_bootstrap, resample, two_sided_p,
};
pub use error::MetricError;
pub use location::{BoundingBox, POINT_TOLERANCE, point_hit};
pub use metric::ece::{BINS, Bin, reliability_bins};
pub use multiple::{Family, benjamini_hochberg};
pub use overall::{Axis, overall};
pub use ranking::{Ranking, ranking_score};
pub use registry::{Direction, METRICS, MetricSpec, evaluate_all, metric, metrics};
pub use score::{prior_shifted, shortest_decimal, shortest_decimals};
pub use scored::Scored;
pub use tally::{Confusion, Group, Tally};
pub use value::{MetricValue, Missing, NO_POSITIVES};
