//! The mean difference over many comparisons, resample by resample. Comparisons on one test set share its images, so
//! their resamples must be drawn together; test sets are independent; models are taken as fixed. Owns the sums. It must
//! not know which models or sets. For the summary as published, which resamples the differences themselves, see
//! [`crate::bootstrap_mean`].

use std::collections::BTreeMap;

use crate::error::MetricError;
use crate::series::{Series, SeriesEstimate};

/// Sums of the differences of each test set. Memory: B numbers for each set, however many comparisons.
#[derive(Debug, Clone, Default)]
pub struct Domain {
    sets: BTreeMap<String, Sum>,
}

#[derive(Debug, Clone)]
struct Sum {
    comparisons: u32,
    point: f64,
    /// NaN where a comparison is undefined.
    draws: Vec<f64>,
}

/// The mean difference of a domain.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DomainSummary {
    /// The mean over comparisons, each counting once, with interval and p-value over the resamples that define all of
    /// them.
    pub mean: SeriesEstimate,
    /// Comparisons averaged.
    pub comparisons: u32,
    /// Test sets they come from.
    pub sets: u32,
}

impl Domain {
    /// Without comparisons.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a comparison on test set `set`. Its resamples are those of every other comparison on that set: draw all arms
    /// of a set in one call, or in calls with the same [`crate::Units::Numbered`] units and seed, and give each set a
    /// seed of its own ([`crate::seed_for`]). A comparison that is undefined on all rows is left out: false.
    ///
    /// # Errors
    /// Another number of resamples than the comparisons before.
    pub fn add(&mut self, set: &str, delta: &Series) -> Result<bool, MetricError> {
        let found = delta.count();
        if let Some(sum) = self.sets.values().next() {
            let expected = sum.draws.len() as u32;
            if expected != found {
                return Err(MetricError::ResampleCount { expected, found });
            }
        }
        let Some(point) = delta.point() else {
            return Ok(false);
        };
        let sum = self.sets.entry(set.to_owned()).or_insert_with(|| Sum {
            comparisons: 0,
            point: 0.0,
            draws: vec![0.0; found as usize],
        });
        sum.comparisons += 1;
        sum.point += point;
        for (sum, draw) in sum.draws.iter_mut().zip(delta.draws()) {
            *sum += draw.unwrap_or(f64::NAN);
        }
        Ok(true)
    }

    /// The test sets with comparisons, in order of name.
    pub fn sets(&self) -> impl Iterator<Item = &str> {
        self.sets.keys().map(String::as_str)
    }

    /// The mean over all comparisons; none without any.
    pub fn summary(&self) -> Option<DomainSummary> {
        summarise(self.sets.values())
    }

    /// The mean without one test set; none where nothing is left.
    pub fn without(&self, set: &str) -> Option<DomainSummary> {
        summarise(
            self.sets
                .iter()
                .filter(|(name, _)| *name != set)
                .map(|(_, sum)| sum),
        )
    }
}

fn summarise<'a>(sums: impl Iterator<Item = &'a Sum>) -> Option<DomainSummary> {
    let mut total: Option<(Sum, u32)> = None;
    for sum in sums {
        match &mut total {
            None => total = Some((sum.clone(), 1)),
            Some((total, sets)) => {
                *sets += 1;
                total.comparisons += sum.comparisons;
                total.point += sum.point;
                total
                    .draws
                    .iter_mut()
                    .zip(&sum.draws)
                    .for_each(|(total, draw)| *total += draw);
            }
        }
    }
    let (total, sets) = total?;
    let n = f64::from(total.comparisons);
    let draws = total
        .draws
        .iter()
        .map(|sum| (!sum.is_nan()).then_some(sum / n));
    let mean = Series::new(Some(total.point / n), draws).estimate()?;
    Some(DomainSummary {
        mean,
        comparisons: total.comparisons,
        sets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(point: Option<f64>, draws: [f64; 3]) -> Series {
        Series::new(point, draws.map(|draw| (!draw.is_nan()).then_some(draw)))
    }

    #[test]
    fn comparisons_count_once_each_and_sets_can_be_left_out() {
        let mut domain = Domain::new();
        assert_eq!(domain.summary(), None);
        assert_eq!(
            domain.add("a", &series(Some(0.1), [0.1, 0.2, 0.3])),
            Ok(true)
        );
        assert_eq!(
            domain.add("a", &series(Some(0.3), [0.3, 0.4, f64::NAN])),
            Ok(true)
        );
        assert_eq!(
            domain.add("b", &series(Some(0.8), [0.8, 0.6, 0.9])),
            Ok(true)
        );
        assert_eq!(domain.add("b", &series(None, [0.8; 3])), Ok(false));
        let all = domain.summary().unwrap();
        assert!((all.mean.value - 0.4).abs() < 1e-15);
        assert_eq!((all.comparisons, all.sets), (3, 2));
        assert_eq!((all.mean.valid, all.mean.resamples), (2, 3));
        let rest = domain.without("a").unwrap();
        assert_eq!(
            (rest.mean.value, rest.comparisons, rest.mean.valid),
            (0.8, 1, 3)
        );
        assert_eq!(domain.sets().collect::<Vec<_>>(), ["a", "b"]);
        let short = Series::new(Some(0.0), [Some(0.0)]);
        assert!(matches!(
            domain.add("c", &short),
            Err(MetricError::ResampleCount {
                expected: 3,
                found: 1
            })
        ));
    }
}
