//! Writes the default dataset to a folder: `cargo run -p focus-synth --example write_dataset -- FOLDER`.

fn main() {
    let folder = std::env::args().nth(1).expect("a folder is named");
    let summary = focus_synth::write_dataset(folder.as_ref(), &focus_synth::Config::default())
        .expect("the dataset is written");
    assert!(summary.images > 0, "empty dataset");
}
