//! Mean score of the positive class, to be read beside the prevalence: calibration in the large. Missing without rows and
//! where a score is no probability. One class is enough.

use crate::registry::{Direction, Input, MetricSpec, Role, register};
use crate::tally::Tally;
use crate::value::{MetricValue, Missing};

register!(MetricSpec {
    id: "mean_score",
    title: "Mean score",
    order: 240,
    direction: Direction::Neutral,
    as_published: false,
    role: Role::Rate,
    input: Input::Scores,
    share: None,
    from_tally: mean_score,
});

fn mean_score(tally: &Tally) -> MetricValue {
    mean(tally).into()
}

fn mean(tally: &Tally) -> Result<f64, Missing> {
    let groups = tally.scored_groups()?.probabilities()?;
    // Groups without rows occur in resamples and may lie outside [0, 1].
    let present = groups.iter().filter(|group| group.rows() > 0);
    let sum: f64 = present.map(|group| group.rows() as f64 * group.score).sum();
    Ok(sum / tally.confusion().rows() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_probabilities_only() {
        let of = |scores: &[f64]| mean_score(&Tally::of_rows(&[true; 2], &[true; 2], Some(scores)));
        assert_eq!(of(&[0.5, 1.0]).value(), Some(0.75));
        assert_eq!(of(&[0.5, 1.5]).missing(), Some(Missing::ScoreOutOfRange));
        assert_eq!(
            mean_score(&Tally::default()).missing(),
            Some(Missing::Empty)
        );
    }
}
