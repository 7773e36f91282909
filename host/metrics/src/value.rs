//! What a metric answers: a finite number, perhaps flagged, or the reason why there is none. Owns the stable names of
//! the reasons, which reports and stored tables use. Never holds NaN.

use serde::Serialize;

/// Flag of a value that is 0 by convention because its denominator is empty.
pub const NO_POSITIVES: &str = "no_positives";

/// Why a metric has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missing {
    /// There are no rows.
    Empty,
    /// The rows carry labels and decisions but no scores.
    NoScores,
    /// All rows have the same label.
    OneClass,
    /// A score lies outside [0, 1], so it is no probability. Ranks are unaffected.
    ScoreOutOfRange,
    /// No row is positive.
    NoPositives,
    /// No row is negative.
    NoNegatives,
    /// All scores are the same, so no line can be fitted to them.
    ConstantScores,
    /// A threshold separates the classes, so that the fitted slope would be infinite.
    Separated,
    /// The fit did not reach its maximum within its limit of steps.
    NotConverged,
    /// The training split behind a prior correction has one class.
    TrainingOneClass,
    /// Fewer points than the statistic needs.
    TooFewPoints,
    /// All points have the same coordinate.
    Constant,
    /// A coordinate is NaN or infinite.
    NotFinite,
}

/// All reasons, for tables of names.
const REASONS: [(Missing, &str); 13] = [
    (Missing::Empty, "empty"),
    (Missing::NoScores, "no_scores"),
    (Missing::OneClass, "one_class"),
    (Missing::ScoreOutOfRange, "score_out_of_range"),
    (Missing::NoPositives, "no_positives"),
    (Missing::NoNegatives, "no_negatives"),
    (Missing::ConstantScores, "constant_scores"),
    (Missing::Separated, "separated"),
    (Missing::NotConverged, "not_converged"),
    (Missing::TrainingOneClass, "training_one_class"),
    (Missing::TooFewPoints, "too_few_points"),
    (Missing::Constant, "constant"),
    (Missing::NotFinite, "not_finite"),
];

impl Missing {
    /// Stable name, as stored and printed.
    pub fn name(self) -> &'static str {
        let found = REASONS.iter().find(|(reason, _)| *reason == self);
        found.expect("every reason is in the table").1
    }
}

/// A metric's answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricValue {
    /// A finite number.
    Value {
        /// The number.
        value: f64,
        /// A convention that was needed to give it, for instance [`NO_POSITIVES`].
        flag: Option<&'static str>,
    },
    /// No number, and why.
    Missing(Missing),
}

impl MetricValue {
    /// A plain, unflagged value, which must be finite.
    pub fn plain(value: f64) -> Self {
        assert!(value.is_finite(), "metric formula gave {value}");
        Self::Value { value, flag: None }
    }

    /// `numerator / denominator`, or 0 flagged [`NO_POSITIVES`] where the denominator is empty.
    pub fn ratio_or_flag(numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            Self::Value {
                value: 0.0,
                flag: Some(NO_POSITIVES),
            }
        } else {
            Self::plain(numerator as f64 / denominator as f64)
        }
    }

    /// A share of rows as (numerator, denominator), or `otherwise` where the denominator is empty.
    pub fn share((numerator, denominator): (u64, u64), otherwise: Missing) -> Self {
        if denominator == 0 {
            Self::Missing(otherwise)
        } else {
            Self::plain(numerator as f64 / denominator as f64)
        }
    }

    /// The number, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Value { value, .. } => Some(*value),
            Self::Missing(_) => None,
        }
    }

    /// The convention behind the number, if one was needed.
    pub fn flag(&self) -> Option<&'static str> {
        match self {
            Self::Value { flag, .. } => *flag,
            Self::Missing(_) => None,
        }
    }

    /// The reason for a missing number.
    pub fn missing(&self) -> Option<Missing> {
        match self {
            Self::Value { .. } => None,
            Self::Missing(reason) => Some(*reason),
        }
    }
}

impl From<Result<f64, Missing>> for MetricValue {
    fn from(result: Result<f64, Missing>) -> Self {
        match result {
            Ok(value) => Self::plain(value),
            Err(reason) => Self::Missing(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_equal_their_serialised_form() {
        for (reason, name) in REASONS {
            assert_eq!(serde_json::to_value(reason).unwrap(), name);
            assert_eq!(reason.name(), name);
        }
    }

    #[test]
    fn an_empty_denominator_is_zero_and_flagged() {
        assert_eq!(MetricValue::ratio_or_flag(0, 0).flag(), Some(NO_POSITIVES));
        assert_eq!(MetricValue::ratio_or_flag(0, 3), MetricValue::plain(0.0));
    }
}
