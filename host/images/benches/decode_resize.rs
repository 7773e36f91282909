//! Decode alone, and decode with resize, on full-size photographs: the aim is a ratio of at most 1.1. Not a test: prints a table.
//!
//! `cargo bench -p focus-images --bench decode_resize`, with `FOCUS_BENCH_IMAGES` naming a folder of JPEGs. Each figure is the least of several
//! rounds of this thread's processor time (waiting for a busy machine does not count), and the kinds take turns within a round, so that a busy
//! machine moves all of them alike. `scripts/bench_pillow.py` is the same with Pillow.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::PathBuf;

use focus_images::{Geometry, Limits, PrepareSpec, ResizeFilter, Workspace};

const ROUNDS: usize = 7;
const IMAGES: usize = 5;

fn main() {
    // `cargo test --benches` runs this too, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("decode_resize: measured only under `cargo bench`");
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
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("decode_resize: no folder of images at {}", folder.display());
        return;
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "jpg"))
        .collect();
    paths.sort();
    let images: Vec<Vec<u8>> = paths
        .iter()
        .take(IMAGES)
        .map(|path| std::fs::read(path).expect("the file was listed"))
        .collect();
    let limits = Limits::default();
    let specs: Vec<PrepareSpec> = [224, 768]
        .into_iter()
        .flat_map(|side| {
            [
                ResizeFilter::Bilinear,
                ResizeFilter::Bicubic,
                ResizeFilter::Lanczos,
            ]
            .map(|filter| PrepareSpec::new(side, side, Geometry::Squash, filter))
        })
        .collect();
    let mut workspace = Workspace::new();
    let mut library = turbojpeg::Decompressor::new().expect("the library starts");
    let mut buffer = Vec::new();
    let mut best = vec![vec![f64::INFINITY; specs.len() + 1]; images.len()];
    for _ in 0..ROUNDS {
        for (image, best) in images.iter().zip(&mut best) {
            let start = processor_ms();
            let header = library.read_header(image).expect("a sound image");
            buffer.resize(header.width * header.height * 3, 0);
            let target = turbojpeg::Image {
                pixels: &mut buffer[..],
                width: header.width,
                pitch: header.width * 3,
                height: header.height,
                format: turbojpeg::PixelFormat::RGB,
            };
            library.decompress(image, target).expect("a sound image");
            best[0] = best[0].min(processor_ms() - start);
            for (spec, best) in specs.iter().zip(&mut best[1..]) {
                let start = processor_ms();
                std::hint::black_box(
                    workspace
                        .prepare(image, spec, &limits)
                        .expect("a sound image"),
                );
                *best = (*best).min(processor_ms() - start);
            }
        }
    }
    let mean = |index: usize| best.iter().map(|row| row[index]).sum::<f64>() / best.len() as f64;
    println!(
        "{} images, least of {ROUNDS} rounds each, mean in ms",
        images.len()
    );
    println!("{:<28}{:>8.2}", "decode alone", mean(0));
    for (index, spec) in specs.iter().enumerate() {
        println!(
            "{:<28}{:>8.2}  x{:.3}",
            format!("decode + {} {:?}", spec.width, spec.filter),
            mean(index + 1),
            mean(index + 1) / mean(0)
        );
    }
}

/// Processor time of this thread so far, in milliseconds.
fn processor_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
