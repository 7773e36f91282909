//! Faults that users reported against other tools, one test each, with the value recomputed by hand.

use focus_metrics::{
    BoundingBox, MetricValue, Missing, NO_POSITIVES, Plan, Ranking, Scored, Units,
    benjamini_hochberg, bootstrap, metric, paired_bootstrap, point_hit, ranking_score,
    reliability_bins, shortest_decimal,
};

fn booleans(values: &[u8]) -> Vec<bool> {
    values.iter().map(|&value| value == 1).collect()
}

/// A metric of rows whose decisions are `score > 0.5`.
fn of(id: &str, labels: &[u8], scores: &[f64]) -> MetricValue {
    let labels = booleans(labels);
    let predicted: Vec<bool> = scores.iter().map(|&score| score > 0.5).collect();
    let rows = Scored::new(&labels, &predicted, scores).unwrap();
    metric(id).unwrap().compute(&rows)
}

#[test]
fn scores_are_never_squashed_by_magnitude() {
    assert_eq!(
        of("auroc", &[1, 0, 1], &[1.2, 0.9678, 1.7]).value(),
        Some(1.0)
    );
    assert_eq!(
        of("auroc", &[1, 0, 1], &[-1.0, 0.0, 1.0]).value(),
        Some(0.5)
    );
}

#[test]
fn scores_are_judged_together_however_batches_split_them() {
    // A tool that squashes a batch only when it sees a score above 1 ranks rows of different batches wrongly.
    let labels = booleans(&[1, 0, 1]);
    let scores = [1.2, 0.9678, 1.7];
    for split in 0..=3 {
        let (mut all_labels, mut all_scores) = (Vec::new(), Vec::new());
        for range in [0..split, split..3] {
            all_labels.extend_from_slice(&labels[range.clone()]);
            all_scores.extend_from_slice(&scores[range]);
        }
        let rows = Scored::new(&all_labels, &all_labels, &all_scores).unwrap();
        assert_eq!(metric("auroc").unwrap().compute(&rows).value(), Some(1.0));
    }
}

#[test]
fn the_last_bin_is_closed() {
    let value = of("ece", &[1, 0], &[0.95, 1.0]).value().unwrap();
    assert!((value - 0.475).abs() < 1e-15, "{value}");
}

#[test]
fn the_first_bin_holds_zero() {
    assert_eq!(of("ece", &[1, 0], &[0.0, 0.0]).value(), Some(0.5));
}

#[test]
fn bin_edges_hold_for_scores_computed_in_f32() {
    for (score, bin) in [(7.0_f32 / 10.0, 7), (1.0_f32 - 0.1, 9)] {
        let scores = [shortest_decimal(score)];
        let rows = Scored::new(&[true], &[true], &scores).unwrap();
        assert_eq!(reliability_bins(rows.tally()).unwrap()[bin].rows, 1);
    }
    for (score, bin) in [(0.7_f64, 7), (0.9_f64, 9)] {
        let scores = [score];
        let rows = Scored::new(&[true], &[true], &scores).unwrap();
        assert_eq!(reliability_bins(rows.tally()).unwrap()[bin].rows, 1);
    }
}

#[test]
fn ece_is_of_the_positive_class_and_missing_with_one_class() {
    assert_eq!(
        of("ece", &[0, 0, 0], &[0.1; 3]),
        MetricValue::Missing(Missing::OneClass)
    );
    // Confidence-style ECE would take 0.9 for the negatives.
    let value = of("ece", &[0, 0, 0, 1], &[0.1, 0.1, 0.1, 0.9])
        .value()
        .unwrap();
    assert!((value - (0.3 + 0.1) / 4.0).abs() < 1e-15, "{value}");
}

#[test]
fn auroc_with_one_class_is_missing() {
    let value = of("auroc", &[1, 1, 1], &[0.1, 0.2, 0.3]);
    assert_eq!(value.missing().map(Missing::name), Some("one_class"));
    assert_eq!(value.value(), None);
}

#[test]
fn average_precision_ignores_row_order_under_ties() {
    assert_eq!(of("auprc", &[1, 0], &[0.5, 0.5]).value(), Some(0.5));
    assert_eq!(of("auprc", &[0, 1], &[0.5, 0.5]).value(), Some(0.5));
}

#[test]
fn average_precision_does_not_interpolate() {
    assert_eq!(
        of("auprc", &[0, 1, 0, 0, 0], &[0.7, 0.8, 0.5, 0.9, 0.1]).value(),
        Some(0.5)
    );
}

#[test]
fn auroc_is_never_flipped() {
    assert_eq!(
        of("auroc", &[1, 1, 0, 0], &[0.1, 0.2, 0.8, 0.9]).value(),
        Some(0.0)
    );
}

