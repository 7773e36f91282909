//! Pictures outside the repository, where they are: the model fixtures' images and the sample photographs.

use std::path::{Path, PathBuf};

use focus_images::{Geometry, Limits, PrepareSpec, ResizeFilter, decode_file, prepare_file};
use focus_resize::{Filter, resize_rgb8};

pub fn shared(part: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared")
        .join(part);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: no folder {}", path.display());
    None
}

#[test]
fn the_model_fixtures_decode_to_their_committed_pixels() {
    let Some(folder) = shared("fixtures/models/images") else {
        return;
    };
    let decoded = decode_file(folder.join("fundus_c.jpg"), &Limits::default()).unwrap();
    let array = std::fs::read(folder.join("fundus_c.decoded.npy")).unwrap();
    assert_eq!((decoded.image.width, decoded.image.height), (201, 173));
    // NumPy version 1: magic, version, length of the header, header, data.
    let start = 10 + usize::from(u16::from_le_bytes([array[8], array[9]]));
    assert!(String::from_utf8_lossy(&array[..start]).contains("(173, 201, 3)"));
    assert!(decoded.image.pixels == array[start..], "pixels differ");
    for (name, size) in [
        ("fundus_a.png", (96, 80)),
        ("gray.png", (64, 64)),
        ("rgba.png", (64, 48)),
    ] {
        let image = decode_file(folder.join(name), &Limits::default())
            .unwrap()
            .image;
        assert_eq!((image.width, image.height), size, "{name}");
    }
}

#[test]
fn sample_photographs_decode_without_a_warning() {
    let Some(folder) = shared("data") else { return };
    let mut found = 0;
    let mut queue = vec![folder];
    // A few of each folder: this is about encoders met in the field, not about volume.
    while let Some(folder) = queue.pop() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        queue.extend(entries.iter().filter(|path| path.is_dir()).cloned());
        let picture = |path: &&PathBuf| {
            path.extension().is_some_and(|ext| {
                ["jpg", "jpeg", "png"]
                    .iter()
                    .any(|known| ext.eq_ignore_ascii_case(known))
            })
        };
        for path in entries.iter().filter(picture).take(8) {
            decode_file(path, &Limits::default())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            found += 1;
        }
    }
    assert!(found > 0, "the folder of photographs holds none");
}

#[test]
fn a_full_photograph_is_prepared_as_if_decoded_first() {
    let Some(folder) = shared("data/idrid/full") else {
        return;
    };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .collect();
    paths.sort();
    for path in paths.iter().take(2) {
        let image = decode_file(path, &Limits::default()).unwrap().image;
        for (side, filter, resample) in [
            (224, ResizeFilter::Bilinear, Filter::Bilinear),
            (768, ResizeFilter::Bicubic, Filter::Bicubic),
            (90, ResizeFilter::Lanczos, Filter::Lanczos),
        ] {
            let spec = PrepareSpec::new(side, side, Geometry::Squash, filter);
            let prepared = prepare_file(path, &spec, &Limits::default(), None).unwrap();
            let size = (image.width, image.height);
            let expected = resize_rgb8(&image.pixels, size, (side, side), resample).unwrap();
            assert!(prepared.pixels == expected, "{} to {side}", path.display());
        }
    }
}
