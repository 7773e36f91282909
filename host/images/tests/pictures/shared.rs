//! Pictures outside the repository, where they are: the model fixtures' images and the sample photographs.

use std::path::{Path, PathBuf};

use focus_images::{
    Geometry, ImageFormat, Limits, MaskCoding, PrepareSpec, ResizeFilter, decode_file,
    prepare_file, read_mask_file,
};
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

#[test]
fn samples_of_data_sets_are_read_as_their_kinds() {
    let Some(folder) = shared("samples") else {
        return;
    };
    // REFUGE's bitmaps of 255, 128 and 0; ADAM's of 0 and 255.
    let refuge = folder.join("refuge/kaggle/train/gts/g0001.bmp");
    if refuge.is_file() {
        let mask = read_mask_file(refuge, &MaskCoding::refuge(), &Limits::default()).unwrap();
        assert!(
            mask.area(&[1]) > 0 && mask.area(&[2]) > 0,
            "a disc and a cup"
        );
        let (disc, cup) = (
            mask.vertical_diameter(&[1, 2]),
            mask.vertical_diameter(&[2]),
        );
        assert!(disc > cup && cup > 0);
    }
    let adam = folder.join("adam/Disc_Masks/A0001.bmp");
    if adam.is_file() {
        let mask = read_mask_file(&adam, &MaskCoding::dark_on_white(), &Limits::default()).unwrap();
        assert!(mask.area(&[1]) < mask.area(&[0]));
        let error = read_mask_file(&adam, &MaskCoding::labels(2), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), "mask_value");
    }
    let jsiec =
        folder.join("jsiec1000/1000images/1.0.DR2/00000000-0000-4000-8000-000000000004..TIF");
    if jsiec.is_file() {
        let decoded = decode_file(jsiec, &Limits::default()).unwrap();
        assert_eq!(decoded.notes.format, ImageFormat::Tiff);
        assert!(decoded.notes.remarks.is_empty());
    }
}
