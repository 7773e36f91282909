//! Accuracy: the share of rows whose decision equals their label. Missing without rows.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "accuracy",
    title: "Accuracy",
    order: 30,
    direction: Direction::HigherIsBetter,
    as_published: true,
    role: Role::Headline,
    input: Input::Decisions,
    share: Some(|counts| (counts.true_positive + counts.true_negative, counts.rows())),
    from_tally: accuracy,
});

fn accuracy(tally: &Tally) -> MetricValue {
    let counts = tally.confusion();
    if counts.rows() == 0 {
        return MetricValue::Missing(Missing::Empty);
    }
    MetricValue::plain((counts.true_positive + counts.true_negative) as f64 / counts.rows() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_rows_decided_right() {
        let tally = Tally::of_rows(
            &[true, false, true, false],
            &[true, true, true, false],
            None,
        );
        assert_eq!(accuracy(&tally).value(), Some(0.75));
        assert_eq!(accuracy(&Tally::default()).missing(), Some(Missing::Empty));
    }
}
