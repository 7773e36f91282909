//! Brier score: mean squared distance of score and label. Not in the paper; the corrected track adds it. Missing
//! without rows and where a score is no probability.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::score::mean_squared_error;
use crate::tally::Tally;
use crate::value::MetricValue;

register!(MetricSpec {
    id: "brier",
    title: "Brier",
    order: 80,
    direction: Direction::LowerIsBetter,
    as_published: false,
    role: Role::Headline,
    input: Input::Scores,
    share: None,
    from_tally: brier,
});

fn brier(tally: &Tally) -> MetricValue {
    mean_squared_error(tally).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Missing;

    fn of(labels: &[bool], scores: &[f64]) -> MetricValue {
        brier(&Tally::of_rows(labels, labels, Some(scores)))
    }

    #[test]
    fn one_class_is_enough_but_probabilities_are_needed() {
        assert_eq!(of(&[true, true], &[0.5, 1.0]).value(), Some(0.125));
        assert_eq!(
            of(&[true, false], &[0.5, 1.5]).missing(),
            Some(Missing::ScoreOutOfRange)
        );
        assert_eq!(of(&[], &[]).missing(), Some(Missing::Empty));
    }
}
