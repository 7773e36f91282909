//! Time of the kernels: one cell's metrics, and bootstraps at the sizes that reports need. Throughput is in rows times
//! resamples (times arms), so that its inverse is the time for each row of each resample.

use std::hint::black_box;

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use focus_metrics::{
    MetricSpec, Plan, Scored, Units, evaluate_all, gap_nulls, metric, paired_bootstrap, resample,
    resample_with_groups,
};

/// Labels and two arms' scores, spread without a random generator.
fn rows(n: u64) -> (Vec<bool>, Vec<f64>, Vec<f64>) {
    let spread = |step: u64, size: u64| (0..n).map(move |i| (i * step % size) as f64 / size as f64);
    (
        (0..n).map(|i| i % 3 == 0).collect(),
        spread(7919, 1_000_003).collect(),
        spread(104_729, 1_000_033).collect(),
    )
}

fn decided(scores: &[f64]) -> Vec<bool> {
    scores.iter().map(|&score| score > 0.5).collect()
}

fn specs(ids: &[&str]) -> Vec<&'static MetricSpec> {
    ids.iter()
        .map(|id| metric(id).expect("registered"))
        .collect()
}

fn many_rows(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (labels, scores, _) = rows(1_000_000);
    group.throughput(Throughput::Elements(1_000_000));
    group.bench_function("all metrics, n = 1,000,000", |bencher| {
        bencher.iter(|| evaluate_all(&Scored::new(&labels, &labels, &scores).expect("valid rows")));
    });
}

fn paired(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (labels, scores, others) = rows(2_000);
    let decisions = [&scores, &others].map(|scores: &Vec<f64>| decided(scores));
    let base = Scored::new(&labels, &decisions[0], &scores).expect("valid rows");
    let other = Scored::new(&labels, &decisions[1], &others).expect("valid rows");
    let five = specs(&["auroc", "auprc", "accuracy", "f1", "ece"]);
    let patients: Vec<u32> = (0..2_000).map(|row| row / 2).collect();
    group.throughput(Throughput::Elements(2 * 2_000 * 1_000));
    for (name, units) in [
        ("images", Units::Images),
        ("patients", Units::Patients(&patients)),
    ] {
        let plan = Plan {
            resamples: 1000,
            seed: 13,
            units,
        };
        group.bench_function(
            format!("paired bootstrap, {name}, n = 2,000, B = 1,000, five metrics"),
            |bencher| {
                bencher.iter(|| paired_bootstrap(&base, &other, &five, &plan).expect("valid rows"));
            },
        );
    }
    let plan = Plan {
        resamples: 1000,
        seed: 13,
        units: Units::Images,
    };
    group.throughput(Throughput::Elements(2_000 * 1_000));
    for id in [
        "accuracy",
        "auroc",
        "auprc",
        "ece",
        "brier",
        "ece_debiased",
        "calibration_slope",
    ] {
        let one = specs(&[id]);
        group.bench_function(format!("resample, {id}"), |bencher| {
            bencher.iter(|| resample(&[&base], &one, &plan).expect("valid rows"));
        });
    }
}

/// A cell of the benchmark's grid: the whole with all metrics of its main table, three groupings with what their gaps
/// need.
fn cell(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (labels, scores, _) = rows(500);
    let decisions = decided(&scores);
    let arm = Scored::new(&labels, &decisions, &scores).expect("valid rows");
    let groupings = [2, 3, 7].map(|step| (0..500).map(|i| Some(i % step == 0)).collect::<Vec<_>>());
    let groupings = groupings.each_ref().map(Vec::as_slice);
    let patients: Vec<u32> = (0..500).map(|row| row / 2).collect();
    let plan = Plan {
        resamples: 10_000,
        seed: 13,
        units: Units::Patients(&patients),
    };
    let whole = specs(&[
        "auroc",
        "auprc",
        "accuracy",
        "f1",
        "precision",
        "recall",
        "ece",
        "brier",
        "brier_skill",
    ]);
    let gaps = specs(&[
        "accuracy",
        "auroc",
        "auprc",
        "f1",
        "ece",
        "positive_rate",
        "true_positive_rate",
        "false_positive_rate",
    ]);
    group.throughput(Throughput::Elements(500 * 10_000));
    group.bench_function(
        "cell, n = 500, B = 10,000, whole and three groupings",
        |bencher| {
            bencher.iter(|| {
                resample_with_groups(&[&arm], &whole, &groupings, &gaps, &plan).expect("valid rows")
            });
        },
    );
    group.bench_function(
        "permutation null, n = 500, P = 10,000, eight metrics",
        |bencher| {
            bencher.iter(|| {
                black_box(gap_nulls(&arm, groupings[0], &gaps, &plan, 10_000).expect("valid rows"))
            });
        },
    );
}

fn kernels(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel");
    group
        .sample_size(10)
        .measurement_time(std::time::Duration::from_secs(2))
        .warm_up_time(std::time::Duration::from_millis(500));
    many_rows(&mut group);
    paired(&mut group);
    cell(&mut group);
    group.finish();
}

criterion_group!(benches, kernels);
criterion_main!(benches);
