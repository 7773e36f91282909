//! How fast pictures go through EfficientNet-Lite0: `cargo run --release -p efficientnet --example speed [THREADS [BATCHES]]`.
//! Weights are drawn; speed does not depend on them.

#![expect(clippy::print_stdout, reason = "a program for people")]

use efficientnet::card::ID;
use efficientnet::encoder::Encoder;
use focus_plugin_sdk::{Host, ImageBatch, ImageEncoder as _, OpenOptions};
use std::collections::BTreeMap;
use std::time::Instant;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let mut number = |default| numbers.next().map_or(default, |n| n.expect("a number"));
    let (threads, batches) = (number(1), number(8));
    let options = OpenOptions {
        model: ID.into(),
        device: "cpu".into(),
        dtype: None,
        weights: None,
        threads,
        settings: BTreeMap::from([("weights".into(), "random:0".into())]),
    };
    let mut encoder = Encoder::open(&options, &Host::detached()).expect("opens");
    let pixels: Vec<u8> = (0..8 * 224 * 224 * 3_usize)
        .map(|i| (i % 251) as u8)
        .collect();
    let batch = ImageBatch::new(&pixels, 224, 224, 8).expect("fits");
    encoder.encode(&batch, &Host::detached()).expect("warms up");
    let start = Instant::now();
    for _ in 0..batches {
        encoder.encode(&batch, &Host::detached()).expect("runs");
    }
    let each = start.elapsed().as_secs_f64() * 1e3 / f64::from(8 * batches);
    println!(
        "{threads} threads: {each:.1} ms a picture, {:.1} pictures a second",
        1e3 / each
    );
}
