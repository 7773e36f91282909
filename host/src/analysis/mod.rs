//! From stored predictions to cells with metrics. Pure: reads what it is given, runs no model, opens no image.
//!
//! Decides which rows a metric sees in which track; the metrics themselves live in `focus-metrics`.

mod cell;

pub use cell::{CellKey, CellMetrics, Counted, MetricEntry, analyse};
