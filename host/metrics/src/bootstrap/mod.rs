//! The bootstrap: plain and paired, over images or over patients. Owns resampling plans, percentile intervals and
//! p-values. It must not know which metric it resamples.
//!
//! Every resample is a set of integer weights on the rows; ranks are found once, so that a resample costs O(n) time,
//! and each thread O(n) memory. Rows are put into an order that follows from their content alone before anything is
//! drawn, and each resample has its own stream of random numbers: neither row order nor the number of threads changes
//! a bit of the result.

mod interval;
mod layout;
mod mean;
mod paired;
mod plain;
mod resample;

pub use interval::{Interval, two_sided_p};
pub use mean::{MeanEstimate, bootstrap_mean};
pub use paired::{Delta, paired_bootstrap};
pub use plain::{Estimate, bootstrap};
pub use resample::{Resamples, resample};

/// What is drawn with replacement.
#[derive(Debug, Clone, Copy)]
pub enum Units<'a> {
    /// Rows, as if they were independent.
    Images,
    /// Clusters of rows: `patients[i]` is any number that names row i's patient within this test set. As many patients
    /// are drawn as there are, each bringing all its rows.
    Patients(&'a [u32]),
}

/// How to resample.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// B, the number of resamples, at least 1.
    pub resamples: u32,
    /// Any number; the same seed gives the same bytes.
    pub seed: u64,
    /// What is drawn.
    pub units: Units<'a>,
}
