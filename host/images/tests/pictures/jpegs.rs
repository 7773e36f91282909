//! Rare kinds of JPEG that the library's own encoder makes: arithmetic coding, lossless coding. And those that are refused by name.

use focus_images::{Decode, Limits, SourceMode, decode, prepare};
use turbojpeg::{Compressor, Image, PixelFormat};

use crate::common::{data, squash};

const SIZE: (usize, usize) = (45, 31);

fn pixels() -> Vec<u8> {
    decode(&data("png_rgb.png"), &Limits::default())
        .expect("a sound picture")
        .0
        .pixels
        .iter()
        .copied()
        .cycle()
        .take(SIZE.0 * SIZE.1 * 3)
        .collect()
}

fn coded(set: impl Fn(&mut Compressor)) -> Vec<u8> {
    let pixels = pixels();
    let image = Image {
        pixels: &pixels[..],
        width: SIZE.0,
        pitch: SIZE.0 * 3,
        height: SIZE.1,
        format: PixelFormat::RGB,
    };
    let mut coder = Compressor::new().expect("the library starts");
    coder.set_quality(90).expect("a quality of 1 to 100");
    set(&mut coder);
    coder.compress_to_vec(image).expect("a sound picture")
}

#[test]
fn arithmetic_coding_gives_the_pixels_of_huffman_coding() {
    let huffman = coded(|_| {});
    let arithmetic = coded(|coder| coder.set_arithmetic(true).unwrap());
    assert_ne!(huffman, arithmetic);
    let (expected, _) = decode(&huffman, &Limits::default()).unwrap();
    let (found, notes) = decode(&arithmetic, &Limits::default()).unwrap();
    assert_eq!((found, notes.mode), (expected, SourceMode::Ycbcr));
    let cut = decode(&arithmetic[..arithmetic.len() / 2], &Limits::default());
    assert_eq!(cut.map(|(_, notes)| notes).unwrap_err().kind(), "truncated");
}

#[test]
fn lossless_coding_gives_back_what_was_coded_and_is_never_scaled() {
    let lossless = coded(|coder| coder.set_lossless(true).unwrap());
    let (image, notes) = decode(&lossless, &Limits::default()).unwrap();
    assert_eq!((image.pixels, notes.mode), (pixels(), SourceMode::Rgb));
    let spec = squash(4, 4);
    let (exact, _) = prepare(&lossless, &spec, &Limits::default()).unwrap();
    let (fast, notes) = prepare(
        &lossless,
        &spec.with_decode(Decode::Fast),
        &Limits::default(),
    )
    .unwrap();
    assert_eq!((fast, notes.eighths), (exact, None));
}

#[test]
fn twelve_bits_are_refused_with_advice() {
    let error = decode(&data("formats/twelve_bit.jpg"), &Limits::default())
        .map(|(_, notes)| notes)
        .unwrap_err();
    assert_eq!(error.kind(), "unsupported", "{error}");
    assert!(error.to_string().contains("12"), "{error}");
    assert!(error.hint().unwrap().contains("PNG"));
}

#[test]
fn a_multi_picture_file_says_how_many_it_holds() {
    let (image, notes) = decode(&data("formats/two.mpo"), &Limits::default()).unwrap();
    assert_eq!((image.width, image.height), (37, 23));
    assert_eq!(
        notes.remarks,
        ["a multi-picture file (MPO) of 2; the first is read"]
    );
}
