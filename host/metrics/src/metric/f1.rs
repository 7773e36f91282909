//! F1 of the positive class, from counts: 2 TP / (2 TP + FP + FN). 0, flagged, when no row is positive in truth or by
//! decision. Missing without rows.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "f1",
    title: "F1",
    order: 40,
    direction: Direction::HigherIsBetter,
    as_published: true,
    role: Role::Headline,
    input: Input::Decisions,
    share: None,
    from_tally: f1,
});

fn f1(tally: &Tally) -> MetricValue {
    let counts = tally.confusion();
    if counts.rows() == 0 {
        return MetricValue::Missing(Missing::Empty);
    }
    let twice = 2 * counts.true_positive;
    MetricValue::ratio_or_flag(twice, twice + counts.false_positive + counts.false_negative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_harmonic_mean_and_flagged_without_positives() {
        let tally = Tally::of_rows(&[true, true, false], &[true, false, true], None);
        assert_eq!(f1(&tally), MetricValue::plain(0.5));
        let tally = Tally::of_rows(&[true], &[false], None);
        assert_eq!(f1(&tally), MetricValue::plain(0.0));
        let tally = Tally::of_rows(&[false], &[false], None);
        assert_eq!(f1(&tally).flag(), Some("no_positives"));
    }
}
