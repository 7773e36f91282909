//! Files made to cost memory or time, of every format; and paths that never end.

use std::time::{Duration, Instant};

use focus_images::{ImageError, Limits, MaskCoding, decode, prepare_file, read_file, read_mask};
use proptest::prelude::*;

use crate::common::{data, expected, squash};

/// Names of sound files of a format, by the end of the name.
fn of(ends: &[&str]) -> Vec<String> {
    let masks = expected().masks.into_iter().map(|row| row.file);
    let rows = expected()
        .decoded
        .into_iter()
        .filter(|row| row.error.is_none());
    rows.map(|row| row.file)
        .chain(masks)
        .filter(|name| ends.iter().any(|end| name.ends_with(end)))
        .collect()
}

const FORMATS: [&[&str]; 7] = [
    &[".jpg", ".mpo"],
    &[".png"],
    &[".tif"],
    &[".bmp"],
    &[".webp"],
    &[".gif"],
    &[".ppm", ".pgm", ".pbm"],
];

fn error(bytes: &[u8]) -> ImageError {
    decode(bytes, &Limits::default())
        .map(|(_, notes)| notes)
        .expect_err("a hostile file")
}

#[test]
fn headers_that_promise_too_much_are_refused_before_anything_is_allocated() {
    let big = 0xFFFF_FFF0_u32;
    let patched = |name: &str, at: usize, bytes: &[u8]| {
        let mut file = data(name);
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    // The first two tags are width and height.
    let name = "formats/rgb_none_le_strips.tif";
    let tags = u32::from_le_bytes(data(name)[4..8].try_into().unwrap()) as usize + 2;
    let mut tiff = patched(name, tags + 8, &60_000_u32.to_le_bytes());
    tiff[tags + 20..tags + 24].copy_from_slice(&60_000_u32.to_le_bytes());
    let mut bmp = patched("formats/rgb.bmp", 18, &0x7FFF_FFF0_u32.to_le_bytes());
    bmp[22..26].copy_from_slice(&0x7FFF_FFF0_u32.to_le_bytes());
    let mut rle = patched("formats/rle_8.bmp", 18, &30_000_u32.to_le_bytes());
    rle[22..26].copy_from_slice(&30_000_u32.to_le_bytes());
    let gif = patched("formats/palette.gif", 6, &[0xFF; 4]);
    let pnm = format!("P5 {big} {big} 255\n").into_bytes();
    let long = b"P5 99999999999999999999999 2 255\n".to_vec();
    // VP8L: 14 bits of width and height behind the mark.
    let webp = patched("formats/lossless.webp", 21, &[0xFF, 0xFF, 0xFF, 0x0F]);
    let png = patched(
        "png_rgb.png",
        16,
        &[0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF],
    );
    for (what, bytes, kinds) in [
        ("tiff", tiff, &["too_large"][..]),
        ("bmp", bmp, &["too_large"]),
        ("rle", rle, &["too_large"]),
        ("gif", gif, &["too_large"]),
        ("pnm", pnm, &["too_large"]),
        ("long", long, &["corrupt"]),
        ("webp", webp, &["too_large"]),
        // The header's checksum does not fit any more.
        ("png", png, &["too_large", "corrupt"]),
    ] {
        let start = Instant::now();
        let found = error(&bytes);
        assert!(kinds.contains(&found.kind()), "{what}: {found}");
        assert!(start.elapsed() < Duration::from_secs(2), "{what}");
    }
}

#[test]
fn limits_hold_for_every_format() {
    for ends in FORMATS {
        for name in of(ends) {
            let bytes = data(&name);
            let Ok((image, notes)) = decode(&bytes, &Limits::default()) else {
                continue;
            };
            let area = u64::from(notes.stored_width) * u64::from(notes.stored_height);
            assert_eq!(
                area,
                u64::from(image.width) * u64::from(image.height),
                "{name}"
            );
            let limits = Limits {
                max_pixels: area - 1,
                ..Limits::default()
            };
            let found = decode(&bytes, &limits).unwrap_err();
            assert_eq!(found.kind(), "too_large", "{name}: {found}");
        }
    }
}

/// A TIFF of one strip or tile that claims `length` bytes; values are 32 bits, tags (number, count, value).
fn tiff(tags: &[(u16, u32, u32)], body: &[u8]) -> Vec<u8> {
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend((tags.len() as u16).to_le_bytes());
    for &(number, count, value) in tags {
        file.extend(number.to_le_bytes());
        file.extend(4_u16.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file.extend(body);
    file
}

#[test]
fn tiff_tricks_are_named() {
    let start = 8 + 2 + 7 * 12 + 4;
    let base = |compression, offset: u32, length: u32, rows: u32| {
        [
            (256, 1, 64),
            (257, 1, 64),
            (258, 1, 8),
            (259, 1, compression),
            (273, 1, offset),
            (278, 1, rows),
            (279, 1, length),
        ]
    };
    let cases = [
        // A strip beyond the file, and one that reaches beyond it.
        (tiff(&base(1, 5_000_000, 4096, 64), &[]), "truncated"),
        (tiff(&base(1, start, u32::MAX, 64), &[0; 4096]), "truncated"),
        // Fewer bytes than the picture needs.
        (tiff(&base(1, start, 100, 64), &[0; 4096]), "corrupt"),
        // More strips than places.
        (tiff(&base(1, start, 64, 1), &[0; 4096]), "corrupt"),
        // No rows at all.
        (tiff(&base(1, start, 4096, 0), &[0; 4096]), "corrupt"),
        // Places without end: the values lie beyond the file.
        (
            tiff(&[(256, 1, 64), (257, 1, 64), (273, u32::MAX, 8)], &[]),
            "truncated",
        ),
        // A tile of two billion columns for a picture of 64.
        (
            tiff(
                &[
                    (256, 1, 64),
                    (257, 1, 64),
                    (322, 1, 0x7FFF_FFFF),
                    (323, 1, 0x7FFF_FFFF),
                    (324, 1, 8),
                    (325, 1, 8),
                ],
                &[],
            ),
            "corrupt",
        ),
        // Samples without end.
        (
            tiff(&[(256, 1, 64), (257, 1, 64), (277, 1, 60_000)], &[]),
            "unsupported",
        ),
        // Tags that lie behind the file.
        (b"II*\0\xFF\xFF\xFF\x7F".to_vec(), "truncated"),
        (b"II+\0\x08\0\0\0".to_vec(), "unsupported"),
    ];
    for (index, (bytes, kind)) in cases.iter().enumerate() {
        let found = error(bytes);
        assert_eq!(found.kind(), *kind, "case {index}: {found}");
    }
    // Strips that all name the same bytes make a small file cost more than it holds.
    let rows = 64_u32;
    let mut body = vec![0; 4096];
    let places = start + body.len() as u32;
    (0..rows).for_each(|_| body.extend(start.to_le_bytes()));
    (0..rows).for_each(|_| body.extend(4096_u32.to_le_bytes()));
    let mut tags = base(1, places, places + 4 * rows, 1);
    (tags[4].1, tags[6].1) = (rows, rows);
    let found = error(&tiff(&tags, &body));
    assert!(
        found
            .to_string()
            .contains("strips or tiles of 262144 bytes"),
        "{found}"
    );
    // Pages in a circle end.
    let mut circle = data("formats/rgb_none_le_strips.tif");
    let at = u32::from_le_bytes(circle[4..8].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes([circle[at], circle[at + 1]]));
    let next = at + 2 + 12 * count;
    circle[next..next + 4].copy_from_slice(&(at as u32).to_le_bytes());
    let (_, notes) = decode(&circle, &Limits::default()).unwrap();
    assert!(notes.remarks.is_empty(), "one page, whose next is itself");
}

#[test]
fn paths_that_never_end_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("/dev/zero", at("zero.jpg")).unwrap();
    std::os::unix::fs::symlink("/dev/full", at("full.png")).unwrap();
    std::os::unix::fs::symlink(at("loop.tif"), at("loop.tif")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe.bmp"))
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    for name in ["zero.jpg", "full.png", "pipe.bmp", "loop.tif"] {
        let start = Instant::now();
        let found = prepare_file(at(name), &squash(8, 8), &Limits::default(), None).unwrap_err();
        assert_eq!(found.kind(), "unreadable", "{name}: {found}");
        assert!(found.to_string().contains(name), "{found}");
        assert!(start.elapsed() < Duration::from_secs(2), "{name}");
        assert_eq!(read_file(at(name), &Limits::default()).unwrap_err(), found);
    }
}

#[test]
fn every_format_cut_anywhere_is_an_error_or_the_same_picture() {
    for ends in &FORMATS[2..] {
        for name in of(ends) {
            let whole = data(&name);
            let Ok((sound, _)) = decode(&whole, &Limits::default()) else {
                continue;
            };
            for length in (0..whole.len())
                .step_by(7)
                .chain(whole.len() - 3..whole.len())
            {
                match decode(&whole[..length], &Limits::default()) {
                    // A GIF's closing byte, an odd byte of padding, and the like carry no picture.
                    Ok((image, _)) => assert!(
                        image == sound && whole.len() - length <= 4,
                        "{name} cut to {length}"
                    ),
                    Err(found) => assert!(
                        matches!(found.kind(), "truncated" | "corrupt" | "empty"),
                        "{name} cut to {length} of {}: {found}",
                        whole.len()
                    ),
                }
            }
        }
    }
}

/// Tells the process that the test below starts that it is the one with little memory.
const LITTLE_MEMORY: &str = "FOCUS_TEST_LITTLE_MEMORY";

#[test]
fn damage_stays_within_the_memory_that_the_limits_allow() {
    if std::env::var_os(LITTLE_MEMORY).is_some() {
        // What is asked for beyond the limit is refused, so that a decoder that asks for it ends this process.
        assert!(Vec::<u8>::new().try_reserve_exact(1 << 29).is_err());
        return damage(4_000);
    }
    let this = "hostile::damage_stays_within_the_memory_that_the_limits_allow";
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 400000 && exec \"$0\" \"$1\" --exact"])
        .args([program.as_os_str(), this.as_ref()])
        .env(LITTLE_MEMORY, "1")
        .output()
        .unwrap();
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(
        output.status.success() && ran,
        "{} {}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Decodes `count` damaged files of all formats, headers chiefly, with room for four million pixels (12 MB of RGB; a progressive JPEG takes some more).
fn damage(count: usize) {
    let limits = Limits {
        max_pixels: 4_000_000,
        max_extra_bytes: 1 << 20,
        ..Limits::default()
    };
    let files: Vec<Vec<u8>> = FORMATS
        .iter()
        .flat_map(|ends| of(ends))
        .map(|name| data(&name))
        .collect();
    // Knuth's linear congruential generator: the same damage every time.
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut sound, mut refused) = (0, 0);
    for index in 0..count {
        let mut bytes = files[index % files.len()].clone();
        let within = if next(3) > 0 {
            bytes.len().min(200)
        } else {
            bytes.len()
        };
        for _ in 0..=next(4) {
            let at = next(within);
            bytes[at] = [0xFF, 0x7F, 0, next(256) as u8][next(4)];
        }
        match decode(&bytes, &limits) {
            Ok(_) => sound += 1,
            Err(_) => refused += 1,
        }
        let _ = read_mask(&bytes, &MaskCoding::labels(255), &limits);
    }
    assert!(
        sound > count / 20 && refused > count / 20,
        "{sound} {refused}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Random damage in each format: a result, within the limits, soon.
    #[test]
    fn damage_never_panics_and_never_passes_the_limits(
        pick in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        header in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let limits = Limits { max_pixels: 300_000, max_extra_bytes: 1 << 20, ..Limits::default() };
        for ends in FORMATS {
            let names = of(ends);
            let mut bytes = data(&names[pick.index(names.len())]);
            for (at, value) in &damage {
                // Half of the time only where sizes and tables lie.
                let within = if header { bytes.len().min(120) } else { bytes.len() };
                bytes[at.index(within)] = *value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            let start = Instant::now();
            match decode(&bytes, &limits) {
                Ok((image, notes)) => {
                    prop_assert_eq!(image.pixels.len(), image.width as usize * image.height as usize * 3);
                    prop_assert!(u64::from(notes.stored_width) * u64::from(notes.stored_height) <= limits.max_pixels);
                }
                Err(found) => prop_assert!(found.is_about_the_image(), "{}", found),
            }
            let _ = read_mask(&bytes, &MaskCoding::labels(255), &limits);
            prop_assert!(start.elapsed() < Duration::from_secs(10), "{:?}", names);
        }
    }

    #[test]
    fn noise_behind_every_signature_never_panics(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        for magic in [&b"II*\0\x08\0\0\0"[..], b"MM\0*\0\0\0\x08", b"BM", b"RIFF\xF0\0\0\0WEBPVP8 ", b"RIFF\x10\0\0\0WEBPVP8L", b"RIFF\x40\0\0\0WEBPVP8X", b"GIF89a", b"P5 ", b"P6 9 9 255\n"] {
            let bytes = [magic, &noise[..]].concat();
            let limits = Limits { max_pixels: 1_000_000, ..Limits::default() };
            if let Err(found) = decode(&bytes, &limits) {
                prop_assert!(found.is_about_the_image());
            }
        }
    }
}
