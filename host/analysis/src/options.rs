//! The numbers an analysis runs under, in one place. Everything that changes a result and is not in the data is here.

use serde::{Deserialize, Serialize};

/// Resamples behind an interval (focus-benchmark.md, section 8, corrected).
pub const RESAMPLES: u32 = 10_000;
/// Seed of the resamples; the same for every cell, so that cells on the same images are resampled alike.
pub const SEED: u64 = 33_158;

/// How an analysis draws. Part of a report: the same options and stored answers give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// B of every interval. Default 10,000.
    pub resamples: u32,
    /// B of intervals that cost much or say little: the recalibration line, prior-corrected scores, standardised gaps.
    /// Default 1,000.
    pub secondary_resamples: u32,
    /// Permutations of group labels behind the null of an absolute gap. Default 2,000.
    pub permutations: u32,
    /// Any number. Default 33,158.
    pub seed: u64,
    /// B of the small p-values (below 0.01) in a family of many comparisons: 2 m / (B + 1) bounds a lone q. Larger ones
    /// gain nothing by it and have the B of intervals. Default 100,000.
    pub family_resamples: u32,
    /// B of the fine-tuning tables as the paper computed them. Default 1,000.
    pub published_resamples: u32,
    /// Seed of the same. Default 13.
    pub published_seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resamples: RESAMPLES,
            secondary_resamples: 1_000,
            permutations: 2_000,
            seed: SEED,
            family_resamples: 100_000,
            published_resamples: 1_000,
            published_seed: 13,
        }
    }
}
