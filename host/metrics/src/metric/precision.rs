//! Precision of the positive class: true positives among the rows decided positive. 0, flagged, when none was decided
//! positive. Missing without rows.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "precision",
    title: "Precision",
    order: 50,
    direction: Direction::HigherIsBetter,
    as_published: true,
    role: Role::Headline,
    input: Input::Decisions,
    share: None,
    from_tally: precision,
});

fn precision(tally: &Tally) -> MetricValue {
    let counts = tally.confusion();
    if counts.rows() == 0 {
        return MetricValue::Missing(Missing::Empty);
    }
    MetricValue::ratio_or_flag(
        counts.true_positive,
        counts.true_positive + counts.false_positive,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_flagged_only_when_nothing_was_decided_positive() {
        let tally = Tally::of_rows(&[true, false, false], &[true, true, false], None);
        assert_eq!(precision(&tally), MetricValue::plain(0.5));
        let tally = Tally::of_rows(&[true, false], &[false, false], None);
        assert_eq!(precision(&tally).flag(), Some("no_positives"));
        let tally = Tally::of_rows(&[true, false], &[false, true], None);
        assert_eq!(precision(&tally), MetricValue::plain(0.0));
    }
}
