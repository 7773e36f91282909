//! Draws chosen eyes of the default dataset on one sheet:
//! `cargo run -p focus-synth --example contact_sheet -- OUT.png COLUMNS SHRINK SIZE INDEX...`.

use focus_synth::{Config, contact_sheet, encode_png, generate};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| arguments[i].parse::<u32>().expect("a whole number");
    let config = Config {
        size: number(3),
        ..Config::default()
    };
    let eyes: Vec<_> = (4..arguments.len())
        .map(|i| generate(&config, number(i)))
        .collect();
    let sheet = contact_sheet(&eyes, number(1), number(2));
    let bytes =
        encode_png(sheet.width, sheet.height, &sheet.rgb).expect("a sheet of u8 RGB is encodable");
    std::fs::write(&arguments[0], bytes).expect("the output is writable");
}
