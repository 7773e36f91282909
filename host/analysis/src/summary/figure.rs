//! A number of a table: how many cells it rests on, or why it is missing. Owns means over cells.

use serde::Serialize;

/// A number, or the reason why there is none. Never NaN.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What it was averaged over (cells, unless the table says otherwise).
    pub n: usize,
    /// Why there is no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'static str>,
    /// It stands in for a missing one: the median of the others, as the published code fills it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub filled: bool,
}

impl Figure {
    /// A number over `n`.
    pub fn of(value: f64, n: usize) -> Self {
        Self {
            value: Some(value),
            n,
            missing: None,
            filled: false,
        }
    }

    /// No number, and why.
    pub fn missing(reason: &'static str) -> Self {
        Self {
            value: None,
            n: 0,
            missing: Some(reason),
            filled: false,
        }
    }

    /// The mean of what is there.
    pub fn mean(values: impl IntoIterator<Item = f64>, otherwise: &'static str) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        mean(&values).map_or(Self::missing(otherwise), |mean| {
            Self::of(mean, values.len())
        })
    }
}

/// The mean; none of no values. Summed in ascending order, so that the order of cells does not matter.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted.iter().sum::<f64>() / sorted.len() as f64)
}

/// Standard deviation with n - 1; none under two values.
pub(crate) fn standard_deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let squares: Vec<f64> = values.iter().map(|v| (v - centre) * (v - centre)).collect();
    let n = squares.len();
    (n > 1).then(|| (mean(&squares).unwrap_or(0.0) * n as f64 / (n - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_typed_when_there_is_nothing() {
        assert_eq!(Figure::mean([0.5, 0.25], "no_cells"), Figure::of(0.375, 2));
        let none = Figure::mean([], "no_cells");
        assert_eq!((none.value, none.missing), (None, Some("no_cells")));
        assert_eq!(
            serde_json::to_string(&none).expect("JSON"),
            r#"{"n":0,"missing":"no_cells"}"#
        );
    }

    #[test]
    fn spread_needs_two_values() {
        assert_eq!(standard_deviation(&[0.5]), None);
        assert_eq!(
            standard_deviation(&[1.0, 3.0]),
            Some(std::f64::consts::SQRT_2)
        );
    }

    #[test]
    fn a_mean_does_not_depend_on_order() {
        assert_eq!(mean(&[0.1, 0.2, 0.3, 1e-9]), mean(&[1e-9, 0.3, 0.2, 0.1]));
    }
}
