//! The rows of one cell: true label, decision, score. Owns the checks on them. It must not know metrics, models or
//! where rows come from.

use crate::error::MetricError;
use crate::tally::Tally;

/// Labels, decisions and scores of one cell's rows, checked, together with their [`Tally`]. Row order carries no
/// meaning: everything computed from a `Scored` is bitwise the same for any order.
#[derive(Debug, Clone)]
pub struct Scored<'a> {
    labels: &'a [bool],
    predicted: &'a [bool],
    scores: Option<&'a [f64]>,
    tally: Tally,
}

impl<'a> Scored<'a> {
    /// Rows with scores. `labels[i]`: the truth; `predicted[i]`: the decision, whatever rule made it; `scores[i]`: any
    /// finite number that grows with the belief in the positive class (a probability, if calibration is asked for).
    ///
    /// # Errors
    /// Columns of unequal length; a score that is not finite (the row is named); more than `u32::MAX` rows.
    pub fn new(
        labels: &'a [bool],
        predicted: &'a [bool],
        scores: &'a [f64],
    ) -> Result<Self, MetricError> {
        check_length("predicted", labels.len(), predicted.len())?;
        check_length("scores", labels.len(), scores.len())?;
        if let Some((row, &score)) = scores.iter().enumerate().find(|(_, s)| !s.is_finite()) {
            return Err(MetricError::NonFiniteScore { row, score });
        }
        let tally = Tally::of_rows(labels, predicted, Some(scores));
        Ok(Self {
            labels,
            predicted,
            scores: Some(scores),
            tally,
        })
    }

    /// Rows with decisions but without scores: metrics of scores are missing, `no_scores`.
    ///
    /// # Errors
    /// Columns of unequal length; more than `u32::MAX` rows.
    pub fn without_scores(labels: &'a [bool], predicted: &'a [bool]) -> Result<Self, MetricError> {
        check_length("predicted", labels.len(), predicted.len())?;
        Ok(Self {
            labels,
            predicted,
            scores: None,
            tally: Tally::of_rows(labels, predicted, None),
        })
    }

    /// True labels.
    pub fn labels(&self) -> &'a [bool] {
        self.labels
    }

    /// Decisions.
    pub fn predicted(&self) -> &'a [bool] {
        self.predicted
    }

    /// Scores, if the rows have any.
    pub fn scores(&self) -> Option<&'a [f64]> {
        self.scores
    }

    /// The rows as counts, in canonical order.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// n+, the number of positive rows.
    pub fn positives(&self) -> u64 {
        self.tally.confusion().positives()
    }

    /// n-, the number of negative rows.
    pub fn negatives(&self) -> u64 {
        self.tally.confusion().negatives()
    }
}

fn check_length(column: &'static str, expected: usize, found: usize) -> Result<(), MetricError> {
    let limit = u32::MAX as usize;
    if expected > limit {
        return Err(MetricError::TooManyRows {
            limit,
            found: expected,
        });
    }
    if expected != found {
        return Err(MetricError::Length {
            column,
            expected,
            found,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_row_and_the_column() {
        let error = Scored::new(&[true, false], &[true, false], &[0.5, f64::NAN]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Score in row 1 is not finite: expected a number, found NaN"
        );
        assert!(error.hint().is_some());
        let error = Scored::new(&[true], &[true], &[f64::INFINITY]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Score in row 0 is not finite: expected a number, found inf"
        );
        let error = Scored::new(&[true, false], &[true], &[0.5, 0.5]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Column `predicted` has the wrong length: expected 2 rows, found 1"
        );
        let error = Scored::new(&[true], &[true], &[]).unwrap_err();
        assert!(matches!(
            error,
            MetricError::Length {
                column: "scores",
                expected: 1,
                found: 0
            }
        ));
        assert!(Scored::without_scores(&[true], &[]).is_err());
    }

    #[test]
    fn no_rows_are_valid() {
        let scored = Scored::new(&[], &[], &[]).unwrap();
        assert!(scored.is_empty());
        assert_eq!(
            (scored.len(), scored.positives(), scored.negatives()),
            (0, 0, 0)
        );
    }
}
