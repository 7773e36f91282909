//! True positive rate: true positives among the positive rows, for gaps between groups. Missing without positives, where
//! [`recall`](super::recall) reports a flagged 0 by the convention of tables: a gap to a group without positives would
//! be made of that convention.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::{Confusion, Tally};
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "true_positive_rate",
    title: "True positive rate",
    order: 210,
    direction: Direction::HigherIsBetter,
    as_published: false,
    role: Role::Rate,
    input: Input::Decisions,
    share: Some(share),
    from_tally: true_positive_rate,
});

fn share(counts: &Confusion) -> (u64, u64) {
    (counts.true_positive, counts.positives())
}

fn true_positive_rate(tally: &Tally) -> MetricValue {
    let counts = tally.confusion();
    let otherwise = if counts.rows() == 0 {
        Missing::Empty
    } else {
        Missing::NoPositives
    };
    MetricValue::share(share(counts), otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_missing_where_nothing_could_be_found() {
        let tally = Tally::of_rows(&[true, true, false], &[true, false, true], None);
        assert_eq!(true_positive_rate(&tally).value(), Some(0.5));
        let tally = Tally::of_rows(&[false], &[true], None);
        assert_eq!(
            true_positive_rate(&tally).missing(),
            Some(Missing::NoPositives)
        );
        assert_eq!(
            true_positive_rate(&Tally::default()).missing(),
            Some(Missing::Empty)
        );
    }
}