#[test]
fn f1_without_positives_is_zero_and_flagged() {
    let value = of("f1", &[0, 0], &[0.1, 0.2]);
    assert_eq!(
        value,
        MetricValue::Value {
            value: 0.0,
            flag: Some(NO_POSITIVES)
        }
    );
}

#[test]
fn benjamini_hochberg_keeps_order_and_monotony() {
    let family = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005].map(Some)).unwrap();
    assert_eq!(family.q, [0.02, 0.04, 0.04, 0.02].map(Some));
}

/// Rows with ties, two classes and some wrong decisions.
fn rows(n: usize) -> (Vec<bool>, Vec<bool>, Vec<f64>) {
    let labels: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
    let scores: Vec<f64> = (0..n).map(|i| ((i * 7919) % 50) as f64 / 50.0).collect();
    let predicted = scores.iter().map(|&score| score > 0.5).collect();
    (labels, predicted, scores)
}

#[test]
fn identical_arms_do_not_differ() {
    let (labels, predicted, scores) = rows(60);
    let arm = Scored::new(&labels, &predicted, &scores).unwrap();
    let plan = Plan {
        resamples: 300,
        seed: 13,
        units: Units::Images,
    };
    for delta in paired_bootstrap(&arm, &arm, &focus_metrics::metrics(), &plan).unwrap() {
        let interval = delta.interval.unwrap();
        assert_eq!(
            (delta.delta, interval.low, interval.high, delta.p),
            (Some(0.0), 0.0, 0.0, Some(1.0))
        );
    }
}

#[test]
fn degenerate_resamples_are_skipped_and_counted() {
    let labels: Vec<bool> = (0..640).map(|i| i < 2).collect();
    let scores: Vec<f64> = (0..640)
        .map(|i| f64::from((i * 37) % 640) / 640.0)
        .collect();
    let arm = Scored::new(&labels, &labels, &scores).unwrap();
    let plan = Plan {
        resamples: 20_000,
        seed: 1,
        units: Units::Images,
    };
    let estimate = bootstrap(&arm, &[metric("auroc").unwrap()], &plan).unwrap()[0];
    let invalid = 1.0 - f64::from(estimate.valid) / f64::from(estimate.resamples);
    // (1 - 2/640)^640 = 0.1349, standard deviation 0.0024.
    assert!((invalid - 0.1349).abs() < 0.01, "{invalid}");
    assert!(estimate.interval.is_some());
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (labels, predicted, scores) = rows(200);
    let arm = Scored::new(&labels, &predicted, &scores).unwrap();
    let plan = Plan {
        resamples: 500,
        seed: 99,
        units: Units::Images,
    };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let estimates = pool
            .install(|| bootstrap(&arm, &focus_metrics::metrics(), &plan))
            .unwrap();
        let ends = estimates
            .iter()
            .flat_map(|e| [e.interval.unwrap().low, e.interval.unwrap().high]);
        ends.map(f64::to_bits).collect::<Vec<_>>()
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(5));
}

fn ranking(text: &str) -> Ranking {
    Ranking::parse(text).unwrap()
}

#[test]
fn kendall_tau_over_four_letters() {
    let gold = ranking("C,A,D,B");
    for (answer, tau) in [
        ("C,A,D,B", 1.0),
        ("B,D,A,C", -1.0),
        ("C,A,B,D", 2.0 / 3.0),
        ("A,B,C,D", 0.0),
    ] {
        assert_eq!(gold.kendall_tau(ranking(answer)), tau, "{answer}");
    }
}

#[test]
fn an_invalid_ranking_scores_zero() {
    let gold = ranking("C,A,D,B");
    for answer in ["A,A,B,C", "ABCDE", "", "I cannot rank these"] {
        assert_eq!(ranking_score(gold, Ranking::parse(answer)), 0.0, "{answer}");
    }
    assert_eq!(ranking_score(gold, Some(ranking("ABCD"))), 50.0);
}

#[test]
fn boxes_without_area_and_inverted_boxes() {
    let gold = BoundingBox::from_xyxy([0.2, 0.2, 0.4, 0.4]).unwrap();
    let empty = BoundingBox::from_xyxy([0.2, 0.2, 0.2, 0.2]).unwrap();
    assert_eq!(gold.iou(empty), 0.0);
    assert_eq!(empty.iou(empty), 0.0);
    assert!(BoundingBox::from_xyxy([0.4, 0.2, 0.2, 0.4]).is_none());
}

#[test]
fn a_point_on_the_tolerance_is_a_hit() {
    assert!(point_hit([0.5, 0.5], [0.55, 0.5]));
    assert!(!point_hit([0.5, 0.5], [0.5501, 0.5]));
}
