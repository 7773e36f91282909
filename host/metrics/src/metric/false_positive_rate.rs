//! False positive rate: negative rows decided positive, among the negative rows. Missing without negatives.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::{Confusion, Tally};
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "false_positive_rate",
    title: "False positive rate",
    order: 220,
    direction: Direction::LowerIsBetter,
    as_published: false,
    role: Role::Rate,
    input: Input::Decisions,
    share: Some(share),
    from_tally: false_positive_rate,
});

fn share(counts: &Confusion) -> (u64, u64) {
    (counts.false_positive, counts.negatives())
}

fn false_positive_rate(tally: &Tally) -> MetricValue {
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
        let tally = Tally::of_rows(&[true, false, false], &[true, false, true], None);
        assert_eq!(false_positive_rate(&tally).value(), Some(0.5));
        let tally = Tally::of_rows(&[true], &[true], None);
        assert_eq!(
            false_positive_rate(&tally).missing(),
            Some(Missing::NoNegatives)
        );
    }
}
