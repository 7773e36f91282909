//! Rows of logits to probabilities and choices. Knows no tokens' meaning.

/// Natural logarithm of the softmax over a whole row, at the given ids, in f64. `None` where the row is not finite or an id beyond it.
pub fn log_softmax(logits: &[f32], ids: &[u32]) -> Option<Vec<f64>> {
    if logits.is_empty() || logits.iter().any(|logit| !logit.is_finite()) {
        return None;
    }
    let high = logits
        .iter()
        .fold(f64::NEG_INFINITY, |high, &logit| high.max(logit.into()));
    let sum: f64 = logits
        .iter()
        .map(|&logit| (f64::from(logit) - high).exp())
        .sum();
    let shift = high + sum.ln();
    ids.iter()
        .map(|&id| Some(f64::from(*logits.get(id as usize)?) - shift))
        .collect()
}

/// The largest logit's id, the lowest of equals. `None` where the row is not finite.
pub fn argmax(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (id, &logit) in logits.iter().enumerate() {
        if !logit.is_finite() {
            return None;
        }
        if best.is_none_or(|(_, high)| logit > high) {
            best = Some((id, logit));
        }
    }
    best.map(|(id, _)| id as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_over_the_whole_row() {
        let row = [1000.0, 1000.0, 999.0, -1000.0];
        let all = log_softmax(&row, &[0, 1, 2, 3]).unwrap();
        let sum: f64 = all.iter().map(|log| log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        assert!((all[0] - all[2] - 1.0).abs() < 1e-12 && all[0] == all[1]);
        assert_eq!(log_softmax(&row, &[4]), None);
        assert_eq!(log_softmax(&[0.0, f32::NAN], &[0]), None);
        assert_eq!(log_softmax(&[], &[]), None);
    }

    #[test]
    fn the_lowest_of_equals_wins() {
        assert_eq!(argmax(&[0.0, 2.0, 2.0, 1.0]), Some(1));
        assert_eq!(argmax(&[-3.0]), Some(0));
        assert_eq!(argmax(&[0.0, f32::INFINITY]), None);
        assert_eq!(argmax(&[]), None);
    }
}
