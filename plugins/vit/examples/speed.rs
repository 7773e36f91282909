//! How fast ViT-L/16 runs on this machine: `RAYON_NUM_THREADS=2 cargo run --release -p vit --example speed -- [batch] [repeats]`.
//!
//! Random weights, 224 pixels, f32. Prints images per second, the rate of a plain f32 product of the same shape, the floor that this
//! rate sets (products of the forward pass over it), and the peak memory. `scripts/reference_speed.py` is the same in PyTorch.

use focus_nn::candle::{DType, Device, Tensor};
use std::time::Instant;
use vit::config::VitConfig;
use vit::model::Vit;
use vit::pool::Pool;

fn number(index: usize, default: usize) -> usize {
    std::env::args()
        .nth(index)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Seconds of the fastest of `repeats` runs.
fn best(repeats: usize, mut run: impl FnMut()) -> f64 {
    (0..repeats)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn status(field: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field));
    line.map_or_else(
        || "unknown".into(),
        |line| line[field.len()..].trim().to_owned(),
    )
}

#[expect(clippy::print_stdout, reason = "an example for people")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (batch, repeats) = (number(1, 8), number(2, 3));
    let config = VitConfig::vit_large();
    let device = Device::Cpu;
    let tokens = 197;

    let start = Instant::now();
    let model = focus_nn::weights::random(1, &device, DType::F32, |w| {
        Vit::load(&config, Pool::Cls, (224, 224), w)
    })?;
    println!(
        "weights drawn in {:.1} s, resident {}",
        start.elapsed().as_secs_f64(),
        status("VmRSS:")
    );

    let a = Tensor::ones((batch * tokens, config.dim), DType::F32, &device)?;
    let b = Tensor::ones((config.hidden, config.dim), DType::F32, &device)?.t()?;
    let mut failed = None;
    let product = best(3 * repeats, || failed = a.matmul(&b).err());
    let rate = 2.0 * (batch * tokens * config.dim * config.hidden) as f64 / product / 1e9;

    let pixels = Tensor::zeros((batch, 3, 224, 224), DType::F32, &device)?;
    let seconds = best(repeats, || failed = model.forward(&pixels).err());
    if let Some(error) = failed {
        return Err(error.into());
    }
    let dense = 2.0 * (tokens * config.dim * (4 * config.dim + 2 * config.hidden)) as f64;
    let attention = 4.0 * (tokens * tokens * config.dim) as f64;
    let patches = 2.0 * (196 * 768 * config.dim) as f64;
    let work = config.depth as f64 * (dense + attention) + patches;
    let floor = batch as f64 * work / (rate * 1e9);
    println!(
        "product {} x {} x {}: {rate:.0} GFLOP/s",
        batch * tokens,
        config.dim,
        config.hidden
    );
    println!(
        "batch {batch}: {seconds:.2} s, {:.3} images/s",
        batch as f64 / seconds
    );
    println!(
        "floor {floor:.2} s ({:.1} GFLOP an image): {:.0} % of it reached",
        work / 1e9,
        100.0 * floor / seconds
    );
    println!("peak memory {}", status("VmHWM:"));
    Ok(())
}
