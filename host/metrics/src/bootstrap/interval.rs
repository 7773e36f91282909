//! Percentile intervals and p-values of resampled values. Owns the two formulas, nothing else.

/// Lower end of the interval, as a quantile.
const LOW: f64 = 0.025;
/// Upper end of the interval, as a quantile.
const HIGH: f64 = 0.975;

/// A percentile interval: the 2.5 % and 97.5 % quantiles with linear interpolation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Interval {
    /// 2.5 % quantile.
    pub low: f64,
    /// 97.5 % quantile.
    pub high: f64,
}

impl Interval {
    /// The interval of these values, which change their order; none without values. Values are finite.
    pub fn of(values: &mut [f64]) -> Option<Self> {
        Some(Self {
            low: quantile(values, LOW)?,
            high: quantile(values, HIGH)?,
        })
    }
}

/// The quantile at `share` with linear interpolation, found by selection, which costs less than sorting; none without
/// values. The values change their order.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let position = last as f64 * share;
    let below = (position as usize).min(last);
    let (_, at, larger) = values.select_nth_unstable_by(below, f64::total_cmp);
    let a = *at;
    let b = larger.iter().copied().min_by(f64::total_cmp).unwrap_or(a);
    Some(a + (b - a) * (position - below as f64))
}

/// Two-sided bootstrap p-value of a difference: min(1, 2 min((1 + #[d <= 0]) / (V + 1), (1 + #[d >= 0]) / (V + 1)))
/// over the V valid resamples. None without a valid resample. It can never be below 2 / (V + 1).
pub fn two_sided_p(deltas: &[f64]) -> Option<f64> {
    if deltas.is_empty() {
        return None;
    }
    let at_most = deltas.iter().filter(|&&delta| delta <= 0.0).count();
    let at_least = deltas.iter().filter(|&&delta| delta >= 0.0).count();
    let share = (1 + at_most.min(at_least)) as f64 / (deltas.len() + 1) as f64;
    Some((2.0 * share).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        let mut values: Vec<f64> = (0..41).rev().map(f64::from).collect();
        assert_eq!(
            Interval::of(&mut values),
            Some(Interval {
                low: 1.0,
                high: 39.0
            })
        );
        assert_eq!(
            Interval::of(&mut [3.0]),
            Some(Interval {
                low: 3.0,
                high: 3.0
            })
        );
        let two = Interval::of(&mut [1.0, 0.0]).unwrap();
        assert_eq!((two.low, two.high), (0.025, 0.975));
        assert_eq!(Interval::of(&mut []), None);
    }

    #[test]
    fn p_counts_zeros_on_both_sides() {
        assert_eq!(two_sided_p(&[0.0; 1000]), Some(1.0));
        assert_eq!(two_sided_p(&[0.1; 999]), Some(0.002));
        assert_eq!(two_sided_p(&[-0.1; 999]), Some(0.002));
        assert_eq!(two_sided_p(&[-1.0, 1.0, 1.0, 1.0]), Some(0.8));
        assert_eq!(two_sided_p(&[]), None);
    }
}
