//! From stored predictions to cells with metrics. Pure: reads what it is given, runs no model, opens no image.
//!
//! Decides which rows a metric sees in which track; the metrics themselves live in `focus-metrics`.

mod cell;

pub use cell::{
    CellAnalysis, CellStatus, MetricEntry, RESAMPLES, SEED, TrackAnalysis, analyse, metric_rows,
};

/// Ends the method's name in a cell whose labels follow the published code where they differ from the corrected ones.
pub const AS_PUBLISHED_SUFFIX: &str = "+as_published";
