//! Brier skill: 1 - Brier / p(1 - p), the gain over always answering the prevalence p of these rows. Negative is worse
//! than that. Not in the paper; the corrected track adds it. Missing with one class, where the reference is perfect.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::score::mean_squared_error;
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "brier_skill",
    title: "Brier skill",
    order: 90,
    direction: Direction::HigherIsBetter,
    as_published: false,
    role: Role::Headline,
    input: Input::Scores,
    share: None,
    from_tally: brier_skill,
});

fn brier_skill(tally: &Tally) -> MetricValue {
    skill(tally).into()
}

fn skill(tally: &Tally) -> Result<f64, Missing> {
    tally.two_class_groups()?;
    let counts = tally.confusion();
    let n = counts.rows() as f64;
    let reference = (counts.positives() as f64 / n) * (counts.negatives() as f64 / n);
    Ok(1.0 - mean_squared_error(tally)? / reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[bool], scores: &[f64]) -> MetricValue {
        brier_skill(&Tally::of_rows(labels, labels, Some(scores)))
    }

    #[test]
    fn the_prevalence_itself_has_no_skill() {
        assert_eq!(
            of(&[true, false, false, false], &[0.25; 4]).value(),
            Some(0.0)
        );
        assert_eq!(of(&[true, false], &[1.0, 0.0]).value(), Some(1.0));
        assert_eq!(of(&[true, false], &[0.0, 1.0]).value(), Some(-3.0));
        assert_eq!(of(&[true], &[1.0]).missing(), Some(Missing::OneClass));
    }
}
