//! What a worker costs against the same plugin in process, per batch. `cargo bench -p focus-models --bench overhead [-- EDGE BATCH COUNT]`
//!
//! The model is the hostile plugin without a misdeed: means over pixels, far cheaper than any network, so that the difference is
//! nearly all transport. Runs of the two alternate, since shared machines drift.
#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]

use focus_models::{
    ClientOptions, ImageEncoder, InProcessEncoder, PixelBatch, PreparedImage, WorkerClient,
    WorkerOptions,
};
use focus_plugin_abi::v1::message::OpenOptions;
use focus_worker::Sidecar;
use focus_worker::sidecar::Manifest;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let number = |at: usize, default: usize| numbers.get(at).copied().unwrap_or(default);
    let (edge, batch, count) = (number(0, 224), number(1, 8), number(2, 50));
    let folder = tempfile::tempdir().expect("folder");
    let worker = prepare(folder.path());
    let settings = BTreeMap::from([
        ("edge".into(), edge.to_string()),
        ("batch".into(), batch.to_string()),
    ]);
    let open = OpenOptions {
        model: "hostile".into(),
        device: "cpu".into(),
        dtype: None,
        weights: None,
        threads: 1,
        batch_size: None,
        settings,
        network: Vec::new(),
    };
    let begun = Instant::now();
    let mut client =
        WorkerClient::open(&ClientOptions::new(worker.clone(), open.clone())).expect("opens");
    let start = begun.elapsed();
    let mut own = InProcessEncoder::open(&worker, &open).expect("opens");
    let images: Vec<PreparedImage> = (0..batch)
        .map(|sample| PreparedImage {
            sample,
            pixels: (0..edge * edge * 3)
                .map(|at| (at * 31 + sample) as u8)
                .collect(),
        })
        .collect();
    let time = |encoder: &mut dyn ImageEncoder| {
        let begun = Instant::now();
        let mut supply = (0..count).map(|_| PixelBatch {
            images: images.clone(),
        });
        encoder
            .encode_all(&mut supply, &mut |_| Ok(()))
            .expect("encodes");
        begun.elapsed().as_secs_f64() * 1e6 / count as f64
    };
    let mut rounds = Vec::new();
    for _ in 0..9 {
        rounds.push((time(&mut own), time(&mut client)));
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let own = median(rounds.iter().map(|round| round.0).collect());
    let client = median(rounds.iter().map(|round| round.1).collect());
    let ratio = median(rounds.iter().map(|round| round.1 / round.0).collect());
    println!("{batch} images of {edge} x {edge} a batch, {count} batches, 9 rounds, medians");
    println!(
        "start of a worker, load and open: {:.1} ms",
        start.as_secs_f64() * 1e3
    );
    println!("in process: {own:.0} us a batch; worker: {client:.0} us a batch; ratio {ratio:.3}");
}

/// Build and seal the plugin and build the worker, in the profile of this bench.
fn prepare(own: &Path) -> WorkerOptions {
    let folder = std::env::current_exe()
        .expect("bench binary")
        .parent()
        .and_then(Path::parent)
        .expect("target/profile")
        .to_owned();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "focus-worker",
            "-p",
            "hostile",
            "--target-dir",
        ])
        .arg(folder.parent().expect("target"))
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the build failed");
    let library = own.join("libhostile.so");
    std::fs::copy(folder.join("libhostile.so"), &library).expect("copies");
    Sidecar::write_for(
        &library,
        &Manifest::read(&root.join("plugins/hostile/plugin.toml")).expect("manifest"),
    )
    .expect("seals");
    let (mut options, _) = WorkerOptions::from_sidecar(&library, &[]).expect("sealed");
    options.program = folder.join("focus-worker");
    options.args.clear();
    options
}
