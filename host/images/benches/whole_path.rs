//! The whole path of a photograph, from its file to prepared pixels, exact and fast; and the memory that many of them take. Not a test: prints tables.
//!
//! `cargo bench -p focus-images --bench whole_path`, with `FOCUS_BENCH_IMAGES` naming a folder of JPEGs. Times are of this thread's processor, the least of
//! several rounds for each image; reading is from the system's cache of files. `scripts/bench_pillow.py` is the same with Pillow and torchvision. Memory
//! is the process's peak after 1,000 and after 20,000 small photographs that the benchmark makes.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::{Path, PathBuf};

use focus_images::{Decode, Geometry, Limits, PrepareSpec, ResizeFilter, prepare_file};

const ROUNDS: usize = 5;
const IMAGES: usize = 8;

fn main() {
    // `cargo test --benches` runs this too, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("whole_path: measured only under `cargo bench`");
        return;
    }
    let folder = std::env::var_os("FOCUS_BENCH_IMAGES").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/data/idrid/full"
            ))
        },
        PathBuf::from,
    );
    memory();
    let paths = photographs(&folder);
    if paths.is_empty() {
        println!("whole_path: no JPEGs at {}", folder.display());
        return;
    }
    times(&paths);
}

fn photographs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jpg"))
        .collect();
    paths.sort();
    paths.truncate(IMAGES);
    paths
}

fn times(paths: &[PathBuf]) {
    let limits = Limits::default();
    println!(
        "{} photographs, read + decode + resize, least of {ROUNDS} rounds each",
        paths.len()
    );
    println!("{:<28}{:>10}{:>12}", "", "ms", "images/s");
    for side in [224, 768] {
        for filter in [ResizeFilter::Bilinear, ResizeFilter::Bicubic] {
            for decode in [Decode::Exact, Decode::Fast] {
                for steps in ["", "mask,crop"] {
                    let steps = steps.parse().expect("names of steps");
                    let spec = PrepareSpec::new(side, side, Geometry::Squash, filter)
                        .with_decode(decode)
                        .with_steps(steps);
                    let mut best = vec![f64::INFINITY; paths.len()];
                    for _ in 0..ROUNDS {
                        for (path, best) in paths.iter().zip(&mut best) {
                            let start = processor_ms();
                            let made = prepare_file(path, &spec, &limits, None);
                            std::hint::black_box(made.expect("a sound image"));
                            *best = best.min(processor_ms() - start);
                        }
                    }
                    let mean = best.iter().sum::<f64>() / best.len() as f64;
                    let name = format!("{side} {filter:?} {decode:?} {steps}");
                    println!("{name:<28}{mean:>10.2}{:>12.1}", 1000.0 / mean);
                }
            }
        }
    }
}

/// Photographs of a twelfth of IDRiD's sides, written to a folder that goes when this ends.
fn memory() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let paths: Vec<PathBuf> = (0..20)
        .map(|number| {
            let path = folder.path().join(format!("{number}.jpg"));
            std::fs::write(&path, small(number)).expect("room for small files");
            path
        })
        .collect();
    let spec = PrepareSpec::new(64, 64, Geometry::Squash, ResizeFilter::Bilinear);
    let limits = Limits::default();
    println!("peak of resident memory");
    let mut done = 0;
    for target in [1_000, 20_000] {
        while done < target {
            let made = prepare_file(&paths[done % paths.len()], &spec, &limits, None);
            std::hint::black_box(made.expect("a sound image"));
            done += 1;
        }
        println!("{target:>8} images{:>10} KiB", peak_kib());
    }
}

fn small(seed: usize) -> Vec<u8> {
    let (width, height) = (357, 237);
    let pixels: Vec<u8> = (0..width * height)
        .flat_map(|at| {
            let (x, y) = (at % width, at / width);
            let ripple = ((x * (3 + seed) / 7) ^ (y / 3)) % 64;
            [150 + ripple as u8, 60 + (ripple / 2) as u8, 30]
        })
        .collect();
    let image = turbojpeg::Image {
        pixels: &pixels[..],
        width,
        pitch: width * 3,
        height,
        format: turbojpeg::PixelFormat::RGB,
    };
    let mut coder = turbojpeg::Compressor::new().expect("the library starts");
    coder.compress_to_vec(image).expect("a sound image")
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Processor time of this thread so far, in milliseconds.
fn processor_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
