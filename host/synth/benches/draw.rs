//! Pictures per second on one thread: drawn alone, and written as a dataset with its masks. `cargo bench -p focus-synth`.
//! Under `cargo test` (without `--bench`) one patient's.

#![expect(clippy::print_stdout, reason = "a benchmark reports")]

use focus_synth::{Config, generate, write_dataset};
use std::time::Instant;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("one thread");
    let measured = std::env::args().any(|a| a == "--bench");
    for (size, patients) in [(320, 60), (1024, 6)] {
        let patients = if measured { patients } else { 1 };
        let config = Config {
            size,
            patients,
            ..Config::default()
        };
        let images = config.images();
        let start = Instant::now();
        for index in 0..images {
            std::hint::black_box(generate(&config, index));
        }
        report("draw", size, images, start);
        let dir = tempfile::tempdir().expect("a temporary folder");
        let start = Instant::now();
        pool.install(|| write_dataset(&dir.path().join("s"), &config))
            .expect("written");
        report("draw and write", size, images, start);
    }
}

fn report(what: &str, size: u32, images: u32, start: Instant) {
    let rate = f64::from(images) / start.elapsed().as_secs_f64();
    println!("{what:<16} {size:>5} px {rate:>8.1} images/s");
}
