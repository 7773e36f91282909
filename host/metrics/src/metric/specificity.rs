//! Specificity: negative rows decided negative, among the negative rows. Missing without negatives.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::{Confusion, Tally};
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "specificity",
    title: "Specificity",
    order: 230,
    direction: Direction::HigherIsBetter,
    as_published: false,
    role: Role::Rate,
    input: Input::Decisions,
    share: Some(share),
    from_tally: specificity,
});

fn share(counts: &Confusion) -> (u64, u64) {
    (counts.true_negative, counts.negatives())
}

fn specificity(tally: &Tally) -> MetricValue {
    let counts = tally.confusion();
    let otherwise = if counts.rows() == 0 {
        Missing::Empty
    } else {
        Missing::NoNegatives
    };
    MetricValue::share(share(counts), otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_missing_without_negatives() {
        let tally = Tally::of_rows(
            &[true, false, false, false],
            &[true, false, true, false],
            None,
        );
        assert_eq!(specificity(&tally).value(), Some(2.0 / 3.0));
        let tally = Tally::of_rows(&[true], &[true], None);
        assert_eq!(specificity(&tally).missing(), Some(Missing::NoNegatives));
    }
}
