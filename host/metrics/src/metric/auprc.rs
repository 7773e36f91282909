//! AUPRC as average precision, sum over thresholds of (R_k - R_{k-1}) P_k. Rows of equal score pass the threshold
//! together, and there is no interpolation. Missing with one class.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "auprc",
    title: "AUPRC",
    order: 20,
    direction: Direction::HigherIsBetter,
    as_published: true,
    role: Role::Headline,
    input: Input::Scores,
    share: None,
    from_tally: auprc,
});

fn auprc(tally: &Tally) -> MetricValue {
    average_precision(tally).into()
}

fn average_precision(tally: &Tally) -> Result<f64, Missing> {
    let groups = tally.two_class_groups()?;
    // Signed, because the machine turns signed integers into floats in one step.
    let (mut true_positives, mut passed) = (0_i64, 0_i64);
    let mut sum = 0.0;
    // No branch on thresholds without a positive, which add nothing: recall does not move there.
    for &[negatives, positives] in groups.counts.iter().rev() {
        true_positives += i64::from(positives);
        passed += i64::from(positives) + i64::from(negatives);
        sum += f64::from(positives) * (true_positives as f64 / passed.max(1) as f64);
    }
    Ok(sum / tally.confusion().positives() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[bool], scores: &[f64]) -> MetricValue {
        auprc(&Tally::of_rows(labels, labels, Some(scores)))
    }

    #[test]
    fn constant_scores_give_prevalence() {
        assert_eq!(
            of(&[true, false, false, false], &[0.2; 4]).value(),
            Some(0.25)
        );
    }

    #[test]
    fn a_perfect_ranking_gives_one() {
        assert_eq!(
            of(&[true, false, true], &[0.9, 0.1, 0.8]).value(),
            Some(1.0)
        );
        assert_eq!(of(&[false], &[0.9]).missing(), Some(Missing::OneClass));
    }
}
