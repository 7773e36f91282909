//! Draws a contact sheet: `cargo run -p focus-synth --example contact_sheet -- OUT.png [FIRST] [COUNT] [COLUMNS] [SHRINK] [EVERY]`.
//! Eyes FIRST, FIRST + EVERY and so on of the default dataset, shrunk by the whole number SHRINK.

use focus_synth::{Config, contact_sheet, encode_png, generate};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: u32| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (first, count, columns, shrink, every) = (number(1, 0), number(2, 12), number(3, 6), number(4, 2), number(5, 1));
    let config = Config::default();
    let eyes: Vec<_> = (0..count).map(|k| generate(&config, first + k * every)).collect();
    let sheet = contact_sheet(&eyes, columns, shrink);
    let bytes = encode_png(sheet.width, sheet.height, &sheet.rgb).expect("a sheet of u8 RGB is encodable");
    std::fs::write(arguments.first().map_or("sheet.png", String::as_str), bytes).expect("the output is writable");
}
