//! AUROC: P(s+ > s-) + P(s+ = s-) / 2, counted in integers over all pairs, each twice, so that half a pair is one too. A score is never flipped, squashed or
//! rescaled. Missing with one class.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "auroc",
    title: "AUROC",
    order: 10,
    direction: Direction::HigherIsBetter,
    as_published: true,
    role: Role::Headline,
    input: Input::Scores,
    share: None,
    from_tally: auroc,
});

fn auroc(tally: &Tally) -> MetricValue {
    pairs_won(tally).into()
}

fn pairs_won(tally: &Tally) -> Result<f64, Missing> {
    let groups = tally.two_class_groups()?;
    let counts = tally.confusion();
    let twice_pairs = 2 * u128::from(counts.positives()) * u128::from(counts.negatives());
    // n+ n- of a weighted resample can pass u64, which is the faster of the two.
    let twice_won = if u64::try_from(twice_pairs).is_ok() {
        let (mut won, mut negatives_below) = (0_u64, 0_u64);
        for &[negatives, positives] in groups.counts {
            let (negatives, positives) = (u64::from(negatives), u64::from(positives));
            won += positives * (2 * negatives_below + negatives);
            negatives_below += negatives;
        }
        u128::from(won)
    } else {
        let (mut won, mut negatives_below) = (0_u128, 0_u128);
        for &[negatives, positives] in groups.counts {
            let (negatives, positives) = (u128::from(negatives), u128::from(positives));
            won += positives * (2 * negatives_below + negatives);
            negatives_below += negatives;
        }
        won
    };
    Ok(twice_won as f64 / twice_pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[bool], scores: &[f64]) -> MetricValue {
        auroc(&Tally::of_rows(labels, labels, Some(scores)))
    }

    #[test]
    fn ties_are_worth_half_and_order_is_never_flipped() {
        assert_eq!(of(&[true, false], &[0.3, 0.3]).value(), Some(0.5));
        assert_eq!(
            of(&[true, false, true], &[-1.0, 0.0, 1.0]).value(),
            Some(0.5)
        );
        assert_eq!(of(&[true, false], &[-4.0, 9.0]).value(), Some(0.0));
    }

    #[test]
    fn one_class_has_no_pairs() {
        assert_eq!(
            of(&[true, true], &[0.1, 0.2]).missing(),
            Some(Missing::OneClass)
        );
        assert_eq!(of(&[], &[]).missing(), Some(Missing::Empty));
    }
}
