//! The bootstrap: plain and paired, over images or over patients. Owns resampling plans, percentile intervals and
//! p-values. It must not know which metric it resamples.
//!
//! Every resample is a set of integer weights on the rows; ranks are found once, so that a resample costs O(n) time,
//! and each thread O(n) memory. Rows are put into an order that follows from their content alone before anything is
//! drawn, and each resample has its own stream of random numbers: neither row order nor the number of threads changes
//! a bit of the result.

use crate::error::MetricError;

mod grouped;
mod interval;
mod layout;
mod mean;
mod paired;
mod plain;
mod resample;
mod view;

pub(crate) use grouped::oriented;
pub(crate) use interval::quantile;
pub(crate) use layout::{Arrangement, arrange, same_length};
pub(crate) use view::View;

pub use grouped::{GroupedResamples, resample_with_groups};
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
    /// Clusters of rows whose numbers are their identity: row i belongs to unit `of_row[i]`, one of `0..count`, and
    /// `count` units are drawn, those without rows included. Calls with the same count and seed draw the same units
    /// whatever rows they hold, which ties together the tasks and models of one test set; number patients in an order
    /// that does not depend on row order, such as that of their sorted ids.
    Numbered {
        /// Number of units of the test set, at least 1.
        count: u32,
        /// Each row's unit.
        of_row: &'a [u32],
    },
}

impl Units<'_> {
    /// The entries of the kept rows, `Images` staying as it is.
    pub(crate) fn keep(&self, keep: &[bool]) -> Result<OwnedUnits, MetricError> {
        let kept = |units: &[u32]| {
            same_length("patients", keep.len(), units.len())?;
            let pairs = units.iter().zip(keep);
            Ok(pairs
                .filter_map(|(&unit, &keep)| keep.then_some(unit))
                .collect())
        };
        Ok(match *self {
            Self::Images => OwnedUnits::Images,
            Self::Patients(patients) => OwnedUnits::Patients(kept(patients)?),
            Self::Numbered { count, of_row } => OwnedUnits::Numbered {
                count,
                of_row: kept(of_row)?,
            },
        })
    }
}

/// [`Units`] that hold their columns.
pub(crate) enum OwnedUnits {
    Images,
    Patients(Vec<u32>),
    Numbered { count: u32, of_row: Vec<u32> },
}

impl OwnedUnits {
    pub(crate) fn borrow(&self) -> Units<'_> {
        match self {
            Self::Images => Units::Images,
            Self::Patients(patients) => Units::Patients(patients),
            Self::Numbered { count, of_row } => Units::Numbered {
                count: *count,
                of_row,
            },
        }
    }
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
