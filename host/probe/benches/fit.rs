//! Times the probe at the size and on the data that `benches/compare.py` gives scikit-learn. Owns no claims: it prints
//! times, losses and gradient norms, one JSON object a line.
#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
#![expect(clippy::unwrap_used, reason = "a benchmark may fail loudly")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::Recipe;
use focus_probe::{Device, Features, ProbeSpec, fit};
use rayon::prelude::*;

fn recipes() -> [(&'static str, Recipe); 4] {
    let base = Recipe {
        rows: 5000,
        width: 1024,
        factors: 8,
        offset: 0.0,
        noise: 1.0,
        strength: 0.2,
        confusion: 0.75,
        threshold: 0.8,
        seed: 7,
    };
    let embedding = Recipe {
        factors: 64,
        offset: 1.0,
        noise: 0.25,
        strength: 2.0,
        seed: 17,
        ..base
    };
    [
        ("plain", base),
        ("embedding", embedding),
        (
            "embedding_413x128",
            Recipe {
                rows: 413,
                width: 128,
                seed: 27,
                ..embedding
            },
        ),
        (
            "embedding_413x1024",
            Recipe {
                rows: 413,
                seed: 37,
                ..embedding
            },
        ),
    ]
}

/// Least and median seconds over `repeats` calls.
fn time<T>(repeats: usize, mut work: impl FnMut() -> T) -> (f64, f64, T) {
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..repeats {
        let start = Instant::now();
        let value = black_box(work());
        seconds.push(start.elapsed().as_secs_f64());
        last = Some(value);
    }
    seconds.sort_by(f64::total_cmp);
    (seconds[0], seconds[repeats / 2], last.unwrap())
}

fn main() {
    let repeats = std::env::var("PROBE_REPEATS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(15);
    for (name, recipe) in recipes() {
        let (values, labels) = recipe.make();
        // Reading each value once by all threads: the floor of a pass.
        let (read, ..) = time(repeats, || {
            values
                .par_chunks(64 * recipe.width)
                .map(|block| {
                    block
                        .iter()
                        .fold(0, |sum: u32, value| sum.wrapping_add(value.to_bits()))
                })
                .sum::<u32>()
        });
        for tolerance in [1e-10, 1e-6, 1e-2, 1.0, 10.0] {
            let spec = ProbeSpec {
                tolerance,
                ..ProbeSpec::default()
            };
            let (whole, whole_median, probe) = time(repeats, || {
                fit(&values, &labels, &spec, &Device::Cpu).unwrap()
            });
            let features = Features::copied(&values, labels.len(), &Device::Cpu).unwrap();
            let (prepared, prepared_median, _) =
                time(repeats, || features.fit(&labels, &spec).unwrap());
            let passes = probe.evaluations + probe.hessian_products;
            println!(
                "{{\"data\":\"{name}\",\"rows\":{},\"width\":{},\"threads\":{},\"tolerance\":{tolerance:e},\"seconds\":{whole:.6},\"median\":{whole_median:.6},\
                 \"prepared\":{prepared:.6},\"prepared_median\":{prepared_median:.6},\"read_once\":{read:.6},\"passes\":{passes},\"steps\":{},\
                 \"loss\":{:.17e},\"gradient\":{:.3e},\"status\":\"{:?}\"}}",
                recipe.rows,
                recipe.width,
                rayon::current_num_threads(),
                probe.iterations,
                probe.loss,
                probe.gradient_norm,
                probe.status,
            );
        }
    }
}
