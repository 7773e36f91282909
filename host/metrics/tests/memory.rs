//! A bootstrap's memory does not grow with the number of resamples times rows. A binary of its own: the peak is the
//! process's.

use focus_metrics::{Plan, Role, Scored, Units, metrics_of, paired_bootstrap};

/// Peak resident memory in bytes, where the system tells it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[test]
fn a_bootstrap_needs_memory_for_rows_not_for_rows_times_resamples() {
    let n = 200_000_u64;
    let spread = |step: u64, size: u64| (0..n).map(move |i| (i * step % size) as f64 / size as f64);
    let labels: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
    let scores: Vec<f64> = spread(7919, 50_021).collect();
    let others: Vec<f64> = spread(104_729, 70_001).collect();
    let base = Scored::new(&labels, &labels, &scores).unwrap();
    let other = Scored::new(&labels, &labels, &others).unwrap();
    let Some(before) = peak() else {
        note("no /proc/self/status here: the peak cannot be read");
        return;
    };
    let plan = Plan {
        resamples: 500,
        seed: 3,
        units: Units::Images,
    };
    // As many threads as the figure below is for, on any machine.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .unwrap();
    pool.install(|| paired_bootstrap(&base, &other, &metrics_of(Role::Headline), &plan))
        .unwrap();
    let grown = peak().unwrap() - before;
    // One byte for each row and resample would be 100 MB. Two arms in order and two threads' counts are about 25 MB.
    assert!(grown < 50_000_000, "the peak grew by {grown} bytes");
}

fn note(reason: &str) {
    use std::io::Write;
    writeln!(std::io::stderr(), "skipped: {reason}").expect("standard error is open");
}
