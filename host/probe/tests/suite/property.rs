//! What must hold for any small data set.

use focus_probe::{Device, ProbeSpec, Status, fit};
use proptest::prelude::*;

/// Rows of few distinct values, so that ties, duplicates and zero rows are common, and labels of both classes.
fn data() -> impl Strategy<Value = (usize, Vec<f32>, Vec<bool>)> {
    (1_usize..20, 2_usize..40).prop_flat_map(|(width, rows)| {
        let value = prop_oneof![Just(0.0_f32), -2.0_f32..2.0, -1e6_f32..1e6, -1e-6_f32..1e-6];
        let values = proptest::collection::vec(value, width * rows);
        let labels = proptest::collection::vec(any::<bool>(), rows).prop_map(|mut labels| {
            (labels[0], labels[1]) = (true, false);
            labels
        });
        (Just(width), values, labels)
    })
}

/// The objective as the specification writes it, and its gradient.
fn objective(
    width: usize,
    values: &[f32],
    labels: &[bool],
    spec: &ProbeSpec,
    weights: &[f64],
    intercept: f64,
) -> (f64, Vec<f64>) {
    let positives = labels.iter().filter(|&&label| label).count() as f64;
    let rows = labels.len() as f64;
    let mut loss = 0.5 * weights.iter().map(|weight| weight * weight).sum::<f64>();
    let mut gradient = weights.to_vec();
    gradient.push(0.0);
    for (row, &label) in values.chunks(width).zip(labels) {
        let norm = row
            .iter()
            .map(|&value| f64::from(value).powi(2))
            .sum::<f64>()
            .sqrt();
        let z: Vec<f64> = row
            .iter()
            .map(|&value| {
                if norm == 0.0 {
                    0.0
                } else {
                    f64::from(value) / norm
                }
            })
            .collect();
        let sign = if label { 1.0 } else { -1.0 };
        let cost = spec.c
            * if spec.balanced {
                rows / (2.0 * if label { positives } else { rows - positives })
            } else {
                1.0
            };
        let margin = sign * (z.iter().zip(weights).map(|(z, w)| z * w).sum::<f64>() + intercept);
        loss += cost * (-margin).exp().ln_1p();
        let slope = -sign * cost / (1.0 + margin.exp());
        for (gradient, z) in gradient.iter_mut().zip(&z) {
            *gradient += slope * z;
        }
        gradient[width] += slope;
    }
    (loss, gradient)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_converged_fit_is_a_stationary_point_of_the_specification((width, values, labels) in data(), balanced: bool, scale in -2_i32..3) {
        let spec = ProbeSpec { balanced, c: 10_f64.powi(scale), ..ProbeSpec::default() };
        let probe = fit(&values, &labels, &spec, &Device::Cpu).unwrap();
        prop_assert_eq!(probe.status, Status::Converged);
        let (loss, gradient) = objective(width, &values, &labels, &spec, &probe.weights, probe.intercept);
        prop_assert!((loss - probe.loss).abs() <= 1e-11 * loss.max(1.0), "{} against {}", probe.loss, loss);
        let norm = gradient.iter().map(|value| value * value).sum::<f64>().sqrt();
        prop_assert!(norm < 2e-10 * spec.c.max(1.0), "{norm:e}");
        for score in probe.scores(&values).unwrap() {
            prop_assert!((0.0..=1.0).contains(&score.probability));
            prop_assert_eq!(score.label(), score.probability > 0.5 || score.logit > 0.0);
        }
    }
}
