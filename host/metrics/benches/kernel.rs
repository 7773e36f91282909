//! Time of the kernels: one cell's metrics, and bootstraps at the sizes that reports need.

use criterion::{Criterion, criterion_group, criterion_main};
use focus_metrics::{MetricSpec, Plan, Scored, Units, evaluate_all, metric, paired_bootstrap};

/// Labels and two arms' scores, spread without a random generator.
fn rows(n: u64) -> (Vec<bool>, Vec<f64>, Vec<f64>) {
    let spread = |step: u64, size: u64| (0..n).map(move |i| (i * step % size) as f64 / size as f64);
    (
        (0..n).map(|i| i % 3 == 0).collect(),
        spread(7919, 1_000_003).collect(),
        spread(104_729, 1_000_033).collect(),
    )
}

fn kernels(criterion: &mut Criterion) {
    let (labels, scores, _) = rows(1_000_000);
    let mut group = criterion.benchmark_group("kernel");
    group.sample_size(10);
    group.bench_function("all metrics, n = 1,000,000", |bencher| {
        bencher.iter(|| evaluate_all(&Scored::new(&labels, &labels, &scores).expect("valid rows")));
    });
    let (labels, scores, others) = rows(2_000);
    let base = Scored::new(&labels, &labels, &scores).expect("valid rows");
    let other = Scored::new(&labels, &labels, &others).expect("valid rows");
    let five =
        ["auroc", "auprc", "accuracy", "f1", "ece"].map(|id| metric(id).expect("registered"));
    let specs: Vec<&MetricSpec> = five.to_vec();
    let patients: Vec<u32> = (0..2_000).map(|row| row / 2).collect();
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
                bencher
                    .iter(|| paired_bootstrap(&base, &other, &specs, &plan).expect("valid rows"));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, kernels);
criterion_main!(benches);
