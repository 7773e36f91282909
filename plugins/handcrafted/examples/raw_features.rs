//! Raw features of every `*.ppm` (binary, 8 bit) in a folder as CSV on the named file: what `scripts/` fits the scaling to.
//! `cargo run --release -p handcrafted --example raw_features -- FOLDER OUT.csv`

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn read(path: &PathBuf) -> (Vec<u8>, usize, usize) {
    let bytes = fs::read(path).expect("the picture is readable");
    let mut fields = Vec::new();
    let mut at = 0;
    while fields.len() < 4 {
        let end = at
            + bytes[at..]
                .iter()
                .position(u8::is_ascii_whitespace)
                .expect("a PPM header");
        fields.push(String::from_utf8_lossy(&bytes[at..end]).into_owned());
        at = end + 1;
    }
    assert_eq!(
        (fields[0].as_str(), fields[3].as_str()),
        ("P6", "255"),
        "binary 8-bit PPM"
    );
    let size = |i: usize| fields[i].parse().expect("a number of pixels");
    (bytes[at..].to_vec(), size(1), size(2))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut paths: Vec<PathBuf> = fs::read_dir(&arguments[1])
        .expect("the folder is readable")
        .map(|e| e.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ppm"));
    paths.sort();
    let mut text = format!(
        "name,field_x,field_y,field_r,disc_x,disc_y,fovea_x,fovea_y,{}\n",
        handcrafted::names().join(",")
    );
    let (slices, half) = (2, paths.len().div_ceil(2).max(1));
    let parts: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = paths
            .chunks(half)
            .take(slices)
            .map(|part| scope.spawn(|| rows(part)))
            .collect();
        workers
            .into_iter()
            .map(|w| w.join().expect("no panic"))
            .collect()
    });
    text.extend(parts);
    fs::write(&arguments[2], text).expect("the output is writable");
}

fn rows(paths: &[PathBuf]) -> String {
    let mut text = String::new();
    for path in paths {
        let (rgb, width, height) = read(path);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let found = handcrafted::analyse(&rgb, width, height);
        let (c, d, f) = (found.field, found.disc, found.fovea);
        write!(
            text,
            "{name},{},{},{},{},{},{},{}",
            c.0, c.1, found.radius, d.0, d.1, f.0, f.1
        )
        .expect("a string");
        for value in found.features {
            write!(text, ",{value}").expect("a string");
        }
        text.push('\n');
    }
    text
}
