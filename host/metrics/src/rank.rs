//! Ranks of many models by one metric, with what resampling says about them. Overlapping intervals are no test: compare
//! two models by their paired difference. It must not know which models or metric.

use crate::bootstrap::Interval;
use crate::error::MetricError;
use crate::registry::Direction;
use crate::series::{Series, same_count};

/// One arm's place.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Rank {
    /// The metric on all rows; none leaves the arm out of the ranking.
    pub value: Option<f64>,
    /// 1 is best; equal values share the mean of their places. None where the value is.
    pub rank: Option<f64>,
    /// Percentile interval of the rank over the valid resamples; none where the rank is or V is 0.
    pub interval: Option<Interval>,
    /// Share of the valid resamples in which the arm is first, k arms that tie for it taking 1/k each; none where the
    /// interval is.
    pub first: Option<f64>,
    /// V, the resamples on which every ranked arm is defined; the same for all arms.
    pub valid: u32,
    /// B, the resamples drawn.
    pub resamples: u32,
}

/// Places of these values, 1 the best; equal values share the mean of their places.
///
/// # Errors
/// A direction in which neither way is better.
pub fn mid_ranks(values: &[f64], direction: Direction) -> Result<Vec<f64>, MetricError> {
    let cost = cost(direction)?;
    let costs: Vec<f64> = values.iter().map(|&value| cost(value)).collect();
    let mut ranks = vec![0.0; values.len()];
    place(
        &costs,
        &mut (0..values.len()).collect::<Vec<_>>(),
        &mut ranks,
    );
    Ok(ranks)
}

/// Ranks the arms. A ranking over several test sets ranks [`Series::mean`] of each model's series.
///
/// # Errors
/// Unequal numbers of resamples; a direction in which neither way is better.
pub fn rank_series(arms: &[Series], direction: Direction) -> Result<Vec<Rank>, MetricError> {
    let cost = cost(direction)?;
    let resamples = arms.first().map_or(0, Series::count);
    for arm in arms {
        same_count(arm, &arms[0])?;
    }
    let ranked: Vec<(&Series, f64)> = arms
        .iter()
        .filter_map(|arm| Some((arm, arm.point()?)))
        .collect();
    let mut order: Vec<usize> = (0..ranked.len()).collect();
    let mut ranks = vec![0.0; ranked.len()];
    let (mut drawn, mut first) = (vec![Vec::new(); ranked.len()], vec![0.0; ranked.len()]);
    let mut costs = vec![0.0; ranked.len()];
    for resample in 0..resamples as usize {
        let defined = ranked
            .iter()
            .zip(&mut costs)
            .all(|((arm, _), place)| arm.draw(resample).map(|draw| *place = cost(draw)).is_some());
        if !defined {
            continue;
        }
        place(&costs, &mut order, &mut ranks);
        let best = ranks.iter().copied().fold(f64::INFINITY, f64::min);
        let shared = ranks.iter().filter(|&&rank| rank == best).count() as f64;
        for ((rank, drawn), first) in ranks.iter().zip(&mut drawn).zip(&mut first) {
            drawn.push(*rank);
            *first += if *rank == best { 1.0 / shared } else { 0.0 };
        }
    }
    for (value, (_, point)) in costs.iter_mut().zip(&ranked) {
        *value = cost(*point);
    }
    place(&costs, &mut order, &mut ranks);
    let valid = drawn.first().map_or(0, Vec::len) as u32;
    let mut places = ranks.iter().zip(drawn).zip(first);
    let of = |arm: &Series| {
        let empty = Rank {
            value: None,
            rank: None,
            interval: None,
            first: None,
            valid,
            resamples,
        };
        let Some(value) = arm.point() else {
            return empty;
        };
        let ((rank, mut drawn), first) = places.next().expect("one place for each ranked arm");
        let interval = Interval::of(&mut drawn);
        Rank {
            value: Some(value),
            rank: Some(*rank),
            interval,
            first: interval.map(|_| first / f64::from(valid)),
            ..empty
        }
    };
    Ok(arms.iter().map(of).collect())
}

