//! Photographs a minute and core that an audit looks at, at 768 px or whatever the folder holds.
//! Not a test: prints a table.
//!
//! `cargo bench -p focus-curation --bench audit`, with `FOCUS_BENCH_IMAGES` naming a folder of JPEGs. Times are of the process's processor, with one thread,
//! so that waiting for a busy machine does not count.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::{Path, PathBuf};

use focus_curation::audit::{AuditInput, AuditOptions, audit};
use focus_store::{Record, Records};

const ROUNDS: usize = 3;

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn photographs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jpg"))
        .collect();
    paths.sort();
    paths
}

fn main() {
    // `cargo test --benches` runs this too, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("audit: measured only under `cargo bench`");
        return;
    }
    let folder = std::env::var_os("FOCUS_BENCH_IMAGES").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/data/idrid/B. Disease Grading/1. Original Images/a. Training Set"
            ))
        },
        PathBuf::from,
    );
    let files = photographs(&folder);
    if files.is_empty() {
        println!("audit: no JPEGs at {}", folder.display());
        return;
    }
    let rows = (0..files.len()).map(|i| Record {
        dataset: "bench".into(),
        id: format!("{i:08x}"),
        ..Record::default()
    });
    let records = Records {
        rows: rows.collect(),
        ..Records::default()
    };
    let input = AuditInput {
        records: &records,
        files: &files,
        accounts: &[],
        wanted: &[],
        terms: &[],
    };
    let options = AuditOptions {
        threads: 1,
        ..AuditOptions::default()
    };
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = processor_seconds();
        let report = audit(&input, &options, &|_| ()).expect("audits");
        std::hint::black_box(report);
        best = best.min(processor_seconds() - start);
    }
    let each = best / files.len() as f64;
    println!(
        "{} photographs: {:.2} ms each, {:.0} a minute and core",
        files.len(),
        1e3 * each,
        60.0 / each
    );
}
