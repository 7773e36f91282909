//! Field-of-view steps through the whole path: from a file's bytes to prepared pixels, notes and key.

use focus_images::{
    DecodeNotes, FieldCircle, FieldSteps, ImageError, Limits, PixelCache, PrepareSpec, RgbImage,
    decode, prepare, prepare_file,
};

use crate::common::{path, squash};

/// A PPM of a field with a stamp in a corner.
fn photograph() -> Vec<u8> {
    let (width, height) = (300, 200);
    let mut bytes = format!("P6 {width} {height} 255\n").into_bytes();
    for y in 0..height {
        for x in 0..width {
            let (dx, dy) = (x - 140, y - 100);
            let inside = dx * dx + dy * dy <= 90 * 90;
            let stamp = (3..30).contains(&x) && (4..12).contains(&y);
            let level = if inside {
                180
            } else if stamp {
                250
            } else {
                1
            };
            bytes.extend([level, level / 2, level / 4]);
        }
    }
    bytes
}

fn shown(
    bytes: &[u8],
    spec: &PrepareSpec,
    limits: &Limits,
) -> Result<(RgbImage, DecodeNotes), ImageError> {
    prepare(bytes, spec, limits)
        .map(|(image, notes)| (image.into_rgb().expect("bytes were asked for"), notes))
}

fn steps(text: &str) -> FieldSteps {
    text.parse().expect("names of steps")
}

#[test]
fn each_step_shows_in_pixels_and_notes() {
    let bytes = photograph();
    let limits = Limits::default();
    let whole = squash(300, 200);
    let (plain, notes) = shown(&bytes, &whole, &limits).unwrap();
    assert_eq!(notes.field, None);
    assert_eq!(plain.pixel(10, 8), [250, 125, 62]);

    let (masked, notes) = shown(&bytes, &whole.with_steps(steps("mask")), &limits).unwrap();
    let field = notes.field.unwrap();
    let FieldCircle { x, y, radius } = field.circle.unwrap();
    assert!(x.abs_diff(140) <= 1 && y.abs_diff(100) <= 1 && radius.abs_diff(90) <= 1);
    assert_eq!(
        (masked.pixel(10, 8), masked.pixel(140, 100)),
        ([0; 3], [180, 90, 45])
    );
    assert!(field.masked_pixels > 200 && field.crop.is_none() && field.fallback.is_none());

    // Cropped to a square of 2 x 92 + 1 or so: nothing is resized if that is what is asked for.
    let (_, notes) = shown(&bytes, &whole.with_steps(steps("crop")), &limits).unwrap();
    let part = notes.field.unwrap().crop.unwrap();
    assert!(
        part.width.abs_diff(185) <= 4 && part.height.abs_diff(185) <= 4,
        "{part:?}"
    );
    let spec = squash(part.width, part.height).with_steps(steps("crop"));
    let (cropped, _) = shown(&bytes, &spec, &limits).unwrap();
    assert_eq!(cropped.pixel(5, 9), plain.pixel(part.x + 5, part.y + 9));

    let (padded, _) = shown(&bytes, &squash(300, 300).with_steps(steps("pad")), &limits).unwrap();
    assert_eq!(
        (padded.pixel(10, 8), padded.pixel(10, 58)),
        ([0; 3], plain.pixel(10, 8))
    );
}

#[test]
fn without_a_field_the_picture_is_whole_and_the_notes_say_why() {
    let bytes = [b"P5 50 40 255\n".as_slice(), &[77; 2000]].concat();
    let spec = squash(20, 20);
    let (plain, _) = prepare(&bytes, &spec, &Limits::default()).unwrap();
    let (found, notes) = prepare(
        &bytes,
        &spec.with_steps(steps("crop,mask")),
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(found, plain);
    let field = notes.field.unwrap();
    assert!(
        field
            .fallback
            .unwrap()
            .starts_with("no field of view found")
    );
    assert!(field.circle.is_none() && field.crop.is_none());
}

#[test]
fn steps_are_part_of_the_key_and_of_what_the_cache_gives_back() {
    let folder = tempfile::tempdir().unwrap();
    let cache = PixelCache::open(folder.path()).unwrap();
    let name = path("jpeg_420_203x131.jpg");
    let run =
        |spec: &PrepareSpec| prepare_file(&name, spec, &Limits::default(), Some(&cache)).unwrap();
    let plain = run(&squash(30, 30));
    let spec = squash(30, 30).with_steps(steps("crop,pad,mask"));
    let made = run(&spec);
    assert!(!made.from_cache && made.notes.field.is_some() && plain.notes.field.is_none());
    let kept = run(&spec);
    assert!(kept.from_cache);
    assert_eq!((kept.pixels, kept.notes), (made.pixels, made.notes));
}

#[test]
fn photographs_at_hand_have_fields() {
    let Some(folder) = crate::shared::shared("data/idrid/full") else {
        return;
    };
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jpg"));
    paths.sort();
    for path in paths.iter().take(3) {
        let bytes = std::fs::read(path).unwrap();
        let spec = squash(224, 224).with_steps(steps("crop,mask"));
        let (_, notes) = prepare(&bytes, &spec, &Limits::default()).unwrap();
        let field = notes.field.unwrap();
        let circle = field
            .circle
            .unwrap_or_else(|| panic!("{}: {field:?}", path.display()));
        // IDRiD's camera: the field is cut above and below, and its diameter is about 3,400 of 4,288 columns.
        assert!((1600..1900).contains(&circle.radius), "{circle:?}");
        let part = field.crop.unwrap();
        assert_eq!(
            (part.y, part.height),
            (0, decode(&bytes, &Limits::default()).unwrap().0.height)
        );
    }
}
