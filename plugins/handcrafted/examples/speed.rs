//! Images per second of one thread on drawn eyes at the card's size: `cargo run --release -p handcrafted --example speed -- [IMAGES]`.
//! The fastest picture counts: other work on a shared machine only ever slows one down.

use std::io::Write as _;
use std::time::Instant;

fn main() -> Result<(), String> {
    let images: u32 = std::env::args()
        .nth(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or(20);
    let config = focus_synth::Config {
        size: 768,
        ..focus_synth::Config::default()
    };
    let eyes: Vec<_> = (0..4)
        .map(|i| focus_synth::generate(&config, i).rgb)
        .collect();
    let mut fastest = f64::INFINITY;
    for i in 0..images {
        let start = Instant::now();
        let found = handcrafted::analyse(&eyes[(i % 4) as usize], 768, 768);
        fastest = fastest.min(start.elapsed().as_secs_f64());
        if found.features.is_empty() {
            return Err("No features".to_owned());
        }
    }
    writeln!(
        std::io::stdout(),
        "{:.1} images/s (fastest of {images})",
        1.0 / fastest
    )
    .map_err(|e| e.to_string())
}
