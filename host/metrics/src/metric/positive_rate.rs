//! Positive rate: the share of rows decided positive. Its gap between two groups is demographic parity. Missing without
//! rows.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::{Confusion, Tally};
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "positive_rate",
    title: "Positive rate",
    order: 200,
    direction: Direction::Neutral,
    as_published: false,
    role: Role::Rate,
    input: Input::Decisions,
    share: Some(share),
    from_tally: positive_rate,
});

fn share(counts: &Confusion) -> (u64, u64) {
    (counts.true_positive + counts.false_positive, counts.rows())
}

fn positive_rate(tally: &Tally) -> MetricValue {
    MetricValue::share(share(tally.confusion()), Missing::Empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_decisions_whatever_the_truth() {
        let tally = Tally::of_rows(
            &[true, false, true, false],
            &[true, true, false, true],
            None,
        );
        assert_eq!(positive_rate(&tally).value(), Some(0.75));
        assert_eq!(
            positive_rate(&Tally::default()).missing(),
            Some(Missing::Empty)
        );
    }
}
