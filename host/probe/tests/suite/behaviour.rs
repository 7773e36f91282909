//! What a fit says of itself, and what must not change it.

use focus_probe::{Device, Features, Fit, ProbeError, ProbeSpec, Status, fit};

use super::common::Recipe;

const MIDDLE: Recipe = Recipe {
    rows: 700,
    width: 150,
    factors: 8,
    offset: 1.0,
    noise: 0.25,
    strength: 2.0,
    confusion: 0.75,
    threshold: 0.6,
    seed: 301,
};
const SMALL: Recipe = Recipe {
    rows: 90,
    width: 21,
    seed: 311,
    ..MIDDLE
};

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

fn probabilities(probe: &Fit, values: &[f32]) -> Vec<f64> {
    probe
        .scores(values)
        .unwrap()
        .iter()
        .map(|score| score.probability)
        .collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (values, labels) = MIDDLE.make();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let probe = fit(&values, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
            let scores = probe.scores(&values).unwrap();
            serde_json::to_string(&(probe, scores)).unwrap()
        })
    };
    let one = run(1);
    for threads in [2, 3, 7] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let (values, labels) = MIDDLE.make();
    let probe = fit(&values, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
    let order: Vec<usize> = (0..labels.len())
        .map(|index| (index * 263 + 17) % labels.len())
        .collect();
    let moved: Vec<f32> = order
        .iter()
        .flat_map(|&row| &values[row * MIDDLE.width..(row + 1) * MIDDLE.width])
        .copied()
        .collect();
    let moved_labels: Vec<bool> = order.iter().map(|&row| labels[row]).collect();
    let other = fit(&moved, &moved_labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
    assert!(
        largest_difference(
            &probabilities(&probe, &values),
            &probabilities(&other, &values)
        ) < 1e-9
    );
}

#[test]
fn balanced_is_the_explicit_weighting() {
    // 30 positives and 60 negatives: balanced costs are 1.5 and 0.75, as are doubled positives at c = 0.75.
    let (values, labels) = Recipe { rows: 400, ..SMALL }.make();
    let (mut rows, mut answers) = (Vec::new(), Vec::new());
    for (wanted, count) in [(true, 30), (false, 60)] {
        for index in (0..labels.len())
            .filter(|&index| labels[index] == wanted)
            .take(count)
        {
            rows.extend_from_slice(&values[index * SMALL.width..(index + 1) * SMALL.width]);
            answers.push(wanted);
        }
    }
    assert_eq!(answers.len(), 90);
    let balanced = fit(&rows, &answers, &ProbeSpec::default(), &Device::Cpu).unwrap();
    let mut doubled = rows.clone();
    doubled.extend_from_slice(&rows[..30 * SMALL.width]);
    let mut doubled_answers = answers.clone();
    doubled_answers.extend([true; 30]);
    let explicit = fit(
        &doubled,
        &doubled_answers,
        &ProbeSpec {
            c: 0.75,
            ..ProbeSpec::unweighted()
        },
        &Device::Cpu,
    )
    .unwrap();
    assert!(largest_difference(&balanced.weights, &explicit.weights) < 1e-9);
    assert!((balanced.loss - explicit.loss).abs() < 1e-10);
    let unweighted = fit(&rows, &answers, &ProbeSpec::unweighted(), &Device::Cpu).unwrap();
    assert!(
        largest_difference(&balanced.weights, &unweighted.weights) > 1e-3,
        "the weighting must matter"
    );
}

#[test]
fn the_length_of_an_embedding_does_not_matter() {
    let (values, labels) = SMALL.make();
    let probe = fit(&values, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
    let powers: Vec<f32> = values
        .chunks(SMALL.width)
        .enumerate()
        .flat_map(|(row, values)| {
            values
                .iter()
                .map(move |value| value * 2_f32.powi(row as i32 % 9 - 4))
        })
        .collect();
    assert_eq!(
        fit(&powers, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap(),
        probe,
        "powers of two are exact"
    );
    // Beyond what single-precision products bear.
    for scale in [1e30, 1e-25] {
        let scaled: Vec<f32> = values.iter().map(|value| value * scale).collect();
        let other = fit(&scaled, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
        assert_eq!(other.status, Status::Converged);
        assert!(
            largest_difference(
                &probabilities(&probe, &values),
                &probabilities(&other, &scaled)
            ) < 1e-6
        );
    }
}

#[test]
fn swapping_the_classes_mirrors_the_fit() {
    let (values, labels) = SMALL.make();
    let swapped: Vec<bool> = labels.iter().map(|label| !label).collect();
    let probe = fit(&values, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
    let mirror = fit(&values, &swapped, &ProbeSpec::default(), &Device::Cpu).unwrap();
    let negated: Vec<f64> = mirror.weights.iter().map(|weight| -weight).collect();
    assert!(largest_difference(&probe.weights, &negated) < 1e-9);
    assert!((probe.intercept + mirror.intercept).abs() < 1e-9);
}

#[test]
fn the_iteration_limit_is_reported() {
    let (values, labels) = SMALL.make();
    for max_iterations in [0, 1, 2] {
        let probe = fit(
            &values,
            &labels,
            &ProbeSpec {
                max_iterations,
                ..ProbeSpec::default()
            },
            &Device::Cpu,
        )
        .unwrap();
        assert_eq!(
            (probe.status, probe.iterations),
            (Status::IterationLimit, max_iterations)
        );
        assert!(probe.gradient_norm > 1e-10);
        assert_eq!(
            probe.scores(&values).unwrap().len(),
            labels.len(),
            "a marked fit still scores"
        );
    }
}

#[test]
fn a_tolerance_out_of_reach_stalls_at_the_end_of_f64() {
    let (values, labels) = SMALL.make();
    let probe = fit(
        &values,
        &labels,
        &ProbeSpec {
            tolerance: 0.0,
            ..ProbeSpec::default()
        },
        &Device::Cpu,
    )
    .unwrap();
    assert!(
        probe.status != Status::IterationLimit && probe.gradient_norm < 1e-12,
        "{:?} at {:e}",
        probe.status,
        probe.gradient_norm
    );
}

#[test]
fn the_account_of_a_fit_is_complete() {
    let (mut values, labels) = SMALL.make();
    values[..SMALL.width].fill(0.0);
    let probe = fit(&values, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
    assert_eq!(
        (
            probe.rows,
            probe.positives + probe.negatives,
            probe.zero_rows
        ),
        (90, 90, 1)
    );
    assert_eq!(
        probe.positives,
        labels.iter().filter(|&&label| label).count()
    );
    assert!(probe.evaluations > probe.iterations && probe.hessian_products >= probe.iterations);
    assert_eq!(
        probe.scores(&values[..SMALL.width]).unwrap()[0].logit,
        probe.intercept,
        "a zero row knows the intercept only"
    );
    let text = serde_json::to_string(&probe).unwrap();
    assert_eq!(serde_json::from_str::<Fit>(&text).unwrap(), probe);
}

#[test]
fn features_serve_several_fits() {
    let (values, labels) = SMALL.make();
    let features = Features::new(values.clone(), labels.len(), &Device::Cpu).unwrap();
    for spec in [ProbeSpec::default(), ProbeSpec::unweighted()] {
        assert_eq!(
            features.fit(&labels, &spec).unwrap(),
            fit(&values, &labels, &spec, &Device::Cpu).unwrap()
        );
    }
    assert!(matches!(
        features.fit(&labels[1..], &ProbeSpec::default()),
        Err(ProbeError::LabelCount {
            rows: 90,
            labels: 89
        })
    ));
}

#[test]
fn scores_do_not_depend_on_the_rows_beside_them() {
    let (values, labels) = MIDDLE.make();
    let probe = fit(&values, &labels, &ProbeSpec::default(), &Device::Cpu).unwrap();
    let all = probe.scores(&values).unwrap();
    for (row, values) in values.chunks(MIDDLE.width).enumerate() {
        assert_eq!(probe.scores(values).unwrap(), all[row..=row]);
    }
    assert!(probe.scores(&[]).unwrap().is_empty());
    assert!(matches!(
        probe.scores(&values[1..]),
        Err(ProbeError::Width { expected: 150, .. })
    ));
    let mut bad = values;
    bad[150 * 3 + 5] = f32::NAN;
    assert!(matches!(
        probe.scores(&bad),
        Err(ProbeError::NotFinite {
            row: 3,
            column: 5,
            ..
        })
    ));
}

#[test]
fn bad_input_is_refused() {
    let spec = ProbeSpec::default();
    let run =
        |values: &[f32], labels: &[bool]| fit(values, labels, &spec, &Device::Cpu).unwrap_err();
    assert!(matches!(run(&[], &[]), ProbeError::NoRows));
    assert!(matches!(
        run(&[1.0], &[]),
        ProbeError::Ragged { rows: 0, values: 1 }
    ));
    assert!(matches!(
        run(&[], &[true, false]),
        ProbeError::NoColumns { rows: 2 }
    ));
    assert!(matches!(
        run(&[1.0; 5], &[true, false]),
        ProbeError::Ragged { rows: 2, values: 5 }
    ));
    assert!(matches!(
        run(&[1.0; 4], &[true, true]),
        ProbeError::OneClass {
            rows: 2,
            positives: 2,
            negatives: 0
        }
    ));
    assert!(matches!(
        run(&[1.0; 4], &[false, false]),
        ProbeError::OneClass {
            rows: 2,
            positives: 0,
            negatives: 2
        }
    ));
    assert!(matches!(
        run(&[1.0, f32::NAN], &[true, false]),
        ProbeError::NotFinite {
            row: 1,
            column: 0,
            ..
        }
    ));
    let bad = ProbeSpec { c: 0.0, ..spec };
    assert!(matches!(
        fit(&[1.0, 2.0], &[true, false], &bad, &Device::Cpu),
        Err(ProbeError::Setting { name: "c", .. })
    ));
}

#[test]
fn degenerate_data_still_ends_at_the_optimum() {
    // All rows zero: only the intercept is left, and balanced classes put it at 0.
    let zeros = fit(
        &[0.0; 12],
        &[true, false, false, false],
        &ProbeSpec::default(),
        &Device::Cpu,
    )
    .unwrap();
    assert_eq!(
        (zeros.status, zeros.intercept, zeros.zero_rows),
        (Status::Converged, 0.0, 4)
    );
    // All rows equal: likewise, and unweighted it is the log odds.
    let equal = fit(
        &[0.3, 0.7, 0.3, 0.7, 0.3, 0.7],
        &[true, false, false],
        &ProbeSpec::unweighted(),
        &Device::Cpu,
    )
    .unwrap();
    assert_eq!(equal.status, Status::Converged);
    assert!((equal.scores(&[0.3, 0.7]).unwrap()[0].probability - 1.0 / 3.0).abs() < 1e-9);
    // One row of each class.
    let two = fit(
        &[1.0, 0.0, 0.0, 1.0],
        &[true, false],
        &ProbeSpec::default(),
        &Device::Cpu,
    )
    .unwrap();
    assert_eq!(two.status, Status::Converged);
    assert!((two.weights[0] + two.weights[1]).abs() < 1e-10 && two.weights[0] > 0.0);
}
