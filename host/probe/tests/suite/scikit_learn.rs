//! Scores against scikit-learn's at tight tolerance; `tests/data/regenerate.py` writes the values.

use focus_probe::{Device, ProbeSpec, Status, fit};
use serde::Deserialize;

use super::common::Recipe;

#[derive(Deserialize)]
struct Reference {
    cases: std::collections::BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    recipe: Recipe,
    balanced: bool,
    c: f64,
    copies: usize,
    zero_every: usize,
    positives: usize,
    last_value: f32,
    gradient_norm: f64,
    loss: f64,
    intercept: f64,
    every: usize,
    scores: Vec<f64>,
    labels: Vec<u8>,
}

impl Case {
    fn data(&self) -> (Vec<f32>, Vec<bool>) {
        let (values, labels) = self.recipe.make();
        let (mut values, labels) = (values.repeat(self.copies), labels.repeat(self.copies));
        if self.zero_every > 0 {
            for row in values
                .chunks_mut(self.recipe.width)
                .step_by(self.zero_every)
            {
                row.fill(0.0);
            }
        }
        (values, labels)
    }
}

#[test]
fn scores_agree_with_scikit_learn_at_tight_tolerance() {
    let reference: Reference =
        serde_json::from_str(include_str!("../data/scikit_learn.json")).unwrap();
    assert!(reference.cases.len() >= 13);
    for (name, case) in reference.cases {
        assert!(case.gradient_norm < 1e-11, "{name}: the reference is loose");
        let (values, labels) = case.data();
        assert_eq!(
            labels.iter().filter(|&&label| label).count(),
            case.positives,
            "{name}: other labels than in Python"
        );
        assert_eq!(
            values.last(),
            Some(&case.last_value),
            "{name}: other values than in Python"
        );

        let spec = ProbeSpec {
            c: case.c,
            balanced: case.balanced,
            ..ProbeSpec::default()
        };
        let probe = fit(&values, &labels, &spec, &Device::Cpu).unwrap();
        assert_eq!(
            probe.status,
            Status::Converged,
            "{name}: {} steps, gradient {:e}",
            probe.iterations,
            probe.gradient_norm
        );
        assert!(probe.gradient_norm <= 1e-10);
        assert!(
            (probe.loss - case.loss).abs() <= 1e-11 * case.loss,
            "{name}: loss {} against {}",
            probe.loss,
            case.loss
        );
        assert!(
            (probe.intercept - case.intercept).abs() < 1e-7,
            "{name}: intercept {} against {}",
            probe.intercept,
            case.intercept
        );
        if case.zero_every > 0 {
            assert_eq!(probe.zero_rows, labels.len().div_ceil(case.zero_every));
        }

        let scores = probe.scores(&values).unwrap();
        let shown: Vec<_> = scores.iter().step_by(case.every).collect();
        assert_eq!(shown.len(), case.scores.len());
        for ((score, wanted), label) in shown.iter().zip(&case.scores).zip(&case.labels) {
            assert!(
                (score.probability - wanted).abs() < 1e-8,
                "{name}: {} against {wanted}",
                score.probability
            );
            assert_eq!(u8::from(score.label()), *label, "{name}");
        }
    }
}
