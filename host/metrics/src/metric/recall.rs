//! Recall (true positive rate, sensitivity) of the positive class. 0, flagged, when no row is positive. Missing without
//! rows.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "recall",
    title: "Recall",
    order: 60,
    direction: Direction::HigherIsBetter,
    as_published: true,
    role: Role::Headline,
    input: Input::Decisions,
    share: None,
    from_tally: recall,
});

fn recall(tally: &Tally) -> MetricValue {
    let counts = tally.confusion();
    if counts.rows() == 0 {
        return MetricValue::Missing(Missing::Empty);
    }
    MetricValue::ratio_or_flag(counts.true_positive, counts.positives())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_flagged_only_without_true_positives_to_find() {
        let tally = Tally::of_rows(&[true, true, false], &[true, false, false], None);
        assert_eq!(recall(&tally), MetricValue::plain(0.5));
        let tally = Tally::of_rows(&[false, false], &[true, false], None);
        assert_eq!(recall(&tally).flag(), Some("no_positives"));
    }
}