/// What the best has least of.
fn cost(direction: Direction) -> Result<fn(f64) -> f64, MetricError> {
    match direction {
        Direction::HigherIsBetter => Ok(|value| -value),
        Direction::LowerIsBetter => Ok(|value| value),
        Direction::NearerOne => Ok(|value| (value - 1.0).abs()),
        Direction::NearerZero => Ok(f64::abs),
        Direction::Neutral => Err(MetricError::NoDirection),
    }
}

/// Writes mid-ranks of ascending costs; `order` is any permutation and comes back sorted.
fn place(costs: &[f64], order: &mut [usize], ranks: &mut [f64]) {
    order.sort_unstable_by(|&a, &b| costs[a].total_cmp(&costs[b]));
    let mut before = 0;
    // `==`: the two signed zeros tie.
    for tied in order.chunk_by(|&a, &b| costs[a] == costs[b]) {
        let shared = before as f64 + (tied.len() + 1) as f64 / 2.0;
        for &arm in tied {
            ranks[arm] = shared;
        }
        before += tied.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(point: Option<f64>, draws: &[f64]) -> Series {
        Series::new(
            point,
            draws.iter().map(|&draw| (!draw.is_nan()).then_some(draw)),
        )
    }

    #[test]
    fn ties_share_the_mean_of_their_places() {
        let values = [0.7, 0.9, 0.7, 0.1, 0.7];
        assert_eq!(
            mid_ranks(&values, Direction::HigherIsBetter).unwrap(),
            [3.0, 1.0, 3.0, 5.0, 3.0]
        );
        assert_eq!(
            mid_ranks(&values, Direction::LowerIsBetter).unwrap(),
            [3.0, 5.0, 3.0, 1.0, 3.0]
        );
        assert_eq!(
            mid_ranks(&[1.5, 0.9, 1.1], Direction::NearerOne).unwrap(),
            [3.0, 1.0, 2.0]
        );
        assert_eq!(
            mid_ranks(&[0.0, -0.0, -1.0], Direction::NearerZero).unwrap(),
            [1.5, 1.5, 3.0]
        );
        assert_eq!(
            mid_ranks(&[1.0], Direction::Neutral),
            Err(MetricError::NoDirection)
        );
    }

    #[test]
    fn resamples_that_leave_an_arm_undefined_are_skipped_for_all() {
        let arms = [
            series(Some(0.9), &[0.9, 0.5, f64::NAN, 0.8]),
            series(Some(0.8), &[0.8, 0.6, 0.1, 0.8]),
            series(None, &[0.99; 4]),
        ];
        let ranks = rank_series(&arms, Direction::HigherIsBetter).unwrap();
        assert_eq!(
            (ranks[0].rank, ranks[1].rank, ranks[2].rank),
            (Some(1.0), Some(2.0), None)
        );
        assert_eq!(ranks[0].first, Some(0.5));
        assert_eq!(ranks[1].first, Some(0.5));
        assert_eq!(
            (ranks[0].valid, ranks[2].valid, ranks[0].resamples),
            (3, 3, 4)
        );
        assert!(ranks[0].interval.is_some() && ranks[2].interval.is_none());
    }

    #[test]
    fn one_arm_is_first_and_none_are_nothing() {
        let rank =
            rank_series(&[series(Some(0.3), &[0.1, 0.2])], Direction::LowerIsBetter).unwrap()[0];
        assert_eq!((rank.rank, rank.first), (Some(1.0), Some(1.0)));
        assert!(
            rank_series(&[], Direction::LowerIsBetter)
                .unwrap()
                .is_empty()
        );
        let uneven = [series(Some(0.1), &[0.1]), series(Some(0.1), &[0.1, 0.2])];
        assert!(rank_series(&uneven, Direction::LowerIsBetter).is_err());
    }
}
